"""synth -o DIR touches only what it wrote itself, and leaves nothing half-written."""

import os
import resource
import signal
import subprocess

import pytest
from conftest import BIN

TEXT = "dynamic { x: f32[4]; }\nvolatile { y: f32[4]; }\nblock entry {\n  op neg(x) >> y;\n  return;\n}\n"


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "g.oi"
    path.write_text(TEXT)
    return path


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize("name", ["main.c", "Makefile", "CMakeLists.txt", "weights.bin", "report.html"])
def test_files_of_others_are_kept(openinfer, tmp_path, graph, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    said = openinfer("synth", graph, "-o", out, code=1).stderr
    assert str(out / name) in said and "--force" in said
    assert contents(out) == {name: b"mine"} and [p.name for p in tmp_path.iterdir() if "openinfer" in p.name] == []
    openinfer("synth", graph, "-o", out, "--force")
    assert (out / name).read_bytes() != b"mine"


def test_a_link_is_a_file_of_others(openinfer, tmp_path, graph):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/main.c").symlink_to(tmp_path / "nowhere")
    openinfer("synth", graph, "-o", tmp_path / "out", code=1)


def test_stale_files_go_and_others_stay(openinfer, tmp_path, graph):
    out = tmp_path / "out"
    openinfer("synth", graph, "--name", "first", "-o", out, "--target", "cpu_avx2")
    (out / "notes.txt").write_text("mine")
    openinfer("synth", graph, "--name", "second", "-o", out, "--target", "cortex_m4")
    fresh = tmp_path / "fresh"
    openinfer("synth", graph, "--name", "second", "-o", fresh, "--target", "cortex_m4")
    both = contents(out)
    assert both.pop("notes.txt") == b"mine" and both == contents(fresh)
    listed = (out / ".openinfer").read_text().split()
    assert sorted([*listed, ".openinfer"]) == sorted(both)


@pytest.mark.parametrize("option", ["-o=", "--output="])
def test_a_folder_without_a_name_is_refused(openinfer, tmp_path, graph, option):
    """As from `-o "$OUT"` where OUT is not set: the root of the file system was taken."""
    before = sorted(os.listdir("/"))
    words = ["-o", ""] if option == "-o=" else [option]
    result = openinfer("synth", graph, *words, cwd=tmp_path, code=3)
    assert "its name is empty" in result.stderr and sorted(os.listdir("/")) == before


def test_missing_parents(openinfer, tmp_path, graph):
    openinfer("synth", graph, "-o", tmp_path / "a/b/c/")
    assert (tmp_path / "a/b/c/g.c").exists()
    (tmp_path / "file").write_text("")
    assert "file" in openinfer("synth", graph, "-o", tmp_path / "file/c", code=3).stderr


@pytest.mark.parametrize("line", ["../victim", "/etc/hosts", "..", ".", "", "sub/victim"])
def test_a_manifest_names_nothing_outside(openinfer, tmp_path, graph, line):
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    (tmp_path / "victim").write_text("mine")
    (out / "sub/victim").write_text("mine")
    (out / ".openinfer").write_text(line + "\n")
    openinfer("synth", graph, "-o", out)
    assert (tmp_path / "victim").exists() and (out / "sub/victim").exists()


@pytest.mark.parametrize("size", [0, 100, 2000])
def test_no_signal_when_files_are_limited(tmp_path, graph, size):
    """The default action of SIGXFSZ is to end the process: then it cannot clean up."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    out = tmp_path / "out"
    run = subprocess.run([BIN, "synth", graph, "-o", out], capture_output=True, text=True, preexec_fn=limit)
    assert run.returncode == 3 and "cannot write" in run.stderr, run
    assert sorted(os.listdir(tmp_path)) == ["g.oi"]
