"""What CONTRIBUTING.md says a new target touches is all that it touches: a folder and a line, in a copy."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import REPO

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD", REPO / "build"))


def test_a_target_is_a_folder_and_a_line(tmp_path, example_package):
    """The null target under another name takes devices of its own vendor, ahead of all others."""
    if not shutil.which("cc"):
        pytest.skip("cc is not installed")
    if os.environ.get("OPENINFER_SANITIZED"):
        pytest.skip("the library is linked without its sanitizer")
    emit = tmp_path / "src/emit"
    (emit / "copycat").mkdir(parents=True)
    text = (REPO / "src/emit/null/null.c").read_text()
    assert text.count("d->api == OI_DEVICE_NULL") == 1 and text.count("oi_target_null") == 1
    text = text.replace("d->api == OI_DEVICE_NULL", 'strcmp(d->vendor, "copycat") == 0').replace("oi_target_null", "oi_target_copycat")
    (emit / "copycat/copycat.c").write_text(text)
    lines = (REPO / "src/emit/targets.c").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("X(c)"))
    lines.insert(at, "    X(copycat) \\")
    (emit / "targets.c").write_text("\n".join(lines) + "\n")
    flags = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-DOI_BUILD_TYPE=\"\"", "-DOI_BUILD_SANITIZERS=\"\"", "-DOI_BUILD_JSON=\"\""]
    flags += [f"-I{REPO}/include", f"-I{REPO}/src", f"-I{BUILD}/generated"]
    sources = [*emit.glob("*.c"), *emit.glob("copycat/*.c"), *(REPO / "cli").glob("*.c")]
    libraries = subprocess.run(["pkg-config", "--libs", "json-c"], capture_output=True, text=True, check=True).stdout.split()
    command = ["cc", *flags, "-o", tmp_path / "openinfer", *sources, BUILD / "libopeninfer.a", *libraries, "-lm", "-lpthread"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    device = tmp_path / "copycat.json"
    device.write_text('{"extends": "cpu_scalar", "device": {"type": "cpu", "vendor": "copycat", "name": "a copy"}}')
    words = ["synth", REPO / "examples/linear.oi", "--model", example_package("linear"), "--target", device, "-o", tmp_path / "out"]
    run = subprocess.run([tmp_path / "openinfer", *map(str, words)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "kernel matmul_add_y(" in (tmp_path / "out/linear.txt").read_text()
