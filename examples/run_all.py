"""Writes every example's package, runs its graph and compares it with its reference.

    python examples/run_all.py [--target cpu|c|vulkan|cuda|all] [--device D]... [--only NAME]... [--out FOLDER] [--bin PATH]

--target cpu (the default) simulates, once for each kind of vector instructions of this machine, and compares with
the reference; c turns the graph into C, builds and runs it and compares it with the simulator; vulkan prints its compute
shaders and compiles them with glslc (a program that dispatches them is not emitted yet); cuda turns it into CUDA C++,
which runs on a GPU if there is one, else on the processor (tests/tools/cuda_on_cpu); all does everything.
Everything is written into build/examples. Exit: 0 all right, 1 something differs, 3 nothing to run with.
"""

import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "python/src"))  # works from a checkout, without installing anything
NAMES = sorted(p.stem for p in HERE.glob("*.oi"))
COMPACT = sorted(f"compact/{p.stem}" for p in (HERE / "compact").glob("*.oi"))  # in the language's other form


def python(script, *args):
    """Runs one of the scripts beside this one; nothing needs to be installed for that."""
    path = os.pathsep.join(filter(None, [str(HERE.parent / "python/src"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, HERE / script, *args], check=True, env=env, stdout=subprocess.DEVNULL)


def write_package(name, folder):
    path = folder / f"{name}.oinf"
    path.parent.mkdir(parents=True, exist_ok=True)
    python(f"{name}_oinf.py", path)
    return path


def write_reference(name, package, folder):
    """folder/in and folder/out as reference.py describes them; returns what run.json says."""
    python(f"{name}_ref.py", package, folder)
    return json.loads((folder / "run.json").read_text())


@functools.lru_cache
def devices(openinfer):
    """What `openinfer run --device` can be given on this machine."""
    text = subprocess.run([openinfer, "targets", "--json"], capture_output=True, text=True, check=True).stdout
    isa = json.loads(text)["machine"]["isa"]
    simd = {"avx": "cpu:avx", "avx2": "cpu:avx2", "avx512f": "cpu:avx512"}
    return ["cpu:scalar", *(device for name, device in simd.items() if name in isa), "cpu"]


def run(openinfer, name, package, folder, about, device, out, *options):
    """Runs one example; returns the finished process. Results go to out/VARIABLE.STEP.npy."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("*.npy"), *out.glob("*.json")]:
        old.unlink()
    given = [f"{x}=@{folder}/in/{x}/{{step}}.npy" for x in about["inputs"]]
    return subprocess.run(
        [openinfer, "run", HERE / f"{name}.oi", "--model", package, "--strict", "--device", device,
         "--steps", str(about["steps"]), "--fetch", ",".join(about["outputs"]), "--out", out, *options]
        + [x for value in given for x in ("--set", value)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def compare(folder, about, out):
    """(variable, step, error as a multiple of the tolerance) of everything the reference gives."""
    import numpy as np
    from reference import error, load

    for wanted in sorted((folder / "out").glob("*.npy")):
        name, step = wanted.stem.rsplit(".", 1)
        found = out / wanted.name
        value = load(found) if found.exists() else None
        ratio = float("inf") if value is None else error(value, np.load(wanted), **about["outputs"][name])
        yield name, int(step), ratio


def one_row(openinfer, name, device, root):
    folder = root / name
    package = write_package(name, folder)
    about = write_reference(name, package, folder)
    out = folder / f"got-{device.replace(':', '-')}"
    start = time.monotonic()
    result = run(openinfer, name, package, folder, about, device, out)
    seconds = time.monotonic() - start
    if result.returncode:
        why = [line for line in result.stderr.splitlines() if "error[" in line or line.startswith("openinfer")]
        return about["steps"], seconds, f"exit {result.returncode}: {(why or ['nothing on stderr'])[0]}"
    worst = max(compare(folder, about, out), key=lambda row: row[2])
    verdict = "ok" if worst[2] <= 1 else "DIFFERS"
    return about["steps"], seconds, f"{verdict}, {worst[2]:.2g} of the tolerance at {worst[0]}, step {worst[1]}"


def cuda_options():
    """Without a GPU its programs are compiled for the processor, with fewer threads in a block."""
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        return ["--target", "cuda_generic"]
    tool = HERE.parent / "tests/tools/cuda_on_cpu"
    return ["--target", tool / "small.json", "--cc", tool / "nvcc"]


def program_row(openinfer, name, root, target):
    """The example as a program, against the simulator."""
    folder = root / name
    package = write_package(name, folder)
    about = write_reference(name, package, folder)
    given = [f"{x}=@{folder}/in/{x}/{{step}}.npy" for x in about["inputs"]]
    start = time.monotonic()
    result = subprocess.run(
        [openinfer, "verify", HERE / f"{name}.oi", "--model", package, *target,
         "--steps", str(about["steps"])]
        + [x for value in given for x in ("--set", value)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    said = (result.stdout.strip() or result.stderr.strip() or "nothing").splitlines()[-1]
    verdict = "ok" if result.returncode == 0 else f"exit {result.returncode}"
    return about["steps"], time.monotonic() - start, f"{verdict}, {said}"


def vulkan_row(openinfer, name, root):
    """Without a device: the example's shaders, printed and compiled."""
    folder, out = root / name, root / name / "vulkan"
    start = time.monotonic()
    result = subprocess.run(
        [openinfer, "synth", HERE / f"{name}.oi", "--model", write_package(name, folder), "--target", "vulkan_desktop",
         "--device-only", "-o", out], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    seconds = time.monotonic() - start
    if result.returncode:
        return 0, seconds, f"exit {result.returncode}: {result.stderr.splitlines()[0]}"
    files = sorted(out.glob("*.comp"))
    if not shutil.which("glslc"):
        return 0, seconds, f"ok, {len(files)} shaders printed; glslc is not here to compile them"
    for path in files:
        compiled = subprocess.run(["glslc", "--target-env=vulkan1.2", "-c", path, "-o", path.with_suffix(".spv")],
                                  capture_output=True, text=True)  # fmt: skip
        if compiled.returncode:
            return 0, seconds, f"glslc refuses {path.name}: {compiled.stderr.splitlines()[0]}"
    return 0, time.monotonic() - start, f"ok, {len(files)} shaders compiled"


def rows(args, name):
    """(what ran, its row) of one example."""
    if args.target in ("cpu", "all"):
        for device in args.device or devices(args.bin):
            yield device, one_row(args.bin, name, device, args.out)
    if args.target in ("c", "all"):
        yield "c", program_row(args.bin, name, args.out, ["--target", "cpu_scalar"])
    if args.target in ("vulkan", "all"):
        row = program_row(args.bin, name, args.out, ["--target", "vulkan_desktop"])
        yield "vulkan", row if not row[2].startswith("exit 3") else vulkan_row(args.bin, name, args.out)
    if args.target in ("cuda", "all"):
        yield "cuda", program_row(args.bin, name, args.out, cuda_options())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=["cpu", "c", "vulkan", "cuda", "all"], default="cpu")
    parser.add_argument("--device", action="append", help="cpu:scalar, cpu, ... (default: all of this machine)")
    parser.add_argument("--only", action="append", choices=NAMES + COMPACT, metavar="NAME")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build/examples")
    parser.add_argument("--bin", default=os.environ.get("OPENINFER_BIN") or HERE.parent / "build/bin/openinfer")
    args = parser.parse_args()
    if not os.access(args.bin, os.X_OK):
        print(f"run_all: there is no {args.bin}; build it first, or name it with --bin", file=sys.stderr)
        return 3
    failed = 0
    print(f"{'example':<23} {'device':<11} {'steps':>5} {'ms':>6}  result")
    for name in args.only or NAMES + COMPACT:
        for device, (steps, seconds, result) in rows(args, name):
            failed += not result.startswith("ok")
            print(f"{name:<23} {device:<11} {steps:>5} {seconds * 1e3:>6.0f}  {result}", flush=True)
    print(f"{failed} of them wrong" if failed else "all as they should be" if args.target != "cpu" else "all as the references say")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
