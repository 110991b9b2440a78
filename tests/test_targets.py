"""`openinfer targets`: the profiles, this machine, and device files."""

import json
import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PROFILES = [
    "cortex_m4", "cortex_m55", "cortex_m7", "cpu_amx", "cpu_amx_bf16", "cpu_avx2", "cpu_avx512", "cpu_neon", "cpu_neon_dotprod", "cpu_scalar",
    "cuda_ada", "cuda_ampere", "cuda_blackwell", "cuda_generic", "cuda_hopper", "fpga_generic", "fpga_pipelined", "ice40_hx8k", "mcu_generic", "null",
    "rv32imac", "vulkan_ada", "vulkan_arc", "vulkan_desktop", "vulkan_generic", "vulkan_hopper", "vulkan_lavapipe", "vulkan_mobile", "vulkan_rdna3",
]  # fmt: skip


def test_list(openinfer):
    text = openinfer("targets").stdout
    assert re.findall(r"^  (\w+) +(?:cpu|gpu|mcu|fpga) ", text, re.M) == PROFILES
    assert "\nthis machine\n" in text
    assert re.search(r"^  nvcc +(-|/\S+) \(CUDA\)$", text, re.M)


def test_list_as_json(openinfer):
    data = json.loads(openinfer("targets", "--json").stdout)
    assert [p["name"] for p in data["profiles"]] == PROFILES
    assert all(p["notes"] for p in data["profiles"])
    machine = data["machine"]
    assert machine["architecture"] == os.uname().machine
    assert "scalar" in machine["isa"]
    for path in filter(None, machine["tools"].values()):
        assert os.access(path, os.X_OK)


def test_tools_come_from_path(openinfer, tmp_path, monkeypatch):
    """Only what is executable and on PATH counts, odd names included; no shell is asked."""
    odd = tmp_path / 'a "quoted" $(folder)'
    odd.mkdir()
    for name, mode in (("nvcc", 0o755), ("ghdl", 0o644)):
        (odd / name).write_text("#!/bin/sh\n")
        (odd / name).chmod(mode)
    (odd / "glslc").mkdir()
    monkeypatch.setenv("PATH", str(odd))
    data = json.loads(openinfer("targets", "--json").stdout)
    tools = data["machine"]["tools"]
    assert {n for n, path in tools.items() if path} == {"nvcc"}
    assert tools["nvcc"] == str(odd / "nvcc")
    assert not any(p["can_build"] for p in data["profiles"])
    monkeypatch.delenv("PATH")
    assert not any(json.loads(openinfer("targets", "--json").stdout)["machine"]["tools"].values())


@pytest.mark.parametrize("name", PROFILES)
def test_what_is_said_is_what_happens(openinfer, name, example_package, tmp_path):
    """synth writes, and verify builds and runs, where the list says so and nowhere else."""
    said = {p["name"]: p for p in json.loads(openinfer("targets", "--json").stdout)["profiles"]}[name]
    words = [ROOT / "examples/linear.oi", "--model", example_package("linear"), "--target", name]
    if name.startswith(("fpga", "ice40")):  # integers only
        (tmp_path / "sum.oi").write_text("dynamic {\n  x: i8[4];\n}\n\nblock entry {\n  op add(x, x) >> x;\n  return x;\n}\n")
        words = [tmp_path / "sum.oi", "--target", name]
    wrote = openinfer("synth", *words, "-o", tmp_path / "out", code=None)
    assert (said["synth"] in ("program", "listing")) == (wrote.returncode == 0), wrote.stderr
    shaders = openinfer("synth", *words, "--device-only", "-o", tmp_path / "shaders", code=None)
    assert name.startswith("vulkan") == (shaders.returncode == 0), shaders.stderr
    proved = openinfer("verify", *words, "--steps", "1", code=None)
    works = said["can_build"] and said["can_run"]
    assert proved.returncode == (0 if works else 3), proved.stderr


def test_a_compiler_without_headers_builds_nothing(openinfer, tmp_path, monkeypatch):
    for name in ("cc", "make", "aarch64-linux-gnu-gcc", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "gcc", "ghdl"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert not any(p["can_build"] for p in json.loads(openinfer("targets", "--json").stdout)["profiles"])


@pytest.mark.parametrize("name", [*PROFILES, str(ROOT / "devices/ada_mock.json")])
def test_normalised(openinfer, tmp_path, name):
    """What is printed is complete, and printing it again changes nothing."""
    text = openinfer("targets", "--strict", name).stdout
    data = json.loads(text)
    assert "extends" not in data
    assert list(data) == sorted(data)
    assert text == json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    again = tmp_path / "again.json"
    again.write_text(text)
    assert openinfer("targets", "--strict", str(again)).stdout == text


def test_several(openinfer):
    text = openinfer("targets", "cpu_scalar", "cpu_avx2").stdout
    assert text == "".join(openinfer("targets", n).stdout for n in ("cpu_scalar", "cpu_avx2"))


def test_wrong_files(openinfer, tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"device": {"type": "cpu", "api": "cuda"}}')
    result = openinfer("targets", str(path), code=1)
    assert result.stdout == ""
    assert result.stderr == (
        f"{path}:/device/api: error[E091]: cuda does not suit a device of type cpu, wanted c or null\n"
    )
    path.write_text('{"device": {"type": "cpu",}}')
    error = openinfer("targets", str(path), code=1).stderr
    assert f"{path}:1:27: error[E001]: found '}}', wanted a key in quotes" in error
    path.write_text('{"device": {"type": "cpu"}, "limts": {}}')
    result = openinfer("targets", str(path))
    assert "warning[W190]: unknown key" in result.stderr and 'did you mean "limits"' in result.stderr
    assert "limts" in json.loads(result.stdout)
    assert "error[E093]" in openinfer("targets", "--strict", str(path), code=1).stderr
    error = openinfer("targets", "cortex_m5", code=3).stderr
    assert "cannot open" in error and "did you mean cortex_m4?" in error


def test_fields(openinfer):
    """Every field of every profile is explained, and nothing is without an explanation."""
    rows = openinfer("targets", "--fields").stdout.splitlines()
    known = {row.split()[0] for row in rows}

    def paths(tree, prefix=""):
        for key, value in tree.items():
            yield prefix + key
            if isinstance(value, dict):
                yield from paths(value, f"{prefix}{key}.")

    for name in PROFILES:
        for path in paths(json.loads(openinfer("targets", name).stdout)):
            assert path in known or "." not in path, path
    assert all(len(row.split()) > 2 for row in rows)
