"""What the system tests share: the command under test and where things lie.

OPENINFER_BIN names the command (default: build/bin/openinfer). OPENINFER_SANITIZED is set when it
is slow on purpose, so that tests of speed and memory can ask for less.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

REPO = pathlib.Path(__file__).resolve().parent.parent
BIN = os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer")


# Seconds each. First, so that at the end no processor waits for the one that still has such a test.
LONG = ("test_random_graphs", "test_a_wrong_program_is_reduced", "test_models.py", "test_exact.py", "test_tune", "test_four_gigabytes",
        "test_mutants", "test_the_fuzzing_corpus", "without_the_instructions", "test_random_chains", "what_cannot_run_here",
        "test_synth_ops.py::test_ops")  # fmt: skip


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not any(word in item.nodeid for word in LONG))


def pytest_configure(config):
    config.addinivalue_line("markers", "emulated: instructions that this processor may lack are emulated")


def pytest_terminal_summary(terminalreporter):
    """For the summary of tools/test.sh, which names them."""
    for report in terminalreporter.stats.get("passed", []):
        if "emulated" in report.keywords:
            terminalreporter.write_line(f"EMULATED {report.nodeid}")


@pytest.fixture(scope="session")
def repo() -> pathlib.Path:
    return REPO


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder beside the repository with specifications, fixtures and seeds."""
    path = REPO.parent / "shared"
    if not path.is_dir():
        pytest.skip("there is no ../shared beside the repository")
    return path


@pytest.fixture(scope="session")
def sanitized() -> bool:
    return bool(os.environ.get("OPENINFER_SANITIZED"))


@pytest.fixture(scope="session")
def openinfer():
    """openinfer("check", "x.oi", code=1) runs the command, checks the exit code, returns the result. `verify` compares the
    whole program or every node, as most tests ask for one of them; nodes="auto" does what users get: both."""

    def run(*args, code=0, stdin=None, cwd=None, env=None, text=True, timeout=120, nodes=None):
        if args[:1] == ("verify",) and len(args) > 1 and nodes is None and "--per-node" not in args:
            args = ("verify", "--no-per-node", *args[1:])
        result = subprocess.run(
            [BIN, *map(str, args)],
            input=stdin if stdin is not None else ("" if text else b""),
            capture_output=True,
            text=text,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=timeout,
        )
        if code is not None:
            assert result.returncode == code, (
                f"openinfer {' '.join(map(str, args))}: exit {result.returncode}, wanted {code}\n"
                f"{result.stdout}\n{result.stderr}"
            )
        return result

    return run


@pytest.fixture(scope="session")
def needs_target(openinfer):
    """needs_target(NAME) leaves a test out whose programs cannot be built or run here."""
    profiles = {p["name"]: p for p in json.loads(openinfer("targets", "--json").stdout)["profiles"]}

    def check(target):
        if not profiles[target]["can_run"]:
            pytest.skip(f"this machine cannot run programs for {target}")
        if not profiles[target]["can_build"]:
            pytest.skip(f"no compiler for {target} here")

    return check


def once(folder, write):
    """The folder that `write` fills, filled by whoever comes first; others may do so at the same time."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        mine = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
        write(mine)
        try:
            mine.rename(folder)
        except OSError:  # somebody else did
            shutil.rmtree(mine)
    return folder


@pytest.fixture(scope="session")
def of_all_workers(tmp_path_factory) -> pathlib.Path:
    """A folder that all processes of this run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session")
def example_package(of_all_workers):
    """example_package(NAME) -> the package that examples/NAME_oinf.py writes, written once in a run; to be read only."""
    sys.path.insert(0, str(REPO / "examples"))
    import run_all

    def path(name):
        return once(of_all_workers / "example_packages" / name, lambda to: run_all.write_package(name, to)) / f"{name}.oinf"

    return path


@pytest.fixture(scope="session")
def example_reference(of_all_workers, example_package):
    """example_reference(NAME) -> (folder, run.json) of what examples/NAME_ref.py computes; to be read only."""
    pytest.importorskip("numpy", reason="references are computed with numpy")
    import run_all

    def of(name):
        package = example_package(name)
        folder = once(of_all_workers / "example_references" / name, lambda to: run_all.write_reference(name, package, to))
        return folder, json.loads((folder / "run.json").read_text())

    return of
