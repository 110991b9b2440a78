"""Emitted programs of the example models beside onnxruntime and torch: one step of each, in turn.

    python bench/models.py [--json] [--cases silero,ocr,minilm]

Each side runs with one thread and with as many as are asked for, and its better setting counts.
"""

import statistics
import struct
import sys
import tempfile
import time

import emitted
import rows

def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def timed(run):
    """A function that gives the median of some runs, in milliseconds."""
    run()
    n = rows.enough(min(seconds(run) for _ in range(3)))
    return lambda: 1e3 * statistics.median(seconds(run) for _ in range(n))


def timed_program(program, inputs, threads):
    """The same for a program of ours."""
    n = rows.enough(min(program.times(inputs, 4, threads=threads)))
    return lambda: 1e3 * statistics.median(program.times(inputs, n, threads=threads))


def better(measures):
    """Of one side's settings the one that is faster now: tried in turn, so that a disturbance meets them alike."""
    tried = rows.alternate(5, *measures)
    return min(zip(tried, measures), key=lambda one: min(one[0]))[1]


def session(model, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def onnx_runs(model, inputs, threads):
    """A run for each number of threads; inputs are bound once, so that nothing is copied on the way."""
    runs = []
    for n in sorted({1, threads}):
        s = session(model, n)
        binding = s.io_binding()
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        for out in s.get_outputs():
            binding.bind_output(out.name)
        runs.append(lambda s=s, binding=binding: s.run_with_iobinding(binding))
    return runs


def silero_peers(folder, threads):
    import numpy as np

    inputs = {"input": np.random.default_rng(1).uniform(-0.1, 0.1, (1, 576)).astype(np.float32),
              "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000, np.int64)}  # fmt: skip
    yield "onnxruntime", lambda: onnx_runs(str(folder / "source/silero_vad.onnx"), inputs, threads)


def ocr_peers(folder, threads):
    import numpy as np

    (path,) = (folder / "source").glob("*.onnx")
    image = np.random.default_rng(1).uniform(-1, 1, (1, 3, 48, 192)).astype(np.float32)
    yield "onnxruntime", lambda: onnx_runs(str(path), {"x": image}, threads)


def minilm_peers(folder, threads):
    import minilm_peers as peers
    import numpy as np
    from safetensors.numpy import load_file

    w = load_file(folder / "source/model.safetensors")
    x = peers.embedded(w, np.arange(1000, 1128))[None].astype(np.float32)

    def torch_runs():
        import torch

        function, given = peers.torch_function(w), torch.from_numpy(x)

        def run(n):
            torch.set_num_threads(n)
            with torch.inference_mode():
                return function(given)

        return [lambda n=n: run(n) for n in sorted({1, threads})]

    yield "onnxruntime", lambda: onnx_runs(peers.onnx_model(w), {"x": x}, threads)
    yield "torch", torch_runs


MODELS = {  # name: case, the least ratio, graph, the bytes of its inputs, peers
    "silero": ("silero step", 3, "vad.oi", struct.pack("<512f", *([0.01, -0.02] * 256)), silero_peers),
    "ocr": ("ocr 48x192", 1.3, "direction.oi", struct.pack("<27648f", *([0.5, -0.25] * 13824)), ocr_peers),
    "minilm": ("minilm 128 tokens", 1, "embed.oi", struct.pack("<129i", *range(1000, 1128), 128), minilm_peers),
}


def compare(o, name, folder):
    what, bar, graph, inputs, peers = MODELS[name]
    with tempfile.TemporaryDirectory() as temp:
        program = emitted.Program(temp, name, [folder / graph], folder / "model.oinf")

        ours = better([timed_program(program, inputs, n) for n in sorted({1, o.threads})])
        for peer, make in peers(folder, o.threads):
            case = f"{what} ({peer})"
            try:
                theirs = better([timed(run) for run in make()])
            except ImportError as e:
                yield rows.left_out(case, peer, f"not installed ({e.name})")
                yield rows.row(case, "ms", rows.alternate(o.rounds, ours)[0], peer_name=peer)
                continue
            yield rows.row(case, "ms", *rows.alternate(o.rounds, ours, theirs), peer_name=peer, bar=bar,
                           threads=o.threads, macs=program.cost()["macs"], touches=(program.folder / "weights.bin").stat().st_size)  # fmt: skip


def measure(o):
    for name in MODELS:
        case = MODELS[name][0]
        if not o.wants(case):
            continue
        folder = o.models / name
        if (folder / "model.oinf").exists():
            yield from compare(o, name, folder)
        else:
            yield rows.left_out(case, "the model", f"there is no {folder} (make models)")


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
