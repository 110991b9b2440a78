"""Programs for microcontrollers: built by the cross compilers, run by qemu, compared with the simulator; and
what their certificate says, compared with what linker and run show."""

import functools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, REPO

TINY = REPO / "examples/tiny"
sys.path[:0] = [str(TINY), str(REPO / "examples"), str(REPO / "python/src")]
import numpy as np  # noqa: E402
import tiny_oinf  # noqa: E402
from openinfer.oinf import PackageWriter  # noqa: E402

NAMES = sorted(p.stem for p in TINY.glob("*.oi"))
ARM = ("arm-none-eabi-", "qemu-system-arm", "gcc-arm-none-eabi and qemu-system-arm")
RISCV = ("riscv64-unknown-elf-", "qemu-system-riscv32", "gcc-riscv64-unknown-elf and qemu-system-misc")
DEVICES = {"cortex_m4": ARM, "cortex_m7": ARM, "cortex_m55": ARM, "rv32imac": RISCV}
# Multiply-accumulates of a step, counted by hand from the published shapes.
MACS = {
    "jet_mlp": 16 * 64 + 64 * 32 + 32 * 32 + 32 * 5,
    "autoencoder": 2 * 640 * 128 + 6 * 128 * 128 + 2 * 128 * 8,
    "ds_cnn": 125 * 64 * (40 + 4 * (9 + 64)) + 64 * 12,
    "resnet8": 1024 * 16 * 9 * (3 + 2 * 16)
    + 256 * 32 * (9 * 16 + 9 * 32 + 16)
    + 64 * 64 * (9 * 32 + 9 * 64 + 32)
    + 64 * 10,
    "digits_conv": 4 * 16 * 9 + 8 * 4 * 4 * 9 + 8 * 10,
    "digits_t1": 64 * 32 + 32 * 32 + 32 * 10,
    "digits_t2": 64 * 32 + 32 * 32 + 32 * 10,
    "fir_word": 4 * 16 * 16 + 4 * 2,
    "jet_mlp_i6": 16 * 64 + 64 * 32 + 32 * 32 + 32 * 5,
    "lstm_cell": 8 * 32 + 8 * 32,
    "wake_word": 40 * 8 + 40 * 32 + 3 * (32 * 8 + 32 * 32) + 32 * 3,
}

# Instructions of the M4's bodies for each of those with Helium, at least. Depthwise rows of a DS-CNN are 5 wide, so half of
# their lanes are empty.
HELIUM = {"resnet8_i8": 3.3, "ds_cnn_i8": 1.45, "autoencoder_i8": 3.3, "jet_mlp_i8": 2}
# All pairs take minutes on an emulated machine: the M7 differs from the M4 in its FPU only, the M55 in bytes, and a
# ResNet in software floats is slow. A float autoencoder is larger than the M55's memory.
PAIRS = [
    (name, device)
    for name in NAMES
    for device in DEVICES
    if os.environ.get("OPENINFER_LONG")
    or not (device == "cortex_m7" and name not in ("jet_mlp", "ds_cnn_i8", "wake_word"))
    and not (device == "rv32imac" and name == "resnet8")
    and not (device == "cortex_m55" and name not in (*HELIUM, "wake_word", "wake_word_i8"))
]
PAIRS = [pair for pair in PAIRS if pair != ("autoencoder", "cortex_m55")]


def need(device):
    prefix, qemu, packages = DEVICES[device]
    for program in (prefix + "gcc", qemu):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (Debian: {packages})")
    return prefix


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mcu")


@pytest.fixture(scope="module")
def model(folder):
    @functools.cache
    def write(name):
        path = folder / f"{name}.oinf"
        tiny_oinf.write(name, str(path))
        return path

    return write


@pytest.fixture(scope="module")
def words(model):
    """words(NAME) -> graph, model and inputs of a tiny model."""

    def make(name):
        of_all = ["--set", "x=random:7:-128:127"] if name.endswith("_i8") else []
        return [TINY / f"{name}.oi", "--model", model(name)], of_all

    return make


@pytest.fixture(scope="module")
def build(openinfer, folder, words):
    """build(NAME, DEVICE) -> the folder of a program that was built, ran 8 steps and agreed with the simulator."""

    @functools.cache
    def make(name, device):
        out = folder / f"{name}-{device}"
        what, values = words(name)
        more = ["--target", device, "--steps", 8, "--cflags", "-O2 -Werror", "--keep", out]
        result = openinfer("verify", *what, *values, *more, timeout=600)
        assert "8 steps compared: they agree" in result.stdout
        return out

    return make


# -- the programs do what the simulator does --


@pytest.mark.parametrize("name, device", PAIRS)
def test_program_agrees_with_the_simulator(build, name, device):
    need(device)
    used, reserved = map(int, re.findall(r"stack: (\d+) of (\d+)", (build(name, device) / "run.log").read_text())[0])
    assert 0 < used < reserved


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["jet_mlp_i8", "wake_word", "wake_word_i8"])
def test_every_node_agrees(openinfer, words, name, device):
    need(device)
    what, values = words(name)
    result = openinfer("verify", *what, *values, "--target", device, "--per-node", "--steps", 8)
    assert "8 steps compared: they agree" in result.stdout
    assert result.stdout.count("\nnode ") >= 9


# -- what a step costs --

# Multiply-accumulates for each instruction, at least; bytes of working memory and of flash, at most. What two layers
# of a DS-CNN have between them lies where what the first reads lay; of a ResNet's largest layers only rows are kept,
# beside all of a layer of the second size.
BARS = {"resnet8_i8": (0.63, 8192 + 8704, None), "ds_cnn_i8": (0.52, 8064, 48 * 1024), "autoencoder_i8": (0.6, 2560, None)}


@pytest.mark.parametrize("name", BARS)
def test_step_is_fast_and_small(build, name):
    """Counted by an emulator that gives every instruction a nanosecond: the same on every machine."""
    prefix = need("cortex_m4")
    out = build(name, "cortex_m4")
    rate, arena, flash = BARS[name]
    instructions = int(re.search(r"step: (\d+) ns", (out / "run.log").read_text())[1])
    assert MACS[name.removesuffix("_i8")] / instructions >= rate
    certificate = json.loads((out / "plan.json").read_text())["certificate"]
    assert certificate["arena_bytes"] <= 1.05 * certificate["arena_bound_bytes"]
    assert certificate["arena_bytes"] <= arena
    text, data = subprocess.run(
        [f"{prefix}size", out / f"{name}.elf"], capture_output=True, text=True, check=True
    ).stdout.split()[6:8]
    assert not flash or int(text) + int(data) <= flash


@pytest.mark.parametrize("name", HELIUM)
def test_vectors_are_faster(build, name):
    need("cortex_m55")
    packed, vectors = (
        int(re.search(r"step: (\d+) ns", (build(name, device) / "run.log").read_text())[1]) for device in ("cortex_m4", "cortex_m55")
    )
    print(f"{name}: {packed / vectors:.2f}")
    assert packed / vectors >= HELIUM[name]
    text = (build(name, "cortex_m55") / f"{name}.c").read_text()
    assert "#include <arm_mve.h>" in text and "vmladavaq_s8" in text and "smlad" not in text


# Convolutions of bytes that no step and no vector divides: channels, filters, rows, columns, kernel, strides, pads, groups.
ODD = [
    (5, 3, 7, 9, [2, 5], [3, 3], [1, 4, 0, 0], 1),
    (3, 5, 4, 7, [1, 1], [1, 1], [0, 0, 0, 0], 1),
    (5, 4, 6, 7, [1, 1], [2, 2], [0, 0, 0, 0], 1),
    (1, 6, 19, 10, [10, 4], [2, 2], [4, 1, 5, 1], 1),
    (2, 3, 9, 10, [3, 3], [2, 2], [0, 0, 1, 1], 1),
    (17, 7, 5, 21, [3, 3], [1, 1], [1, 1, 1, 1], 1),
    (6, 6, 25, 5, [3, 3], [1, 1], [1, 1, 1, 1], 6),
    (3, 6, 9, 8, [3, 2], [2, 2], [1, 0, 1, 1], 3),
    (2, 2, 20, 30, [5, 5], [1, 1], [2, 2, 2, 2], 2),
    (3, 3, 7, 9, [2, 2], [3, 3], [0, 1, 1, 0], 3),
]
# Rows, depth and columns of matrix products.
ODD_PRODUCTS = [(1, 7, 13), (1, 65, 9), (2, 8, 8), (3, 5, 5), (5, 33, 2)]


@pytest.fixture(scope="module")
def odd_shapes(folder):
    """A graph of them all, each with inputs of its own, and its package."""
    random, lines = np.random.default_rng(3), {"dynamic": [], "constant": [], "volatile": [], "block entry": []}
    with PackageWriter(folder / "odd.oinf") as model:

        def add(x, w, y, op):
            n = len(lines["dynamic"])
            for kind, letter, dtype, dims in (("dynamic", "x", "i8", x), ("constant", "w", "i8", w), ("volatile", "y", "i32", y)):
                lines[kind].append(f"  {letter}{n}: {dtype}{list(dims)};")
            model.add_tensor(f"w{n}", random.integers(-128, 128, w, np.int8))
            lines["block entry"].append(f"  op {op.format(x=f'x{n}', w=f'w{n}')} >> y{n};")

        for c, m, h, w, k, strides, pads, group in ODD:
            places = [(size + pads[a] + pads[a + 2] - k[a]) // strides[a] + 1 for a, size in enumerate((h, w))]
            of = f"strides={strides}, pads={pads}, group={group}, acc=[i32]"
            add((1, c, h, w), (m, c // group, *k), (1, m, *places), f"conv2d({{x}}, {{w}}, {of})")
        for rows, k, m in ODD_PRODUCTS:
            add((rows, k), (k, m), (rows, m), "matmul({x}, {w}, acc=[i32])")
    lines["block entry"].append("  return " + ", ".join(f"y{n}" for n in range(len(lines["dynamic"]))) + ";")
    graph = folder / "odd.oi"
    graph.write_text("".join(f"{kind} {{\n" + "\n".join(text) + "\n}\n" for kind, text in lines.items()))
    return graph


@pytest.mark.parametrize("device, step", [("cortex_m4", "smlad"), ("cortex_m55", "vmladavaq_s8")])
def test_odd_shapes(openinfer, odd_shapes, tmp_path, device, step):
    need(device)
    values = [word for n in range(len(ODD) + len(ODD_PRODUCTS)) for word in ("--set", f"x{n}=random:{n}:-128:127")]
    said = openinfer("verify", odd_shapes, "--model", odd_shapes.with_suffix(".oinf"), *values, "--target", device, "--steps", 2,
                     "--cflags", "-O2 -Werror", "--keep", tmp_path / "kept")  # fmt: skip
    assert "2 steps compared: they agree" in said.stdout
    text = (tmp_path / "kept/odd.c").read_text()
    calls = re.findall(r"^    (oi_mac_\w+)\(", text, re.M)
    assert sorted(set(calls)) == ["oi_mac_conv", "oi_mac_dense", "oi_mac_depthwise"] and len(calls) == len(ODD) + len(ODD_PRODUCTS)
    assert step in text


@pytest.mark.parametrize("device", ["cortex_m4", "rv32imac"])
def test_bench_counts_instructions(openinfer, build, words, device):
    """The same as a run of verify, which says so in its log."""
    need(device)
    what, values = words("jet_mlp_i8")
    most = int(re.search(r"step: (\d+) ns", (build("jet_mlp_i8", device) / "run.log").read_text())[1])
    row = json.loads(openinfer("bench", *what, *values, "--target", device, "--steps", 4, "--json").stdout)["rows"][0]
    assert abs(row["median_instructions"] - most) <= 0.02 * most and "median_ns" not in row
    assert row["macs"] == MACS["jet_mlp"] and row["macs_per_instruction"] == pytest.approx(row["macs"] / row["median_instructions"], 1e-3)
    text = openinfer("bench", *what, *values, "--target", device, "--steps", 4).stdout
    assert re.search(rf"{device} +\d+ instr .* MACs/instr", text)
    assert "only in programs of this machine" in openinfer("bench", *what, "--target", device, "--kernels", code=3).stderr


def test_bench_begins_anew_when_memory_is_full(openinfer, tmp_path):
    need("cortex_m4")
    (tmp_path / "full.oi").write_text(
        "dynamic { x: f32[4]; }\npersistent {\n  step: i32 @init(0);\n  K(t): f32[4] @table @cap(t=3);\n}\n"
        "block entry {\n  cache.write x >> K[step];\n  cache.increment step;\n  return;\n}\n"
    )
    said = openinfer("bench", tmp_path / "full.oi", "--target", "cortex_m4", "--steps", 8, "--set", "x=1,2,3,4")
    assert re.search(r"cortex_m4 +\d+ instr", said.stdout)


@pytest.mark.parametrize("without", ["recipes", "match", "narrow32", "inplace", "ssa", "fuse", "inline"])
def test_no_pass_is_needed(openinfer, words, without):
    need("cortex_m4")
    what, values = words("ds_cnn_i8")
    result = openinfer("verify", *what, *values, "--target", "cortex_m4", "--steps", 1, "--without", without, timeout=600)
    assert "1 steps compared: they agree" in result.stdout or "1 step compared: they agree" in result.stdout


# -- what they are made of --


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("_i8")])
def test_integers_need_no_floats(build, name):
    """No float instruction, and no call of one in software."""
    for device in ("cortex_m4", "cortex_m55", "rv32imac"):
        if (name, device) not in PAIRS:
            continue
        prefix = need(device)
        elf = build(name, device) / f"{name}.elf"
        code = subprocess.run([f"{prefix}objdump", "-d", elf], capture_output=True, text=True, check=True).stdout
        if device == "cortex_m55":  # vectors of integers; the compiler may use no unit of floats
            assert "+nofp" in (elf.parent / "Makefile").read_text()
        else:
            assert not re.findall(r"\t(v[a-z]+[.\t].*|f(?:add|mul|lw|sw|mv|cvt)\..*)", code)
        names = subprocess.run([f"{prefix}nm", elf], capture_output=True, text=True, check=True).stdout
        assert not re.findall(r"__aeabi_[fd]\w+|__aeabi_\w+2[fd]\b|__\w+[sd]f\d*\b", names)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_borrowed(build, device):
    """No C library, no heap: all that is linked comes with the program or the compiler."""
    prefix = need(device)
    out = build("wake_word", device)
    names = subprocess.run([f"{prefix}nm", out / "wake_word.elf"], capture_output=True, text=True, check=True).stdout
    assert not re.findall(r" U |malloc|\bfree\b|_sbrk|printf|\bexp\b|expf", names)
    used = {pathlib.Path(m).name for m in re.findall(r"^LOAD (\S+)", (out / "wake_word.map").read_text(), re.M)}
    used.discard("linker")  # "LOAD linker stubs": none of ours needs one
    assert used == {
        "wake_word.o", "weights.o", "freestanding.o", "main.o", "semihosting.o", "start.o", "libgcc.a",
    }  # fmt: skip
    for text in out.glob("*.c"):
        assert not re.findall(r"#include <(?!std(def|int)\.h)", text.read_text()), text


@pytest.mark.parametrize("device", ["cortex_m4", "rv32imac"])
def test_only_the_demo_uses_semihosting(openinfer, words, tmp_path, device):
    """The library asks nothing of a board: no input, no output, no clock. The demo calls back what hal.h declares."""
    prefix = need(device)
    openinfer("synth", *words("jet_mlp_i8")[0], "--target", device, "-o", tmp_path / "out")
    subprocess.run(["make", "-s", "-C", tmp_path / "out", "libjet_mlp_i8.a"], check=True)
    made = tmp_path / "out/libjet_mlp_i8.a"
    members = subprocess.run([f"{prefix}ar", "t", made], capture_output=True, text=True, check=True).stdout.split()
    assert members == ["jet_mlp_i8.o", "weights.o", "freestanding.o"]
    code = subprocess.run([f"{prefix}objdump", "-d", made], capture_output=True, text=True, check=True).stdout
    names = subprocess.run([f"{prefix}nm", made], capture_output=True, text=True, check=True).stdout
    assert not re.findall(r"\t(bkpt|ebreak)", code) and "hal_" not in names
    text = {path.name for path in (tmp_path / "out").glob("*.c") if re.search(r"bkpt|ebreak", path.read_text())}
    assert text == {"semihosting.c"}


def test_names_of_sections_are_kept(openinfer, words, folder):
    need("cortex_m4")
    device = folder / "sections.json"
    device.write_text(
        '{"extends": "cortex_m4", "mcu": {"flash_section": ".model_weights", "ram_section": ".model_state"}}'
    )
    what, values = words("jet_mlp_i8")
    keep = folder / "sections"
    openinfer("verify", *what, *values, "--target", device, "--keep", keep)
    text = (keep / "jet_mlp_i8.map").read_text()
    assert re.search(r"^ \.model_weights\s", text, re.M) and re.search(r"^ \.model_state\s", text, re.M)


@pytest.mark.parametrize(
    "name, change, align",
    [("cortex_m4", {}, 8), ("rv32imac", {}, 8), ("cortex_m7", {}, 32), ("cortex_m4", {"align_bytes": 64}, 64)],
)
def test_alignment_is_the_devices(openinfer, words, tmp_path, name, change, align):
    """Without a cache nothing is padded to lines of one."""
    (tmp_path / "device.json").write_text(json.dumps({"extends": name, "mcu": change}))
    out = tmp_path / "out"
    openinfer("synth", *words("jet_mlp_i8")[0], "--target", tmp_path / "device.json", "-o", out)
    files = [out / "jet_mlp_i8.h", out / "jet_mlp_i8.c", out / "weights.c"]
    assert set(re.findall(r"OI_ALIGNED\((\d+)\)", "".join(f.read_text() for f in files))) == {str(align)}
    assert f".weights : ALIGN({align})" in (out / "link.ld").read_text()
    plan = json.loads((out / "plan.json").read_text())
    offsets = [t["offset"] for t in plan["buffers"] if t["space"] in ("weights", "arena")]
    assert all(at % align == 0 for at in offsets) and (align == 64 or any(at % 64 for at in offsets))
    if align == 8:
        certificate = plan["certificate"]
        parts = sum(certificate[k] for k in ("io_bytes", "state_bytes", "arena_bytes", "undo_bytes"))
        assert certificate["struct_bytes"] <= parts + 4 * 8 + 16


def test_memory_lies_where_the_device_file_says(openinfer, words, tmp_path):
    (tmp_path / "device.json").write_text(
        json.dumps({"extends": "cortex_m4", "memory": {"flash_bytes": 65536, "ram_bytes": 49152, "global_bytes": 114688},
                    "mcu": {"flash_origin": 0x08000000, "ram_origin": 0x10000000}})
    )  # fmt: skip
    openinfer("synth", *words("jet_mlp_i8")[0], "--target", tmp_path / "device.json", "-o", tmp_path / "out")
    script = (tmp_path / "out/link.ld").read_text()
    assert "flash (rx) : ORIGIN = 0x08000000, LENGTH = 65536" in script
    assert "ram (rwx) : ORIGIN = 0x10000000, LENGTH = 49152" in script


@pytest.mark.parametrize(
    "mcu, says",
    [
        ({"flash_origin": 0, "ram_origin": 4096}, "RAM at 4096 and flash at 0 overlap"),
        ({"ram_origin": 0xFFFFFF00}, "RAM ends beyond the addresses of 32 bits"),
        ({"flash_origin": 1 << 33}, "flash ends beyond the addresses of 32 bits"),
    ],
)
def test_memory_must_have_a_place(openinfer, words, tmp_path, mcu, says):
    (tmp_path / "device.json").write_text(json.dumps({"extends": "cortex_m4", "mcu": mcu}))
    result = openinfer("synth", *words("jet_mlp_i8")[0], "--target", tmp_path / "device.json", "-o", tmp_path / "out", code=1)
    assert "error[E091]" in result.stderr and says in result.stderr


# -- the certificate --


def symbol_size(prefix, path, name):
    text = subprocess.run([f"{prefix}nm", "-S", path], capture_output=True, text=True, check=True).stdout
    return int(re.search(rf"^\w+ (\w+) \w {name}$", text, re.M)[1], 16)


@pytest.mark.parametrize("name, device", PAIRS)
def test_certificate_holds(build, name, device):
    prefix = need(device)
    out = build(name, device)
    plan = json.loads((out / "plan.json").read_text())
    certificate = plan["certificate"]
    assert symbol_size(prefix, out / "main.o", "program") == certificate["struct_bytes"]
    assert symbol_size(prefix, out / "weights.o", f"{name}_weights") == certificate["weights_bytes"]
    parts = sum(certificate[k] for k in ("io_bytes", "state_bytes", "arena_bytes", "undo_bytes"))
    assert parts <= certificate["struct_bytes"] <= parts + 4 * 64 + 16
    assert plan["graphs"][0]["cost"]["macs"] == MACS[name.removesuffix("_i8")]
    assert not plan["graphs"][0]["cost"]["is_open"]
    sections = subprocess.run([f"{prefix}size", "-A", out / f"{name}.elf"], capture_output=True, text=True).stdout
    size = dict(re.findall(r"^\.(\w+)\s+(\d+)", sections, re.M))
    assert certificate["struct_bytes"] <= int(size["bss"]) <= certificate["struct_bytes"] + 64
    assert int(size["data"]) <= 64
    header = (out / f"{name}.h").read_text()
    assert f"struct {name}: {certificate['struct_bytes']} bytes" in header
    assert f"{plan['graphs'][0]['cost']['macs']} multiply-accumulates" in header


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["jet_mlp", "jet_mlp_i8", "wake_word"])
def test_stack_and_flash_are_measured(openinfer, build, words, folder, name, device):
    """What compiler and linker give bounds what the run used and is what the linker wrote."""
    prefix = need(device)
    out = folder / f"certified-{name}-{device}"
    openinfer("synth", *words(name)[0], "--target", device, "--certify", "-o", out)
    found = json.loads((out / "plan.json").read_text())["certificate"]["measured"]
    run = build(name, device)
    used = int(re.search(r"stack: (\d+)", (run / "run.log").read_text())[1])
    assert found["call_stack_bytes"] < found["program_stack_bytes"]
    assert used <= found["program_stack_bytes"] <= used + 256
    subprocess.run(["make", "-s", "-C", out], check=True)
    text, data = subprocess.run(
        [f"{prefix}size", out / f"{name}.elf"], capture_output=True, text=True, check=True
    ).stdout.split()[6:8]
    assert abs(found["flash_bytes"] - int(text) - int(data)) <= 64  # alignment between sections
    header = (out / f"{name}.h").read_text()
    assert f"{found['call_stack_bytes']} bytes for a call" in header
    assert f"code and weights: {found['flash_bytes']} bytes" in header


def test_measured_stack_and_flash_can_be_too_much(openinfer, words, folder):
    need("cortex_m4")
    what, _ = words("jet_mlp_i8")
    for change, says in (
        ({"mcu": {"stack_bytes": 256}}, r"error\[E062\]: the program needs up to \d+ bytes of stack, mcu\.stack_bytes .* 256"),
        ({"memory": {"flash_bytes": 7000}}, r"error\[E062\]: with its code the program needs \d{4,5} bytes of flash, .* has 7000"),
    ):
        device = folder / "tight.json"
        device.write_text(json.dumps({"extends": "cortex_m4", **change}))
        out = folder / "tight"
        result = openinfer("synth", *what, "--target", device, "--certify", "-o", out, code=1)
        assert re.search(says, result.stderr)
        assert not out.exists()


def test_plan_is_the_same_every_time(openinfer, words, folder):
    """Same input, same bytes; and the device.json beside the plan stands for the device."""
    what, _ = words("ds_cnn_i8")
    a, b, c = folder / "same-a", folder / "same-b", folder / "same-c"
    openinfer("synth", *what, "--target", "rv32imac", "-o", a)
    openinfer("synth", *what, "--target", "rv32imac", "-o", b)
    openinfer("synth", *what, "--target", a / "device.json", "-o", c)
    for path in sorted(a.iterdir()):
        assert path.read_bytes() == (b / path.name).read_bytes()
        assert path.read_bytes() == (c / path.name).read_bytes()

    def check(value):
        if isinstance(value, dict):
            assert list(value) == sorted(value)
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            check(part)

    plan = json.loads((a / "plan.json").read_text())
    check(plan)
    at = sorted((t["offset"], t["bytes"]) for t in plan["buffers"] if t["space"] == "weights")
    assert all(x[0] + x[1] <= y[0] for x, y in zip(at, at[1:]))
    assert max(t["offset"] + t["bytes"] for t in plan["buffers"] if t["space"] == "arena") <= (
        plan["certificate"]["arena_bytes"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_synthesis_takes_no_time(words, folder, sanitized, name):
    """A fifth of a second: processor time, which neighbours do not change."""
    if sanitized:
        pytest.skip("a sanitized library is slow on purpose")
    times = []
    for device in (device for device in DEVICES if device != "cortex_m55"):
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([BIN, "synth", *words(name)[0], "--target", device, "-o", folder / "quick"], check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime)
    print(f"{name}: {max(times):.3f} s")
    assert max(times) < 0.2


# -- what does not fit is refused --


@pytest.mark.parametrize(
    "memory, says",
    [
        ({"ram_bytes": 40000}, r"needs \d+ bytes of RAM, .* has 40000"),
        ({"flash_bytes": 30000}, r"needs \d+ bytes of read-only memory, .* has 30000"),
    ],
)
def test_what_does_not_fit_is_refused(openinfer, words, folder, memory, says):
    device = folder / "small.json"
    device.write_text(json.dumps({"extends": "cortex_m4", "memory": memory}))
    what, _ = words("ds_cnn")
    out = folder / "refused"
    result = openinfer("synth", *what, "--target", device, "-o", out, code=1)
    assert re.search(r"ds_cnn\.oi:\d+:\d+: error\[E062\]: the program " + says, result.stderr)
    assert re.search(r"note: RAM \d+: inputs and outputs \d+, state \d+, working memory \d+", result.stderr)
    largest = [int(n) for n in re.findall(r"note: (\d+) bytes: '\w+' f32\[", result.stderr)]
    assert len(largest) == 5 and largest == sorted(largest, reverse=True)
    assert not out.exists() and not list(folder.glob("refused*"))


FUNCTIONS = "acos acosh asin asinh atan atanh cos cosh erf exp log sigmoid sin sinh softplus tan tanh".split()


@pytest.fixture(scope="module")
def functions(folder):
    """A graph of every function of f32 that a C library would have. Lines name functions, with a space and without."""
    lines = [f"  op {name} (x) >> y_{name};\n  op {name}(x) >> z_{name};\n" for name in FUNCTIONS]
    lines += [f"  op {name}(x, x) >> y_{name};\n" for name in ("pow", "atan2")]
    names = [f"y_{n}" for n in [*FUNCTIONS, "pow", "atan2"]] + [f"z_{n}" for n in FUNCTIONS]
    graph = folder / "functions.oi"
    graph.write_text(
        "dynamic {\n  x: f32[5];\n}\n\nvolatile {\n"
        + "".join(f"  {n}: f32[5];\n" for n in names)
        + "}\n\nblock entry {\n"
        + "".join(lines)
        + "  return;\n}\n"
    )
    return graph


@pytest.mark.parametrize("device", ["mcu_generic", *DEVICES])
def test_f32_functions_need_no_library(openinfer, functions, tmp_path, device):
    """They are the program's own text. The lines of the graph in its comments are no calls."""
    openinfer("synth", functions, "--target", device, "-o", tmp_path / "out")
    if device in ("cortex_m4", "rv32imac"):
        need(device)
        assert "they agree" in openinfer("verify", functions, "--target", device, "--steps", 2, "--set", "x=random:3:0:0.9").stdout


def test_f64_functions_need_a_library(openinfer, tmp_path):
    graph = tmp_path / "wide.oi"
    graph.write_text("dynamic {\n  x: f64[4];\n}\n\nvolatile {\n  y: f64[4];\n}\n\nblock entry {\n  op exp(x) >> y;\n  return y;\n}\n")
    result = openinfer("synth", graph, "--target", "cortex_m7", "-o", tmp_path / "out", code=1)
    assert "error[E060]: 'exp' of f64 needs a C library" in result.stderr
    assert not (tmp_path / "out").exists()
    openinfer("synth", graph, "--target", "cpu_scalar", "-o", tmp_path / "out")


# -- weights beside the program, or in it --


def test_weights_in_a_file_or_compiled_in(openinfer, words, folder):
    what, _ = words("jet_mlp")
    said = []
    for way in ("file", "embed"):
        out = folder / f"weights-{way}"
        openinfer("synth", *what, "--target", "cpu_scalar", "--weights", way, "-o", out)
        assert (out / "weights.c").exists() == (way == "embed")
        assert (out / "weights.bin").exists() == (way == "file")
        subprocess.run(["make", "-s", "-C", out, "CFLAGS=-O2 -Werror"], check=True)
        run = subprocess.run(["./jet_mlp"], cwd=out, input=(b"\0" + bytes(range(64))) * 3, capture_output=True, check=True)
        said.append(run.stdout)
    assert said[0] == said[1] and len(said[0]) > 3 * 20
    result = openinfer("synth", *what, "--target", "cpu_scalar", "--weights", "both", "-o", folder / "no", code=2)
    assert "--weights both" in result.stderr
