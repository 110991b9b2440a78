"""No field of a device file is without effect in silence.

Every field of every kind of device gets two values. Either what is written differs, or it is refused, or W191 says
that the field has no effect. What is compared is everything that is emitted but device.json, which repeats the file.
"""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, REPO
from openinfer.oinf import PackageWriter

sys.path[:0] = [str(REPO / "examples/tiny")]
import tiny_oinf  # noqa: E402

BASES = {
    "cpu": {"extends": "cpu_avx2", "cpu": {"threads": 2, "cache_l3_bytes": 4194304}},
    "mcu": {"extends": "cortex_m4"},
    "cuda": {"extends": "cuda_generic"},
    "vulkan": {"device": {"type": "gpu", "api": "vulkan"}, "features": {"storage8": True, "subgroup_ops": True}},
}
# The kind of a device is no value among others: each kind has its own emitter or is refused.
KINDS = {"device.type", "device.api"}
# What must be said with it, or else the value means nothing or contradicts another.
BESIDE = {
    "cpu.endianness": {"preferences": {"embed_weights": "always"}},
    "features.cooperative_matrix": {"features": {"fp16": True}},
    "memory.global_bytes": {"extends": None, "device": {"type": "mcu"}, "mcu": {"stack_bytes": 8192}},
    "features.subgroup_ops": {"limits": {"subgroup_size": 4}},
    "mcu.mve": {"mcu": {"core": "cortex_m55"}},
    "mcu.dsp": {"mcu": {"fpu": "single"}},
    "cpu.line_bytes": {"cpu": {"cache_l1_bytes": 4096}},
    "tuning.warm_up_slices": {"cpu": {"cache_l2_bytes": 4096}},
    "tuning.stream_ahead": {"cpu": {"cache_l2_bytes": 4096}},
    "cpu.memory_bytes_per_s": {"cpu": {"cache_l2_bytes": 0, "cache_l3_bytes": 0}},
    "memory.bandwidth_bytes_per_s": {"cpu": {"cache_l2_bytes": 0, "cache_l3_bytes": 0}},
    "cpu.tile_macs_per_s": {"extends": "cpu_amx_bf16"},
}
BESIDE_OF = {"memory.global_bytes": "mcu", "memory.bandwidth_bytes_per_s": "cpu"}  # only for this kind
# Two values where the usual ones would not do.
VALUES = {
    "device.vendor": ["generic", "special"],
    "device.architecture": ["generic", "special"],
    "limits.max_workgroup_size": [[128, 128, 64], [16, 16, 1]],
    "limits.max_workgroup_count": [[65535, 65535, 65535], [2, 2, 2]],
    "limits.max_workgroup_invocations": [64, 32],
    "limits.max_shared_memory_bytes": [16384, 64],
    "limits.max_storage_buffer_range_bytes": [134217728, 64],
    "limits.subgroup_size": [32, 4],
    "memory.global_bytes": [10000000, 100],
    "memory.flash_bytes": [4194304, 4000],
    "memory.ram_bytes": [4194304, 200],
    "mcu.flash_bytes": [4194304, 4000],
    "mcu.ram_bytes": [4194304, 200],
    "memory.bandwidth_bytes_per_s": [0, 1e8],
    "preferences.default_precision": ["fp32", "bf16"],
    "preferences.embed_weights": ["always", "auto"],
    "preferences.large_pages_bytes": [0, 1024],
    "preferences.host_lang": ["c", "cpp"],
    "cpu.isa": [["avx2", "fma", "f16c"], "scalar"],
    "cpu.c_standard": ["c11", "c99"],
    "cpu.threads": [1, 2],
    "cpu.cache_l1_bytes": [32768, 64],
    "cpu.cache_l2_bytes": [1048576, 4096],
    "cpu.cache_l3_bytes": [0, 2000000],
    "cpu.l1_bytes_per_s": [0, 1e7],
    "cpu.l2_bytes_per_s": [0, 1e7],
    "cpu.l3_bytes_per_s": [0, 1e7],
    "cpu.memory_bytes_per_s": [0, 1e7],
    "cpu.f32_macs_per_s": [0, 1e7],
    "cpu.int8_macs_per_s": [0, 1e4],
    "cpu.barrier_ns": [0, 1000000],
    "cpu.libc": [True, False],
    "cpu.endianness": ["little", "big"],
    "tuning.partition_elements": [0, 1],
    "tuning.gemm_depth": [0, 16],
    "tuning.gemm_rows": [0, 8],
    "tuning.qlinear_bytes": [0, 64],
    "tuning.stream_ahead": [0, 256],
    "tuning.warm_up_slices": [0, 4],
    "tuning.sdpa_floats": [0, 64],
    "mcu.core": ["cortex_m4", "cortex_m7"],
    "mcu.fpu": ["single", "none"],
    "mcu.stack_bytes": [8192, 16],
    "mcu.flash_origin": [0, 65536],
    "mcu.ram_origin": [536870912, 805306368],
    "mcu.flash_section": ["", ".weights"],
    "mcu.ram_section": ["", ".state"],
    "cuda.compute_capability": ["7.5", "9.0"],
    "cuda.ptx_version": ["", "8.5"],
    "cuda.tensor_cores": [[], ["f16"]],
    "cuda.max_threads_per_block": [1024, 128],
    "cuda.shared_bytes_per_block_optin": [49152, 65536],
    "cuda.sm_count": [1, 132],
    "vulkan.version": ["1.1", "1.3"],
    "vulkan.spirv": ["1.3", "1.5"],
    "vulkan.extensions": [[], ["VK_KHR_shader_float16_int8"]],
    "vulkan.shader_lang": ["glsl", "hlsl"],
}
# On microcontrollers other values matter.
VALUES_MCU = {"cpu.cache_l1_bytes": [0, 4096]}


def fields():
    """[(path, kind of device, what it takes, default)] of the fields of kinds that code is written for."""
    text = subprocess.run([BIN, "targets", "--fields"], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        path, wanted, *rest = re.split(r"\s{2,}", line)
        on = re.search(r" \(((?:gpu|cpu|mcu|fpga| |with|vulkan|cuda)+)\)$", line)
        on = on[1].replace("gpu with vulkan", "vulkan").replace("gpu with cuda", "cuda").replace("gpu", "vulkan cuda").split() if on else ["cpu", "mcu", "vulkan", "cuda"]
        found += [(path, kind, wanted, rest[0]) for kind in on if kind in BASES and path not in KINDS and not (path.startswith("mcu.") and kind != "mcu")]
    assert len({path for path, *_ in found}) > 70
    return list({row[:2]: row for row in reversed(found)}.values())[::-1]


def put(tree, path, value):
    for key in path.split(".")[:-1]:
        tree = tree.setdefault(key, {})
    tree[path.split(".")[-1]] = value


def merged(*trees):
    out = {}
    for tree in trees:
        for section, values in tree.items():
            if isinstance(values, dict):
                out.setdefault(section, {}).update(values)
            else:
                out[section] = values
    return out


def values_of(path, kind, wanted, standard):
    if kind == "mcu" and path in VALUES_MCU:
        return VALUES_MCU[path]
    if path in VALUES:
        return VALUES[path]
    if wanted == "bool":
        return [standard == "true", standard != "true"]
    if wanted in ("count", "number"):
        first = int(standard) if standard.isdigit() else 64
        return [first, first + 3 if wanted == "count" else 1e9]
    if wanted == "power of two":
        first = int(standard) if standard.isdigit() else 64
        return [first, first * 2]
    return [json.loads(standard), "another"]


def emitted(base, path, value, graphs, folder):
    """{file: bytes} of all programs, and what was said."""
    beside = BESIDE.get(path, {}) if base == BESIDE_OF.get(path, base) else {}
    tree = {key: v for key, v in merged(BASES[base], beside).items() if v is not None}
    put(tree, path, value)
    folder.mkdir(parents=True)
    (folder / "device.json").write_text(json.dumps(tree))
    files, said = {}, ""
    for graph, package in graphs:
        name = graph.stem
        out = folder / name
        done = subprocess.run([BIN, "synth", graph, "--model", package, "--target", folder / "device.json",
                               "-o", out], capture_output=True, text=True, timeout=100)  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        said += done.stderr
        for file in sorted(out.rglob("*")):
            if file.is_file() and file.name != "device.json":
                files[f"{name}/{file.relative_to(out)}"] = file.read_bytes()
    return files, said


HEAVY = """dynamic { x: f32[64, 512]; tok: f32[1, 512]; }
constant { W: f32[512, 512]; q: i8[512, 512] @init(3); scale: f32[512, 16] @init(0.01); }
persistent { n: i64 @init(0); K(t): f16[2, 64] @table @fixed(t=256); }
volatile { y: f32[64, 512]; z: f32[64, 512]; s: f32[64]; one: f32[1, 512]; a: f32[1, 2, 64]; }
block entry {
  assign k: f16[256, 2, 64];
  op matmul(x, W) >> y;
  op softmax(y) >> y;
  op sum_axis(y, axes=[1]) >> s;
  op qlinear(x, q, scale, act="q8") >> z;
  op qlinear(tok, q, scale, act="q8") >> one;
  op matmul(one, W) >> one;
  cache.increment n;
  return y, z, s, one;
}
"""
STREAM = """dynamic { x: f32[1, 512]; }
constant { W: f32[512, 512]; }
volatile { y: f32[1, 512]; }
block entry { op matmul(x, W) >> y; return y; }
"""
ATTENTION = """dynamic { q: f32[1, 4, 128, 32]; k: f32[1, 4, 256, 32]; v: f32[1, 4, 256, 32]; d: f64[8]; }
volatile { y: f32[1, 4, 128, 32]; e: f64[8]; }
block entry {
  op sdpa(q, k, v) >> y;
  op add(d, d) >> e;
  return y, e;
}
"""


# Only these fields want the larger graphs.
SLOW = re.compile(r"tuning|macs|bytes_per_s|cache|barrier|subgroup|shared|isa|threads|line_bytes|fp64|clock|mve|dsp|partition|l2_bytes")


@pytest.fixture(scope="module")
def graphs(example_package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    with PackageWriter(folder / "model.oinf") as model:
        model.add_tensor("W", np.random.default_rng(1).standard_normal((512, 512)).astype(np.float32))
    (folder / "heavy.oi").write_text(HEAVY)
    (folder / "attention.oi").write_text(ATTENTION)
    (folder / "stream.oi").write_text(STREAM)
    tiny_oinf.write("autoencoder_i8", str(folder / "tiny.oinf"))
    examples = [(REPO / f"examples/{name}.oi", example_package(name)) for name in ("kv_cache_decode", "quantised_linear")]
    own = [(folder / f"{name}.oi", folder / "model.oinf") for name in ("heavy", "attention", "stream")]
    return [*examples, *own, (REPO / "examples/tiny/autoencoder_i8.oi", folder / "tiny.oinf")]


@pytest.mark.parametrize("path,kind,wanted,standard", fields(), ids=lambda v: v if "." in v or v in BASES else "")
def test_a_field_acts_or_says_that_it_does_not(graphs, path, kind, wanted, standard, tmp_path):
    if not SLOW.search(path):
        graphs = graphs[:2]
    first, second = values_of(path, kind, wanted, standard)
    plain, _ = emitted(kind, path, first, graphs, tmp_path / "first")
    other, said = emitted(kind, path, second, graphs, tmp_path / "second")
    warned = f"/{path.replace('.', '/')}: warning[W191]" in said
    assert plain != other or warned, f"{path} of a {kind}: {first} and {second} give the same"
    if warned and "has no effect" in said:
        row = re.search(rf"{path.replace('.', '/')}: warning\[W191\]: has no effect", said)
        assert not row or plain == other, f"{path} of a {kind} acts: src/device/effects.c says it does not"
