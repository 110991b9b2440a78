"""Every op of the registry as emitted C: the cases of this folder, each a node of a graph, through
`openinfer verify --per-node`. There nothing is folded or fused: the node's own code is judged."""

import functools
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

from cases import OPS, cases_for  # noqa: E402
from library import REPO, WORDS  # noqa: E402
from tensors import DTYPES, Tensor  # noqa: E402

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, StreamTensor  # noqa: E402

BIN = os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer")
CASES, GROUP, MOST_ELEMENTS = 20, 10, 3000

def word(value):
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return value if value in DTYPES else f'"{value}"'
    if isinstance(value, int):
        return str(value)
    return "[" + ", ".join(map(word, value)) + "]"


def can_be_written(case):
    """A bitset is no tensor of a model; a list where the language takes one number comes as an input there."""
    dtypes = [t.dtype for t in case.inputs] + [case.out_dtype]
    return "bitset" not in dtypes and not isinstance(case.attrs.get("kv_len"), (list, tuple))


def takes_long(op, case):
    """A sequence of 70 becomes a call per step of time, thousands of nodes; those of 4 are made the same way."""
    return op in ("lstm", "gru", "rnn") and case.label == "long"


@functools.lru_cache(None)
def chosen(op):
    """Some of the op's cases, spread over all of them."""
    fits = [c for c in cases_for(op) if not c.base and all(t is not None for t in c.inputs) and can_be_written(c) and not takes_long(op, c)
            and sum(t.values.size for t in c.inputs) + math.prod(c.out_shape) <= MOST_ELEMENTS]  # fmt: skip
    step = max(1, len(fits) // CASES)
    return fits[::step][: CASES + 5]


def declaration(name, dtype, shape):
    return f"  {name}: {dtype}{'[' + ', '.join(map(str, shape)) + ']' if len(shape) else ''};"


def open_dims(shape):
    return ["?"] * len(shape)


def write(op, cases, folder, package, is_open=lambda k: False):
    """A graph with a node per case, and its tensors. Inputs k that are open have lengths that only the run knows,
    and so has the result."""
    constants, volatile, nodes = [], [], []
    for i, case in enumerate(cases):
        names = []
        for k, t in enumerate(case.inputs):
            name = f"{op}_{i}_in{k}"
            data = Tensor(t.dtype, t.values).storage()[0].tobytes()
            package.add_tensor(name, StreamTensor(t.dtype, t.values.shape, data))
            constants.append(declaration(name, t.dtype, t.values.shape))
            if is_open(k) and t.values.shape:
                volatile.append(declaration(f"{name}_open", t.dtype, open_dims(t.values.shape)))
                nodes.append(f"  transfer {name} >> {name}_open;")
                name += "_open"
            names.append(name)
        outs = []
        for k, (dtype, shape) in enumerate([(case.out_dtype, case.out_shape), *case.more]):
            outs.append(f"{op}_{i}_out{k}")
            volatile.append(declaration(outs[-1], dtype, open_dims(shape) if is_open(0) else shape))
        args = names + [f'{k}="{v}"' if (op, k) in WORDS else f"{k}={word(v)}" for k, v in case.attrs.items() if v is not None]
        nodes.append(f"  op {op}({', '.join(args)}) >> {', '.join(outs)};")
    text = [f"volatile {{\n" + "\n".join(volatile) + "\n}\n"]
    if constants:
        text.insert(0, "constant {\n" + "\n".join(constants) + "\n}\n")
    path = folder / f"{op}.oi"
    path.write_text("\n".join(text) + "\nblock entry {\n" + "\n".join(nodes) + "\n  return;\n}\n")
    return path


def verify(ops, folder, is_open=lambda k: False):
    with PackageWriter(folder / "model.oinf") as package:
        paths = [write(op, cases, folder, package, is_open) for op, cases in ops.items()]
    return subprocess.run([BIN, "verify", *paths, "--model", folder / "model.oinf", "--per-node", "--steps", "1",
                           "--in-turn", "--cflags", "-O0", "--target", "cpu_scalar"],
                          capture_output=True, text=True, timeout=600)  # fmt: skip


KNOWN = list(OPS)
GROUPS = [KNOWN[i : i + GROUP] for i in range(0, len(KNOWN), GROUP)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0]}...{g[-1]}")
def test_ops(group, tmp_path):
    ops = {op: chosen(op) for op in group}
    assert all(ops.values()), "an op without cases"
    result = verify(ops, tmp_path)
    if result.returncode == 0:
        assert "they agree" in result.stdout
        assert len(re.findall(r"^node ", result.stdout, re.M)) >= sum(map(len, ops.values()))
        return
    wrong = []
    for op in group:
        alone = verify({op: ops[op]}, tmp_path)
        if alone.returncode != 0:
            wrong.append(f"{op}: {alone.stderr[:1500]}")
    pytest.fail("\n".join(wrong) or result.stderr)


# -- lengths that only the run knows ------------------------------------------------------------------------

# Some of the op's cases with every length of the first input open: refused, and why.
NO_RULE = "which lengths are right together follows no simple rule"
NO_LOOPS = "how its loops follow the length was not found out"
OTHER_BODY = "its body is another one for other lengths"
OPEN_REFUSED = {
    "reshape": "its greatest lengths do not go together",  # two lengths whose product must divide
    "slice": "how long the result is follows no simple rule",  # an end that lies beyond the length, or before it
    "squeeze": "which lengths are right follows no simple rule",  # any length of 1 would go
    "split": "how long the result is follows no simple rule",  # a shorter last part
    "sdpa": NO_LOOPS,  # how many heads share one of keys; open numbers of keys are in test_synth_graphs.py
    "roll": NO_LOOPS,  # by more than the length
    "max_pool": NO_LOOPS, "lp_pool": NO_LOOPS, "conv_integer": NO_LOOPS, "qconv": NO_LOOPS,  # padding by the remainder
    "col2im": "its greatest lengths do not go together",
    "rope": OTHER_BODY, "lstm": OTHER_BODY, "gru": OTHER_BODY, "rnn": OTHER_BODY,  # one call per step of time
    "istft": NO_RULE,
    **dict.fromkeys(("bitcast", "nonzero", "unique", "topk", "sort", "argsort", "resize", "grid_sample", "dft", "rfft", "ifft",
                     "stft"), "of something whose length only the run knows"),  # bodies of text want sizes
}  # fmt: skip


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0]}...{g[-1]}")
def test_open_lengths(group, tmp_path):
    ops = {op: chosen(op)[1::6][:3] + (chosen(op)[::3][:8] if op in OPEN_REFUSED else []) for op in group}
    plain = {op: cases for op, cases in ops.items() if op not in OPEN_REFUSED}
    wrong = []
    if verify(plain, tmp_path, lambda k: k == 0).returncode != 0:
        for op, cases in plain.items():
            alone = verify({op: cases}, tmp_path, lambda k: k == 0)
            if alone.returncode != 0:
                wrong.append(f"{op}: {alone.stderr[:1500]}")
    for op in set(ops) - set(plain):
        alone = verify({op: ops[op]}, tmp_path, lambda k: k == 0)
        if alone.returncode == 0:
            wrong.append(f"{op} can be synthesized now: take it off the list")
        elif OPEN_REFUSED[op] not in alone.stderr or "E062" not in alone.stderr:
            wrong.append(f"{op}: {alone.stderr[:1500]}")
    assert not wrong, "\n".join(wrong)
