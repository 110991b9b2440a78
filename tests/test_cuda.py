"""CUDA programs: compiled for the processor by tests/tools/cuda_on_cpu, beside the simulator; and by nvcc where it is."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

TOOL = REPO / "tests/tools/cuda_on_cpu"
SMALL = ("--target", TOOL / "small.json", "--cc", TOOL / "nvcc")
EXAMPLES = REPO / "examples"
# of all kinds: state and views, branches, loops that fail, packed elements, rows that lanes share, consumers
SAMPLE = ["kv_cache_decode", "branches", "cache_ops", "quantised_linear", "linear_attention", "moe_routing", "consumers"]
if os.environ.get("OPENINFER_LONG"):
    SAMPLE = sorted(p.stem for p in EXAMPLES.glob("*.oi"))


@pytest.mark.parametrize("name", SAMPLE)
def test_examples(openinfer, example_package, example_reference, name):
    """Partitioned among three blocks, with threads in a random order."""
    folder, about = example_reference(name)
    sets = [word for x in about["inputs"] for word in ("--set", f"{x}=@{folder}/in/{x}/{{step}}.npy")]
    openinfer("verify", EXAMPLES / f"{name}.oi", "--model", example_package(name), *SMALL, "--partition-all", "--steps", about["steps"],
              *sets, env={"CUDA_ON_CPU_BLOCKS": "3", "CUDA_ON_CPU_ORDER": "7"}, timeout=600)  # fmt: skip


WIDE = """dynamic { x: f32[3, 320]; row: i32; }
constant { W: f32[96, 320] @init(0.03); V: f16[320, 96] @init(0.25); g: f32[320] @init(1.5); }
persistent { n: i64 @init(0); K(t): f32[96] @table @fixed(t=5); }
volatile { y: f32[3, 320]; h: f32[3, 96]; s: f32[3]; top: i64[3]; }
block entry {
  assign n0: f32[3, 320]; assign p: f32[3, 320]; assign one: f32[96]; assign c: f32[1, 96]; assign V32: f32[320, 96];
  op rmsnorm(x, g) >> n0;
  op matmul(n0, W, transpose_b=true) >> h;
  op silu(h) >> h;
  op cast(V, to=f32) >> V32;
  op matmul(h, V32, transpose_b=true) >> y;
  op add(y, x) >> y;
  op softmax(y) >> p;
  op sum_axis(p, axes=[1]) >> s;
  op argmax_axis(p, axis=1) >> top;
  op slice(h, starts=[0, 0], ends=[1, 96]) >> c;
  op reshape(c, shape=[96]) >> one;
  cache.write one >> K[n];
  cache.increment n;
  return y, h, s, top;
}
"""


@pytest.fixture(scope="module")
def wide(openinfer, tmp_path_factory):
    """A program with partitioned products, norms, softmax and a cache that becomes full, built once."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / "wide.oi").write_text(WIDE)
    said = openinfer("verify", folder / "wide.oi", *SMALL, "--partition-all", "--set", "x=random:1:-1:1", "--steps", "7", "--keep", folder / "out",
                     env={"CUDA_ON_CPU_BLOCKS": "4", "CUDA_ON_CPU_ORDER": "3"}, timeout=300).stdout  # fmt: skip
    assert "7 steps compared, 2 of them ended with the same error: they agree" in said
    return folder / "out"


def run(folder, data, **env):
    name = next(folder.glob("*.cu")).stem
    return subprocess.run([f"./{name}", "weights.bin"], input=data, capture_output=True, cwd=folder, timeout=300,
                          env={**os.environ, **{k: str(v) for k, v in env.items()}})  # fmt: skip


def test_the_bits_are_the_same_for_any_number_of_blocks_and_order(wide):
    step = b"\0" + os.urandom(3 * 320 * 2) + bytes(3 * 320 * 2) + b"\0\0\0\0"
    first = run(wide, step * 3, BLOCKS=1, CUDA_ON_CPU_BLOCKS=9)
    assert first.returncode == 0 and len(first.stdout) > 1000, first.stderr
    for blocks, order in ((2, 0), (5, 1), (9, 2)):
        assert run(wide, step * 3, BLOCKS=blocks, CUDA_ON_CPU_BLOCKS=9, CUDA_ON_CPU_ORDER=order).stdout == first.stdout


@pytest.mark.parametrize("env,says", [
    ({"CUDA_ON_CPU_FAIL": "driver"}, r"wide: the driver speaks CUDA 12\.4, the program needs 13\.0"),
    ({"CUDA_ON_CPU_FAIL": "device"}, r"wide: there is no GPU"),
    ({"CUDA_ON_CPU_FAIL": "memory"}, r"wide: the program needs \d+ bytes of the GPU's memory, 1000 are free"),
    ({"CUDA_ON_CPU_CAPABILITY": "61"}, r"wide: the GPU has compute capability 6\.1, the program needs 7\.5"),
    ({"CUDA_ON_CPU_FAIL": "launch"}, r"wide: the GPU failed in a step of wide\.oi: unspecified launch failure"),
])  # fmt: skip
def test_what_is_wrong_with_the_device_is_one_line(wide, env, says):
    found = run(wide, b"\0" + bytes(3 * 320 * 4 + 4), **env)
    assert found.returncode == 5
    assert re.fullmatch(says + "\n", found.stderr.decode())


def test_verify_says_so_and_exits_with_3(openinfer, example):
    said = openinfer("verify", *example("minimal"), *SMALL, "--steps", "1", code=3, env={"CUDA_ON_CPU_FAIL": "device"}).stderr
    assert "there is no GPU\n" in said and "this machine lacks what the program asks of a GPU" in said


def test_without_a_gpu_verify_names_what_is_missing(openinfer, example):
    if any(pathlib.Path(p, "libcuda.so.1").exists() for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("this machine has a driver for GPUs")
    said = openinfer("verify", *example("minimal"), "--target", "cuda_generic", code=3).stderr
    assert re.search(r"(nvcc|libcuda\.so\.1): error: is not installed", said)


PERSIST = r"""
#include "NAME.h"
#include "hal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static NAME program;
static unsigned char saved[NAME_SAVED_BYTES], again[NAME_SAVED_BYTES];
int main(void)
{
    size_t size;
    const void *weights = hal_map("weights.bin", &size);
    float first[3];
    if (NAME_init(&program, weights, size) != NAME_OK) return 1;
    if (NAME_step(&program) != 0) return 2;
    NAME_save(&program, saved);
    if (NAME_step(&program) != 0) return 3;
    memcpy(first, program.s, sizeof first);
    NAME_save(&program, again);
    if (memcmp(saved, again, sizeof saved) == 0) return 4;
    if (NAME_load(&program, saved, sizeof saved) != NAME_OK) return 5;
    NAME_save(&program, again);
    if (memcmp(saved, again, sizeof saved) != 0) return 6;
    saved[60] ^= 1;
    if (NAME_load(&program, saved, sizeof saved) != NAME_ERROR_STATE_DAMAGED) return 7;
    for (int i = 0; i < 4; i++)
        if (NAME_step(&program) != 0) return 8;
    NAME_save(&program, saved);
    if (NAME_step(&program) != NAME_ERROR_RANGE) return 9; /* the table is full */
    NAME_save(&program, again);
    if (memcmp(saved, again, sizeof saved) != 0) return 10; /* as before the step that failed */
    NAME_reset(&program);
    if (NAME_step(&program) != 0) return 11;
    NAME_free(&program);
    return 0;
}
"""


def test_save_load_reset_and_rollback(wide, tmp_path):
    (tmp_path / "main.c").write_text(PERSIST.replace("NAME", "wide"))
    for name in ("wide.cu", "wide.h", "hal.c", "hal.h", "Makefile", "weights.bin"):
        shutil.copy(wide / name, tmp_path)
    subprocess.run(["make", "-s", f"NVCC={TOOL / 'nvcc'}"], cwd=tmp_path, check=True, timeout=300)
    assert subprocess.run(["./wide"], cwd=tmp_path, timeout=300).returncode == 0


@pytest.fixture
def example(example_package):
    return lambda name: (EXAMPLES / f"{name}.oi", "--model", example_package(name))


# -- the tool itself --

KERNEL = """#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
static __global__ void kernel(int *out)
{
    __shared__ int both[64];
    both[threadIdx.x] = (int)threadIdx.x;
    BODY
    out[threadIdx.x] = both[63 - threadIdx.x];
}
int main()
{
    void *p, *args[1] = {&p};
    int out[64], right = 1;
    cudaMalloc(&p, sizeof out);
    for (int i = 0; i < 3; i++)
        cudaLaunchCooperativeKernel((const void *)kernel, dim3(1), dim3(64), args, 0, 0);
    cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 64; i++)
        right &= out[i] == 63 - i;
    return right ? 0 : 4;
}
"""


@pytest.mark.parametrize("body,code", [
    ("__syncthreads();", 0),
    ("", 4),  # a race shows
    ("if (threadIdx.x < 32) __syncthreads();", 70),  # some never arrive
    ("if (threadIdx.x % 2) { __shfl_xor_sync(0xffffffffu, 1, 1); } __syncthreads();", 70),  # half a warp
])  # fmt: skip
def test_races_and_divergence_show(tmp_path, body, code):
    (tmp_path / "k.cu").write_text(KERNEL.replace("BODY", body))
    subprocess.run([TOOL / "nvcc", "-c", "-o", "k.o", "k.cu"], cwd=tmp_path, check=True)
    subprocess.run([TOOL / "nvcc", "-o", "k", "k.o"], cwd=tmp_path, check=True)
    found = subprocess.run(["./k"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "CUDA_ON_CPU_ORDER": "5"})
    assert found.returncode == code, found.stderr
    assert (code == 70) == ("not all threads arrive" in found.stderr)


# -- CUDA's own compiler --

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed: it comes with the CUDA toolkit")
ARCHITECTURES = ["cuda_generic", "cuda_ampere", "cuda_ada", "cuda_hopper", "cuda_blackwell", "12.0"]


@needs_nvcc
@pytest.mark.parametrize("name,device", [("kv_cache_decode", "cuda_hopper"), ("quantised_linear", "cuda_generic")]
                         + ([(n, d) for n in SAMPLE for d in ARCHITECTURES] if os.environ.get("OPENINFER_LONG") else []))  # fmt: skip
def test_nvcc_compiles_it_without_warnings(openinfer, example_package, tmp_path, name, device):
    if device == "12.0":
        (tmp_path / "d.json").write_text(json.dumps({"extends": "cuda_generic", "cuda": {"compute_capability": "12.0"}}))
        device = tmp_path / "d.json"
    openinfer("synth", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", device, "--partition-all", "-o", tmp_path / "out")
    assert "-Werror all-warnings" in (tmp_path / "out/Makefile").read_text()
    built = subprocess.run(["make", "-s"], cwd=tmp_path / "out", capture_output=True, text=True, timeout=300)
    assert built.returncode == 0 and not built.stdout + built.stderr


def language_model(folder, **sizes):
    words = [w for k, v in sizes.items() for w in (f"--{k}", str(v))]
    text = subprocess.run([sys.executable, REPO / "bench/gpu_lm.py", *words], capture_output=True, text=True, check=True).stdout
    (folder / "lm.oi").write_text(text)
    return folder / "lm.oi"


def test_a_language_model_decodes(openinfer, tmp_path):
    """Norms, products with bf16 weights, rotary angles, a cache, attention: each shared by three blocks."""
    graph = language_model(tmp_path, layers=2, dim=256, heads=4, kv=2, ffn=512, vocab=640, ctx=32)
    openinfer("verify", graph, *SMALL, "--partition-all", "--steps", "2", "--set", "token=3", "--set", "from=5", timeout=300,
              env={"CUDA_ON_CPU_BLOCKS": "3", "CUDA_ON_CPU_ORDER": "9"})  # fmt: skip


def test_weights_are_read_16_bytes_at_once(openinfer, tmp_path):
    openinfer("synth", language_model(tmp_path, layers=1, vocab=1024, ctx=64), "--target", "cuda_hopper", "-o", tmp_path / "out")
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not installed: what the compiler makes of it is not looked at")
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-arch=sm_90", "-fmad=false", "-ptx", "-o", "lm.ptx", "lm.cu"], cwd=tmp_path / "out", check=True)
    assert len(re.findall(r"ld(\.global)?\.v4\.u32", (tmp_path / "out/lm.ptx").read_text())) >= 7


def test_kernels_are_timed_on_the_device(openinfer, tmp_path):
    graph = language_model(tmp_path, layers=1, dim=128, heads=4, kv=2, ffn=256, vocab=320, ctx=16)
    said = openinfer("bench", graph, *SMALL, "--kernels", "--json", "--steps", "2", "--set", "token=3", "--set", "from=1", timeout=300).stdout
    kernels = json.loads(said)["kernels"]
    assert len(kernels) > 10 and all(k["runs"] == 1 and k["measured_ns"] > 0 for k in kernels)
