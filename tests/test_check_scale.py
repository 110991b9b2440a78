"""`openinfer check` on large graphs: time and memory grow with the text, errors stop it early."""

import resource
import subprocess
import time

import pytest

from conftest import BIN

LINES = 100_000


def graph(statements, sections="", more=""):
    return (
        "dynamic { x: f32[B, D]; }\n"
        'volatile { y: f32[B, D]; W(l): f32[D, D] @pattern("W.{l}"); }\n'
        f"persistent {{ step: i32; K(l): f32[B, D] @table; }}\n{sections}"
        "block entry {\n" + "\n".join(statements) + "\n    return;\n}\n" + more
    )


def ordinary():
    kinds = [
        "assign t{i}: f32[B, D];",
        "op matmul(x, W[{i}]) >> t{t};",
        "op add(t{t}, y) >> t{t};",
        "cache.read K[step + {i}] >> t{t};",
        "op relu(t{t}, negative_slope=0.1, clamp_max=6.0) >> y;",
        "transfer t{t} >> y;",
    ]
    return graph(kinds[i % 6].format(i=i, t=i - i % 6) for i in range(LINES))


def blocks():
    """Chains of calls out of a loop, as long as they may be, to a block that uses the loop's index."""
    n, longest = LINES // 4, 990
    chain = "".join(
        f"block b{i} {{\n    op add(y, y) >> y;\n    branch b{n if i % longest == longest - 1 else i + 1};\n    return;\n}}\n"
        for i in range(n)
    )
    last = f"block b{n} {{ op matmul(y, W[l]) >> y; return; }}\n"
    calls = [f"branch b{i};" for i in range(0, n, longest)]
    return graph(["loop layers (l in 0..4) {", *calls, "}"], more=chain + last)


def lending():
    """Many rounds, with a block called in between and many consumers."""
    rounds = [f"yield v{i}; branch sub; await v{i};" for i in range(LINES // 4)]
    sections = "volatile {\n" + "".join(f"    v{i}: f32[B];\n" for i in range(LINES // 4)) + "}\n"
    consumers = "".join(f"block c{i} {{ await v{i}; yield v{i}; }}\n" for i in range(LINES // 4))
    return graph(rounds, sections, consumers + "block sub { op add(y, y) >> y; return; }\n")


def deps():
    return graph("op neg(y) >> y;\n    dep after(neg) before(add);\n    op add(y, y) >> y;" for _ in range(LINES // 3))


def errors():
    return graph("op add(yy, nothing) >> zz;" for _ in range(LINES))


def warnings():
    return graph([], "volatile {\n" + "".join(f"    u{i}: f32 init(1);\n" for i in range(LINES)) + "}\n")


def type_errors():
    return graph("op matmul(y, y, y) >> step2;" for _ in range(LINES))


def check(tmp_path, text, sanitized):
    path = tmp_path / "big.oi"
    path.write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    start = time.monotonic()
    result = subprocess.run([BIN, "check", str(path)], capture_output=True, text=True, timeout=120)
    wall = time.monotonic() - start
    user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    # processor time: a busy machine is not a slow check
    assert user < (15 if sanitized else 1), f"{user:.2f} s of processor time, {wall:.2f} s in all"
    return result


@pytest.mark.parametrize("make", [ordinary, blocks, lending, deps], ids=lambda f: f.__name__)
def test_large_graphs_are_fast(tmp_path, sanitized, make):
    text = make()
    assert text.count("\n") >= LINES * 0.99 or make is lending
    result = check(tmp_path, text, sanitized)
    assert result.returncode == 0, result.stderr[:2000]
    assert ": ok (" in result.stdout and result.stderr == ""


@pytest.mark.parametrize("make", [errors, type_errors], ids=lambda f: f.__name__)
def test_thousands_of_errors_stop_at_twenty(tmp_path, sanitized, make):
    result = check(tmp_path, make(), sanitized)
    assert result.returncode == 1
    assert result.stderr.count("error[") == 20
    assert result.stderr.endswith("stopped after 20 errors\n")


def test_thousands_of_warnings_are_counted(tmp_path, sanitized):
    result = check(tmp_path, warnings(), sanitized)
    assert result.returncode == 0
    assert result.stderr.count("warning[W103]") == 20
    assert result.stderr.endswith(f"{LINES - 20} more warnings not shown\n")
