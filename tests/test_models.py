"""The real models, end to end: SmolLM2 against numpy and llama.cpp, silero VAD and the OCR classifier
against onnxruntime, MiniLM against numpy.

A model that cannot be fetched skips its tests by name, and so does a reference that is not installed.
OPENINFER_MODELS=all (`make models-test`) asks for everything; without it each takes a small part.
"""

import functools
import importlib.util
import os
import pathlib
import re
import resource
import subprocess
import sys
import time
import wave

import numpy as np
import pytest

from conftest import BIN, REPO

CHAT = pathlib.Path(BIN).with_name("oi-chat")
ALL = os.environ.get("OPENINFER_MODELS") == "all"
pytestmark = pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")),
                                reason="real models: Python cannot load a sanitized library")
sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]


@functools.lru_cache(None)
def folder_of(name):
    """build/models/NAME, fetched and converted when it is not there; None when that cannot be."""
    done = subprocess.run([sys.executable, REPO / "tools/models.py", name], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    return REPO / "build/models" / name if done.returncode == 0 else None


def model(name):
    folder = folder_of(name)
    if folder is None:
        pytest.skip(f"model {name}: cannot be fetched here")
    return folder


def example(name):
    """A module of examples/: "smollm2/reference"."""
    path = REPO / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def simulator(text, package, **options):
    import openinfer

    return openinfer.parse(text, package).simulator(**options)


# ---- SmolLM2 ----

# Decisive ones, found by asking llama.cpp a hundred: its best two tokens are 0.2 apart or more at every step.
# Rounding activations to 8 bits moves logits by some 0.1 whoever does it, and differently when a sum runs in
# another order, so that closer choices fall either way; llama.cpp with another batch size parts from itself there.
QUESTIONS = [
    "Name the days of the week.", "Print the first ten even numbers.", "What is the freezing point of water?",
    "What is the Pythagorean theorem?", "What is World War II?", "What is the smallest country in the world?",
    "What is the longest river in the world?", "What is a verb?", "What is a prime number?", "What is the internet?",
]  # fmt: skip
N_QUESTIONS = len(QUESTIONS) if ALL else 2


def chat(*args, **options):
    """In the simulator, unless --engine says otherwise."""
    args = args if "--engine" in args else ("--engine", "sim", *args)
    done = subprocess.run([CHAT, "--model", model("smollm2"), *map(str, args)], capture_output=True, text=True,
                          timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done


def numbers(text):
    return [int(x) for x in text.strip().split(",")]


@functools.lru_cache(None)
def tokens_of(question):
    return tuple(numbers(chat("--prompt", question, "--tokenize").stdout))


def greedy(tokens, count, *args):
    given = ",".join(map(str, tokens))
    return numbers(chat("--tokens", given, "--greedy", "--count", count, "--print-tokens", *args).stdout)


class Llm:
    """Logits by the graphs themselves: with act="q8" as they stand, with act="float", or as they stand for a device
    with default_precision bf16."""

    def __init__(self, act):
        folder = model("smollm2")
        precision, act = ("bf16", "q8") if act == "bf16" else ("", act)
        sims = [simulator((folder / f"{g}.oi").read_text().replace('act="q8"', f'act="{act}"'), folder / "model.oinf",
                          threads=2, precision=precision) for g in ("prefill", "decode")]  # fmt: skip
        assert bool(sims[0].n_lowered) == bool(precision)  # one row at a time stays as written
        self.sims, self.chunk = sims, 32

    def logits(self, tokens):
        """After the last token: whole chunks, one that is filled up, or single steps, as they come."""
        prefill = self.sims[0].executor()
        decode = self.sims[1].executor(beside=prefill)
        out, at = None, 0
        while at < len(tokens):
            part = tokens[at : at + self.chunk]
            if len(part) > 1:
                filled = np.zeros((1, self.chunk), np.int32)
                filled[0, : len(part)] = part
                more = np.array(at + len(part) < len(tokens), np.int32)
                out = prefill.step(tokens=filled, n=np.array(len(part), np.int32), more=more)
            else:
                out = decode.step(tokens=np.array([part], np.int32))
            at += len(part)
        return out["logits"].ravel()


@functools.lru_cache(None)
def llm(act):
    return Llm(act)


@functools.lru_cache(None)
def llama():
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama.cpp: llama-cpp-python is not installed")
    path = next((model("smollm2") / "source").glob("*.gguf"))
    # one thread: its threads spin while they wait, which takes ages on processors that others use too
    return llama_cpp.Llama(str(path), n_ctx=512, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False)


def llama_greedy(tokens, count):
    """Up to and with the token that ends the answer."""
    engine, found = llama(), []
    engine.reset()
    engine.eval(list(tokens))
    while len(found) < count:
        found.append(int(np.argmax(engine.scores[engine.n_tokens - 1])))
        if found[-1] in (0, 2):
            break
        engine.eval([found[-1]])
    return found


def test_smollm2_tokens_are_those_of_llama_cpp():
    engine = llama()
    texts = [*QUESTIONS, "  two  spaces\n\n\tand tabs", "naïve café — 日本語 🙂👩‍👧", "x=1234567; // don't", "<|im_end|>"]
    source = (REPO / "include/openinfer.h").read_text()
    texts += [source[at : at + 300] for at in range(0, len(source), 300)] if ALL else []
    for text in texts:
        found = numbers(chat("--prompt", text, "--tokenize", "--raw").stdout)
        assert found == engine.tokenize(text.encode(), add_bos=False, special=True), text


@pytest.mark.skipif(not ALL, reason="every code point against llama.cpp: OPENINFER_MODELS=all asks for it")
def test_smollm2_every_code_point_as_llama_cpp():
    engine = llama()
    points = [chr(c) for c in range(2, 0x110000) if not 0xD800 <= c < 0xE000]
    texts = [joint.join(points[at : at + 500]) for at in range(0, len(points), 500) for joint in ("", "a", " ", "\n1")]
    data = b"".join(t.encode() + b"\0" for t in texts)
    done = subprocess.run([CHAT.with_name("tokenize"), model("smollm2") / "model.oinf"], input=data,
                          capture_output=True, check=True)
    for text, line in zip(texts, done.stdout.decode().splitlines(), strict=True):
        assert numbers(line) == engine.tokenize(text.encode(), add_bos=False, special=False), repr(text[:20])


def test_smollm2_conversation_is_written_as_the_template_says():
    jinja2 = pytest.importorskip("jinja2", reason="chat template: jinja2 is not installed")
    gguf = pytest.importorskip("gguf", reason="chat template: gguf is not installed")
    path = next((model("smollm2") / "source").glob("*.gguf"))
    template = gguf.GGUFReader(str(path)).fields["tokenizer.chat_template"].contents()
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello\n"}]
    for given, args in ((messages, ("--system", "Be brief.")), (messages[1:], ())):
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        want = environment.from_string(template).render(messages=given, add_generation_prompt=True)
        found = numbers(chat("--prompt", " Hello\n", "--tokenize", *args).stdout)
        assert found == llama().tokenize(want.encode(), add_bos=False, special=True)


def test_smollm2_logits_against_numpy():
    """act="float" against an f32 forward pass of the dequantised weights, on three prompts."""
    pytest.importorskip("gguf", reason="logits: gguf is not installed")
    reference = example("smollm2/reference")
    weights = reference.load(str(next((model("smollm2") / "source").glob("*.gguf"))))
    long = list(tokens_of(QUESTIONS[0])) + list(range(300, 340))  # two full chunks and one filled up
    for tokens in [tokens_of(QUESTIONS[1]), long, [504, 253, 1]][: 3 if ALL else 2]:
        want = reference.forward(weights, list(tokens))[-1]
        found = llm("float").logits(list(tokens))
        worst, extent = float(np.abs(found - want).max()), float(want.max() - want.min())
        print(f"{len(tokens)} tokens: max |difference| {worst:.3g}, range {extent:.3g}: {worst / extent:.2g}")
        assert worst <= 1e-3 * extent


def test_smollm2_bf16_is_closer_than_q8():
    """What a device's default_precision costs: logits after a prompt, act="float" everywhere as the truth. Greatest and
    root mean square difference as shares of the truth's range; llama.cpp, which rounds to 8 bits, too, beside it."""
    prompts = [list(tokens_of(q)) for q in QUESTIONS[:N_QUESTIONS]]
    if ALL:  # several chunks: attention over hundreds of keys
        license = (REPO / "LICENSE").read_text()[:1500]
        prompts.append(numbers(chat("--prompt", license, "--tokenize", "--raw").stdout)[:480])
    found = {}
    for tokens in prompts:
        truth = llm("float").logits(tokens)
        ways = {"q8": llm("q8").logits(tokens), "bf16": llm("bf16").logits(tokens)}
        if ALL or importlib.util.find_spec("llama_cpp"):
            engine = llama()
            engine.reset()
            engine.eval(tokens)
            ways["llama.cpp"] = engine.scores[engine.n_tokens - 1]
        for name, logits in ways.items():
            off = (logits - truth) / (truth.max() - truth.min())
            found.setdefault(name, []).append((np.abs(off).max(), np.sqrt((off**2).mean())))
            print(f"{len(tokens)} tokens, {name}: max {found[name][-1][0]:.5f}, rms {found[name][-1][1]:.5f} of the range")
    for name, rows in found.items():
        print(f"{name}: worst max {max(r[0] for r in rows):.5f}, mean max {np.mean([r[0] for r in rows]):.5f}, "
              f"mean rms {np.mean([r[1] for r in rows]):.5f}")  # fmt: skip
    for bf16, q8 in zip(found["bf16"], found["q8"], strict=True):
        assert bf16[0] <= q8[0]
    assert np.mean([r[1] for r in found["bf16"]]) <= 0.7 * np.mean([r[1] for r in found["q8"]])  # of one, it is by chance


@pytest.mark.skipif(not ALL, reason="SmolLM2 in bf16 as C: OPENINFER_MODELS=all asks for it")
def test_smollm2_in_bf16_has_the_simulators_bits(tmp_path):
    folder, device = model("smollm2"), tmp_path / "bf16.json"
    device.write_text('{"extends": "cpu_avx2", "features": {"bf16": true}, "preferences": {"default_precision": "bf16"}}')
    said = verify(folder / "prefill.oi", folder / "decode.oi", "--model", folder / "model.oinf", "--target", device,
                  "--steps", 3, "--set", "tokens=random:7:1:40000", "--set", "n=32", "--set", "more=0")  # fmt: skip
    worst = [line.split()[4] for line in said.splitlines() if line.startswith(("output", "state"))]
    assert len(worst) == 5 and set(worst) == {"0"}, said
    assert "precision: bf16 in 8 ops" in said  # of reading; saying has one row


def count_equal(one, other):
    """Of how many questions 32 greedy tokens are the same. Where two part, the choice must have been within what
    rounding activations to 8 bits changes: the gap of the best two below twice the largest change of a logit."""
    equal = 0
    for question in QUESTIONS[:N_QUESTIONS]:
        tokens = tokens_of(question)
        ours, theirs = one(tokens), other(tokens)
        if ours == theirs:
            equal += 1
            continue
        at = next(i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b)
        prefix = [*tokens, *ours[:at]]
        q8, exact = llm("q8").logits(prefix), llm("float").logits(prefix)
        best, second = np.sort(q8)[-1:-3:-1]
        change = float(np.abs(q8 - exact).max())
        print(f"{question!r} parts at token {at}: gap {best - second:.4f}, 8 bits change logits by {change:.4f}")
        assert best - second < 2 * change
    print(f"{equal} of {N_QUESTIONS} equal")
    return equal


def test_smollm2_says_what_llama_cpp_says():
    equal = count_equal(lambda tokens: greedy(tokens, 32), lambda tokens: llama_greedy(tokens, 32))
    assert equal >= (8 if ALL else N_QUESTIONS - 1)


def test_smollm2_as_emitted_program_says_the_same():
    """The program has the bits of the definition; the simulator here runs kernels that add in another order."""
    equal = count_equal(lambda tokens: greedy(tokens, 32, "--engine", "c"), lambda tokens: greedy(tokens, 32))
    assert equal >= (8 if ALL else N_QUESTIONS - 1)


# Every model on every target, free-running and node by node, what lasts included. Without tuned bodies, or under
# qemu, a token takes seconds: there graphs are cut to eight tokens at once, in all their layers.
WAYS = [["--no-per-node"], ["--per-node"]]
QUICK = ["cpu_avx2", "cpu_avx512", "cpu_amx", "cpu_amx_bf16"]  # where the processor has the instructions
TARGETS = [*QUICK, "cpu_scalar", "cpu_neon"] if ALL else ["cpu_avx2"]
VERIFIED = {"silero": ("vad.oi", []), "ocr": ("direction.oi", []),
            "minilm": ("embed.oi", ["--set", "n=7", "--set", "tokens=random:1:0:20000"])}  # fmt: skip


def cut(folder, graph, where, target):
    """The graph as it is, or a copy for eight tokens at once."""
    if target in QUICK:
        return folder / graph
    (where / graph).write_text(re.sub(r"\bT\b", "8", (folder / graph).read_text()))
    return where / graph


def verify(*words):
    """What verify says, when all of eight steps (or fewer, in `--steps`) agree."""
    words = [*map(str, words)]
    steps = words[words.index("--steps") + 1]
    if not {"--per-node", "--no-per-node"} & {*words}:
        words.append("--no-per-node")
    done = subprocess.run([BIN, "verify", *words], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0 and f"{steps} steps compared: they agree" in done.stdout, done.stdout + done.stderr
    return done.stdout


def no_memory(target):
    """Built so that the program ends when it asks for memory while it runs; for other machines it is built plainly."""
    return [] if target == "cpu_neon" else ["--cc", REPO / "tests/noalloc/cc"]


@pytest.mark.parametrize("way", WAYS if ALL else WAYS[:1], ids=lambda way: "".join(way))
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", VERIFIED)
def test_emitted_programs_do_what_the_simulator_does(name, target, way, tmp_path):
    folder, (graph, words) = model(name), VERIFIED[name]
    words = [*words, *no_memory(target)]
    steps = 8 if ALL or name != "minilm" else 2
    verify(cut(folder, graph, tmp_path, target), "--model", folder / "model.oinf", "--target", target,
           "--steps", steps, *words, *way)  # fmt: skip


@pytest.mark.parametrize("name", ["silero", "ocr"] if ALL else ["silero"])
def test_a_second_instance_of_a_model_disturbs_nothing(name):
    """Two instances interleaved, one of which goes on from every state that the other saved: tests/synthfuzz."""
    folder, (graph, words) = model(name), VERIFIED[name]
    shaken = ["--cc", REPO / "tests/synthfuzz/shaking_cc"]
    verify(folder / graph, "--model", folder / "model.oinf", "--target", "cpu_avx2", "--steps", "8", *words, *shaken)


def read_and_say(folder, where, target, n_read):
    """The words of verify for a text of which a chunk is read and seven tokens are said, in both graphs of SmolLM2."""
    text = tokens_of(QUESTIONS[3]) + tuple(range(500, 540))
    np.save(where / "0.npy", np.array([text[:n_read]], np.int32))
    for step in range(1, 8):
        np.save(where / f"{step}.npy", np.array([[text[n_read - 1 + step]]], np.int32))
    graphs = [cut(folder, graph, where, target) for graph in ("prefill.oi", "decode.oi")]
    return [*graphs, "--model", folder / "model.oinf", "--target", target, "--steps", "8", "--set", f"n={n_read}", "--set", "more=0",
            "--set", f"tokens=@{where}/{{step}}.npy"]  # fmt: skip


@pytest.mark.skipif(not ALL, reason="SmolLM2 through verify takes minutes: OPENINFER_MODELS=all asks for it")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "".join(way) or "free")
@pytest.mark.parametrize("target", TARGETS)
def test_smollm2_emitted_does_what_the_simulator_does(target, way, tmp_path):
    """Tuned bodies, and plain loops where there are no vectors, give the simulator's bits: free-running, too, logits
    and caches are equal after eight steps."""
    words = read_and_say(model("smollm2"), tmp_path, target, 32 if target in QUICK else 8)
    said = verify(*words, *way, *no_memory(target))
    rows = [line.split() for line in said.splitlines() if line.startswith(("output", "state"))]
    assert len(rows) == 5 and all(float(row[4]) == 0 for row in rows), said


@pytest.mark.skipif(not ALL, reason="SmolLM2 through verify takes minutes: OPENINFER_MODELS=all asks for it")
def test_a_second_instance_of_smollm2_disturbs_nothing(tmp_path):
    words = read_and_say(model("smollm2"), tmp_path, "cpu_avx2", 32)
    verify(*words, "--cc", REPO / "tests/synthfuzz/shaking_cc")


def test_smollm2_is_synthesized_and_built_in_time(tmp_path):
    """10 s and 1 GiB, the compiler a minute; the same bytes again; and nothing in it could allocate."""
    folder = model("smollm2")
    words = [folder / "prefill.oi", folder / "decode.oi", "--model", folder / "model.oinf", "--target", "cpu_avx2", "--name", "llm"]
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")  # fmt: skip
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, BIN, "synth", *words, "-o", tmp_path / "out"], capture_output=True, text=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    seconds, most = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime, 1024 * int(done.stdout.splitlines()[-1])
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["make", "-s", "-C", tmp_path / "out"], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    built = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    print(f"synthesized in {seconds:.1f} s and {most / 2**20:.0f} MiB, built in {built:.1f} s")
    assert seconds < 10 and most < 2**30 and built < 60
    names = subprocess.run(["nm", "-u", tmp_path / "out/llm.o"], capture_output=True, text=True, check=True).stdout.split()
    assert set(names) - {"U"} <= {"memcpy", "memset", "memmove", "memcmp", "team_run", "team_barrier", "team_barrier_enter", "team_barrier_release", "team_next_chunk", "exp", "pow", "sin", "cos"}, names
    subprocess.run([BIN, "synth", *words, "-o", tmp_path / "again"], check=True)
    for path in sorted((tmp_path / "again").iterdir()):
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name


def processor_seconds(*words, **options):
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, words)], check=True, capture_output=True, **options)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


@pytest.mark.skipif(not ALL, reason="minutes: OPENINFER_MODELS=all asks for it")
def test_smollm2_plain_loops_are_no_slower_than_the_simulator(tmp_path):
    """Printed from the definitions, on one thread, beside the simulator where no tuned body serves a quantised
    product (cpu:avx), with which `cpu:avx2` would compare recipes."""
    folder = model("smollm2")
    given = [folder / "decode.oi", "--model", folder / "model.oinf"]
    subprocess.run([BIN, "synth", *given, "--target", "cpu_avx2", "--without", "recipes", "--name", "plain", "-o", tmp_path / "out"], check=True)
    subprocess.run(["make", "-s", "-C", tmp_path / "out"], check=True)
    env = {**os.environ, "THREADS": "1"}
    program = [processor_seconds("./plain", "weights.bin", n, cwd=tmp_path / "out", env=env, input=bytes([0, 5, 0, 0, 0])) for n in (2, 12)]
    run = [BIN, "run", *given, "--set", "tokens=5", "--threads", "1"]
    simulated = {device: [processor_seconds(*run, "--device", device, "--steps", n) for n in (2, 12)] for device in ("cpu:avx", "cpu")}
    per_step = {name: (b - a) / 10 * 1000 for name, (a, b) in {"plain loops": program, **simulated}.items()}
    print(", ".join(f"{name} {ms:.0f} ms" for name, ms in per_step.items()))
    assert per_step["plain loops"] <= per_step["cpu:avx"]


def test_smollm2_in_little_memory():
    tokens, count = tokens_of(QUESTIONS[0]), 16 if ALL else 6
    given = ",".join(map(str, tokens))
    little = chat("--tokens", given, "--greedy", "--count", count, "--print-tokens", "--memory-limit", "32M")
    assert numbers(little.stdout) == greedy(tokens, count)
    peak = float(little.stderr.split(" MiB of weights")[0].split()[-1])
    assert 0 < peak <= 32


def test_smollm2_answers_are_the_same_for_any_number_of_threads():
    tokens = tokens_of(QUESTIONS[2])
    assert greedy(tokens, 8, "--threads", 1) == greedy(tokens, 8, "--threads", 3)


def test_smollm2_speed():
    """20 tokens a second said, 40 read. Others may use this machine's processors at the same time, so what
    counts is the better of the clock with two threads and the processor time of one."""
    prompt = ",".join(str(300 + i) for i in range(128))

    def rates(threads, *args):
        def spent():
            use = resource.getrusage(resource.RUSAGE_CHILDREN)
            return np.array([time.monotonic(), use.ru_utime + use.ru_stime])

        start = spent()
        chat("--greedy", "--ignore-end", "--print-tokens", "--threads", threads, *args)
        return (spent() - start)[0 if threads > 1 else 1]

    best = {"said": 0.0, "read": 0.0}
    for _ in range(3):
        for threads in (2, 1):
            start = rates(threads, "--tokens", 5, "--count", 1)
            best["said"] = max(best["said"], 40 / (rates(threads, "--tokens", 5, "--count", 41) - start))
            best["read"] = max(best["read"], 127 / (rates(threads, "--tokens", prompt, "--count", 1) - start))
        if best["said"] >= 20 and best["read"] >= 40:
            break
    print(f"said {best['said']:.1f} tokens/s, read {best['read']:.1f} tokens/s")
    assert best["said"] >= 20 and best["read"] >= 40


# ---- silero VAD ----


def recording(seconds):
    """Silence, noise, tones and, from espeak-ng, speech in turns."""
    vad = example("silero/vad")
    rng, n = np.random.default_rng(1), seconds * vad.RATE
    t = np.arange(n) / vad.RATE
    out = (0.002 * rng.standard_normal(n)).astype(np.float32)
    out += (np.sin(2 * np.pi * (200 + 40 * t) * t) * 0.2 * ((t % 10) > 8)).astype(np.float32)
    out += (rng.standard_normal(n) * 0.1 * ((t % 14) > 12)).astype(np.float32)
    sentences = ["The quick brown fox jumps over the lazy dog.", "Is anybody out there?", "One two three four five."]
    for i, at in enumerate(range(1, seconds - 4, 6)):
        spoken = speak(sentences[i % len(sentences)], vad)
        out[at * vad.RATE :][: len(spoken)] += spoken[: n - at * vad.RATE]
    return vad, np.clip(out, -1, 1)


@functools.lru_cache(None)
def speak(sentence, vad):
    path = REPO / "build/models" / "spoken.wav"
    try:
        subprocess.run(["espeak-ng", "-w", path, sentence], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("recorded speech: espeak-ng is not installed")
    return vad.read_wav(path)


def test_silero_against_onnxruntime():
    """60 s, chunk by chunk, with state."""
    folder = model("silero")
    onnxruntime = pytest.importorskip("onnxruntime", reason="voice detection: onnxruntime is not installed")
    vad, samples = recording(60)
    found = vad.Detector(folder).all(samples)
    session = onnxruntime.InferenceSession(str(folder / "source/silero_vad.onnx"), providers=["CPUExecutionProvider"])
    state, context, want = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
    for chunk in np.concatenate([samples, np.zeros(-len(samples) % 512, np.float32)]).reshape(-1, 1, 512):
        x = np.concatenate([context, chunk], axis=1)
        p, state = session.run(None, {"input": x, "state": state, "sr": np.array(16000, np.int64)})
        want.append(float(p[0, 0]))
        context = x[:, -64:]
    worst = float(np.abs(found - want).max())
    print(f"{len(want)} chunks: max |difference| {worst:.3g}; speech in {np.mean(found > 0.5):.0%} of them")
    assert 0.05 < np.mean(found > 0.5) < 0.95  # it has something to tell apart
    assert worst <= 1e-4


def test_silero_demo(tmp_path):
    folder = model("silero")
    vad, samples = recording(8)
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as f:
        f.setnchannels(1), f.setsampwidth(2), f.setframerate(vad.RATE)
        f.writeframes((samples * 32767).astype("<i2").tobytes())
    script = [sys.executable, REPO / "examples/silero/vad.py", "--model", folder]
    shown = subprocess.run([*script, path, "--svg", tmp_path / "a.svg"], capture_output=True, text=True, check=True)
    assert "speech from" in shown.stdout and (tmp_path / "a.svg").read_text().startswith("<svg")
    heard = subprocess.run([*script, "-"], input=(samples * 32767).astype("<i2").tobytes(), capture_output=True, check=True)
    lines = [line for line in shown.stdout.splitlines() if line.startswith("speech")]
    assert lines == [line for line in heard.stdout.decode().splitlines() if line.startswith("speech")]


# ---- MiniLM ----


def sentences(n):
    text = (REPO / "README.md").read_text() + (REPO / "CONTRIBUTING.md").read_text()
    found = [s.strip() for s in text.replace("\n", " ").split(". ") if len(s) > 20]
    return (example("minilm/nearest").SENTENCES + found * 10)[:n]


def test_minilm_against_numpy():
    folder = model("minilm")
    pytest.importorskip("safetensors", reason="sentence embeddings: safetensors is not installed")
    nearest, reference = example("minilm/nearest"), example("minilm/reference")
    weights = reference.load(folder / "source/model.safetensors")
    embedder, worst = nearest.Embedder(folder), 1.0
    for sentence in sentences(100 if ALL else 8):
        want = reference.embed(weights, embedder.tokenizer.encode(sentence, embedder.room)).astype(np.float64)
        found = embedder.embed(sentence).astype(np.float64)
        worst = min(worst, float(found @ want / np.linalg.norm(found) / np.linalg.norm(want)))
    print(f"least cosine {worst:.9f}")
    assert worst >= 0.99999


def test_minilm_knows_what_is_similar():
    script = [sys.executable, REPO / "examples/minilm/nearest.py", "--model", model("minilm"), "--top", "2"]
    shown = subprocess.run([*script, "My kitty takes a rest."], capture_output=True, text=True, check=True)
    assert "kitten" in shown.stdout.splitlines()[1] + shown.stdout.splitlines()[2]
    shown = subprocess.run([*script, "A cat.", "--with", "-"], input="A dog barks.\nTwo cats.\n", capture_output=True, text=True, check=True)
    assert "Two cats." in shown.stdout.splitlines()[1]


# ---- the direction of text ----


def text_image(rng):
    """Something like a line of text: dark strokes of different height on paper."""
    height, width = rng.integers(30, 80), rng.integers(100, 400)
    image = np.full((height, width, 3), 235, np.uint8)
    for x in range(8, width - 8, 6):
        top = rng.integers(4, height // 2)
        image[top : height - rng.integers(6, height // 3), x : x + rng.integers(1, 4)] = rng.integers(0, 90)
    return image


def test_ocr_against_onnxruntime():
    folder = model("ocr")
    onnxruntime = pytest.importorskip("onnxruntime", reason="text direction: onnxruntime is not installed")
    direction = example("ocr/direction")
    session = onnxruntime.InferenceSession(str(next((folder / "source").glob("*.onnx"))), providers=["CPUExecutionProvider"])
    classifier, rng, worst = direction.Classifier(folder), np.random.default_rng(2), 0.0
    images = [direction.prepare(text_image(rng)) for _ in range(20 if ALL else 4)]
    images += [rng.uniform(-1, 1, images[0].shape).astype(np.float32) for _ in range(2)]
    for image in images:
        (want,) = session.run(None, {session.get_inputs()[0].name: image})
        worst = max(worst, float(np.abs(classifier.probabilities(image) - want[0]).max()))
    print(f"{len(images)} images: max |difference| {worst:.3g}")
    assert worst <= 1e-4


def test_ocr_demo(tmp_path):
    image = text_image(np.random.default_rng(3))
    (tmp_path / "a.ppm").write_bytes(b"P6\n%d %d\n255\n" % image.shape[1::-1] + image.tobytes())
    script = [sys.executable, REPO / "examples/ocr/direction.py", "--model", model("ocr")]
    shown = subprocess.run([*script, tmp_path / "a.ppm"], capture_output=True, text=True, check=True)
    assert "a.ppm: up" in shown.stdout


@pytest.mark.parametrize("script, name", [("silero/vad.py", "silero"), ("ocr/direction.py", "ocr")])
def test_demos_say_what_is_wrong(script, name, tmp_path):
    """Files that are none of theirs, cut short, not there: one line, no traceback."""
    folder = model(name)
    whole_ppm = b"P6\n8 8\n255\n" + bytes(192)
    png = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc")
    riff = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
    for content in (b"", b"hello", b"P6", b"# no end", whole_ppm[:50], png, png[:20], png + b"\0\0\0\4IDATxyzw\0\0\0\0", riff, riff[:30], None):
        path = tmp_path / "input"
        path.write_bytes(content) if content is not None else path.unlink()
        done = subprocess.run([sys.executable, REPO / "examples" / script, "--model", folder, path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "input" in done.stderr, done.stderr
    done = subprocess.run([sys.executable, REPO / "examples" / script, "--model", tmp_path, "x"], capture_output=True, text=True)
    assert done.returncode == 1 and "`make models`" in done.stderr
