"""synth -o DIR touches only what it wrote itself, and leaves nothing half-written."""

import os
import resource
import signal
import subprocess

import pytest
from conftest import BIN, REPO

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


@pytest.fixture
def killed_at(tmp_path_factory):
    """killed_at(N, WORDS): runs openinfer and kills it right before its N-th change of a folder. Whether it came to that."""
    library = tmp_path_factory.mktemp("kill_at") / "kill_at.so"
    words = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", REPO / "tests/preload/kill_at.c", "-ldl", "-o", library]
    subprocess.run(words, check=True)
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"

    def run(n, *words):
        env = {**os.environ, "LD_PRELOAD": str(library), "KILL_AT": str(n), "ASAN_OPTIONS": asan}
        code = subprocess.run([BIN, *words], env=env, capture_output=True).returncode
        assert code in (0, -signal.SIGKILL)
        return code != 0

    return run


@pytest.mark.parametrize("before", ["nothing", "another program"])
def test_killed_while_files_are_moved(openinfer, killed_at, tmp_path, graph, before):
    """Every file is whole, the old one or the new one, and what others wrote stays. The next run knows all of ours,
    and leaves what a run into a new folder leaves."""
    first = ["synth", graph, "--name", "first", "--target", "cpu_avx2"]
    second = ["synth", graph, "--name", "second", "--target", "cortex_m4"]
    openinfer(*first, "-o", tmp_path / "first")
    openinfer(*second, "-o", tmp_path / "second")
    old, new = contents(tmp_path / "first"), contents(tmp_path / "second")
    is_first = before == "nothing"
    n, is_killed = 0, True
    while is_killed:
        n += 1
        folder = tmp_path / f"run{n}"
        folder.mkdir()
        out = folder / "out"
        if not is_first:
            openinfer(*first, "-o", out)
            (out / "notes.txt").write_text("mine")
        is_killed = killed_at(n, *second, "-o", out)
        found = contents(out) if out.exists() else {}
        assert found.pop("notes.txt", None) == (None if is_first else b"mine")
        manifest = found.pop(".openinfer", b"")
        assert all(text in (old.get(name), new.get(name)) for name, text in found.items()), n
        assert set(found) <= set(manifest.decode().split()), "the manifest names all that is ours"
        openinfer(*second, "-o", out)
        found = contents(out)
        found.pop("notes.txt", None)
        assert found == new, n
        assert os.listdir(folder) == ["out"], "nothing is left beside the output"
    assert n > len(new), "it was killed between any two files"
