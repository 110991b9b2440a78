"""What holds for every command: help, man page, completion, wrong usage, exit codes."""

import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from conftest import BIN, REPO


def commands() -> list[str]:
    out = subprocess.run([BIN, "help", "--list"], capture_output=True, text=True, check=True)
    return out.stdout.split()


def options(openinfer, command: str) -> list[str]:
    """The long options that --help shows, without dashes."""
    text = openinfer(command, "--help").stdout
    text = text[text.index("\noptions:\n") :]
    return re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M)


COMMANDS = commands()


def test_no_command_shows_the_list(openinfer):
    result = openinfer(code=2)
    assert result.stdout == ""
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", result.stderr, re.M)


def test_help_and_version_before_the_command(openinfer):
    assert openinfer("--help").stdout == openinfer("help").stdout
    assert re.fullmatch(r"openinfer \d+\.\d+\.\d+\n", openinfer("--version").stdout)
    assert openinfer("--color=never", "version").stdout.startswith("openinfer ")
    assert openinfer("--color", "always", "version").stdout.startswith("openinfer ")
    assert "auto, always or never" in openinfer("--color=blue", "version", code=2).stderr
    assert "auto, always or never" in openinfer("--color", code=2).stderr
    assert "unknown option '--jsn'" in openinfer("--jsn", code=2).stderr


def test_misspelt_command(openinfer):
    error = openinfer("versoin", code=2).stderr
    assert "unknown command 'versoin': did you mean 'version'?" in error
    assert error.endswith("try openinfer --help\n")
    assert "did you mean" not in openinfer("zzzzzzzzz", code=2).stderr
    assert "did you mean 'version'" in openinfer("help", "versin", code=2).stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(openinfer, command):
    text = openinfer(command, "--help").stdout
    assert text == openinfer("help", command).stdout == openinfer(command, "-h").stdout
    assert text.startswith(f"usage: openinfer {command} [OPTION]...")
    for part in ("\noptions:\n", "\nexamples:\n", "\nexit code:\n"):
        assert part in text
    assert f"  openinfer {command}" in text or f"openinfer {command}" in text.split("examples:")[1]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_tells_the_same(openinfer, command):
    page = openinfer("help", "--man", command).stdout.replace("\\-", "-")
    for option in options(openinfer, command):
        assert f"--{option}" in page
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS"):
        assert f".SH {section}\n" in page
    assert f"openinfer-{command} (1)" in openinfer("help", "--man").stdout.replace("\\-", "-")


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_usage(openinfer, command):
    error = openinfer(command, "--no-such-option-at-all", code=2).stderr
    assert error.startswith(f"openinfer {command}: unknown option '--no-such-option-at-all'")
    assert error.endswith(f"try openinfer {command} --help\n")
    assert "unknown option '-?'" in openinfer(command, "-?", code=2).stderr
    assert "'purple' is not one of auto, always or never" in openinfer(
        command, "--color", "purple", code=2
    ).stderr
    assert "--color needs a value" in openinfer(command, "--color", code=2).stderr
    assert "--help takes no value" in openinfer(command, "--help=yes", code=2).stderr
    assert "unknown option '--hlep': did you mean '--help'?" in openinfer(
        command, "--hlep", code=2
    ).stderr


def test_words_are_counted(openinfer):
    assert "unexpected argument 'x'" in openinfer("version", "x", code=2).stderr
    assert "missing argument" in openinfer("completion", code=2).stderr
    assert "'tcsh' is not one of bash, zsh or fish" in openinfer(
        "completion", "tcsh", code=2
    ).stderr
    assert "unknown command '--json'" in openinfer("help", "--", "--json", code=2).stderr


def test_version(openinfer):
    value = json.loads(openinfer("version", "--json").stdout)
    assert set(value) == {"build", "compiler", "json", "sanitizers", "version"}
    assert openinfer("version").stdout.startswith(f"openinfer {value['version']}\n")
    assert value["json"].startswith("json-c ")


def test_values_of_options(openinfer, tmp_path):
    graph = tmp_path / "g.oi"
    graph.write_text("block entry { return; }\n")
    out = tmp_path / "g.json"
    spellings = (["-o", out], [f"-o{out}"], ["--output", out], [f"--output={out}"])
    for i, spelling in enumerate(spellings):
        order = [graph, *spelling] if i % 2 else [*spelling, graph]
        assert openinfer("graph", "--to", "json", *order).stdout == ""
        assert json.loads(out.read_text())["blocks"].keys() == {"entry"}
        out.unlink()
    assert openinfer("graph", "--to=text", "-o", "-", graph).stdout.startswith("block entry {")
    error = openinfer("graph", "--to", "png", graph, code=2).stderr
    assert "--to: 'png' is not one of json, text, " in error
    assert "-o needs a value" in openinfer("graph", graph, "-o", code=2).stderr


def test_files_are_written_whole_or_not_at_all(openinfer, tmp_path):
    graph = tmp_path / "g.oi"
    graph.write_text("block entry { return; }\n")
    error = openinfer("graph", graph, "-o", tmp_path / "no" / "x.json", code=3).stderr
    assert "cannot write" in error and "No such file" in error
    assert openinfer("graph", graph, "-o", "/dev/null").stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.oi"]
    graph.write_text("block entry { retrun; }\n")
    kept = tmp_path / "x.json"
    kept.write_text("kept")
    openinfer("graph", graph, "-o", kept, code=1)
    assert kept.read_text() == "kept"


def test_a_full_disk_is_an_error():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        result = subprocess.run([BIN, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 3
    assert "cannot write standard output" in result.stderr


def test_bash_completion(openinfer):
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    script = openinfer("completion", "bash").stdout

    def complete(*words):
        array = " ".join(f"'{w}'" for w in words)
        ask = f"COMP_WORDS=({array}) COMP_CWORD={len(words) - 1}; _openinfer; echo ${{COMPREPLY[@]}}"
        return subprocess.run(
            ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
        ).stdout.split()

    assert set(complete("openinfer", "")) == set(COMMANDS)
    assert complete("openinfer", "completion", "") == ["bash", "zsh", "fish"]
    assert complete("openinfer", "version", "--js") == ["--json"]
    assert complete("openinfer", "version", "--color", "=", "a") == ["auto", "always"]
    assert set(complete("openinfer", "help", "")) == set(COMMANDS)
    for command in COMMANDS:
        offered = complete("openinfer", command, "--")
        assert offered == [f"--{o}" for o in options(openinfer, command)]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_option(openinfer, shell):
    script = openinfer("completion", shell).stdout
    for command in COMMANDS:
        for option in options(openinfer, command):
            spelling = f"--{option}" if shell == "zsh" else f"-l {option}"
            assert spelling in script
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here to read the script")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_fish_completes(openinfer):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    script = openinfer("completion", "fish").stdout
    ask = f"{script}\ncomplete -C 'openinfer completion '"
    out = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["bash", "fish", "zsh"]


def test_color_only_on_a_terminal(openinfer):
    """On a pseudo-terminal, without one, and with NO_COLOR; through a command that reports."""
    args = ["check", "no-such-file.oi"]

    def on_terminal(*more, **env):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            pytest.skip(f"no pseudo-terminal here: {error}")
        subprocess.run([BIN, *args, *more], stderr=theirs, env={**os.environ, "TERM": "xterm", **env})
        os.close(theirs)
        text = os.read(ours, 65536).decode()
        os.close(ours)
        return text

    assert "\033[" in on_terminal(NO_COLOR="")
    assert "\033[" not in on_terminal(NO_COLOR="1")
    assert "\033[" not in on_terminal("--color=never", NO_COLOR="")
    assert "\033[" in on_terminal("--color=always", NO_COLOR="1")
    assert "\033[" not in openinfer(*args, code=None).stderr
    assert "\033[" in openinfer(*args, "--color=always", code=None).stderr


# -- what cannot be written or read --


@pytest.mark.parametrize("words", [["check", "examples/linear.oi"], ["fmt", "examples/overview.oi"], ["ops"], ["check", "examples/linear.oi", "--json"]])
def test_full_output_says_why(words):
    """The reason is that of the write that failed, not of what came after it."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([BIN, *words], cwd=REPO, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert done.stderr == f"openinfer {words[0]}: cannot write standard output: No space left on device\n"


def test_pipes_are_read_or_refused(openinfer, tmp_path):
    """A named pipe that no program writes to does not hang any command."""
    pipe, array = tmp_path / "pipe", tmp_path / "x.npy"
    for path in (pipe, array, tmp_path / "x.npz"):
        os.mkfifo(path)
    graph = REPO / "examples/linear.oi"
    says = "no program writes to this pipe"
    assert says in openinfer("check", pipe, code=3, timeout=20).stderr
    assert says in openinfer("synth", graph, "--target", pipe, "-o", tmp_path / "out", code=3, timeout=20).stderr
    assert "regular file" in openinfer("inspect", pipe, code=3, timeout=20).stderr
    (tmp_path / "g.oi").write_text("dynamic { x: f32[4]; } block entry { return x; }")
    assert "it is a pipe" in openinfer("run", tmp_path / "g.oi", "--set", f"x={array}", code=3, timeout=20).stderr
    assert "it is a pipe" in openinfer("compare", tmp_path / "g.oi", "--reference", tmp_path / "x.npz", code=3, timeout=20).stderr
    writer = subprocess.Popen(f"cat '{graph}' > '{pipe}'", shell=True)
    assert "ok" in openinfer("check", pipe, timeout=20).stdout
    writer.wait()
