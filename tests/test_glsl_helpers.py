"""The helpers of shaders mean what the C they were translated from means, bit by bit.

GLSL is near enough to C++ that a small header lets a C++ compiler take the generated texts: with 64-bit integers,
and with two words instead. Each function then runs beside the one of src/body/scalar.h on random and special
arguments. A GPU may still divide and take roots less exactly; its driver is not judged here.
"""

import ast
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import REPO

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or REPO / "build")
TABLES = ["oi_glsl_helpers", "oi_glsl_words_helpers"]
# Arguments that C leaves undefined: shifts by any number, exponents beyond a float's.
PARTIAL = {"oi_round_e5", "oi_two_over_pi_at", "oi_scaled_f32", "oi_exp_pair", "oi_partition_begin"}
# Positions are ints in a shader, so they are tried with small numbers.
SMALL = re.compile(r"oi_(bend_|floor_mod|floor_quotient|pow_|power|rows|later|end|position)")

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


def table(name):
    """{helper: text} of a generated table."""
    text = (BUILD / "generated/emit/vulkan_helpers_gen.c").read_text()
    rows = text[text.index(f"oi_helper {name}[]"):].split("{NULL, NULL, NULL}")[0]
    return {match[1]: ast.literal_eval(f"({match[2]})")
            for match in re.finditer(r'\{"(\w+)",\s+((?:"(?:[^"\\]|\\.)*"\s*)+), ""\}', rows)}  # fmt: skip


def as_cpp(text):
    text = re.sub(r"= uint\[\d+\]\((.*)\);", r"= {\1};", text)
    return re.sub(r"(\d(?:e[-+]?\d+)?)lf\b", r"\1", re.sub(r"(?<![\w.])(\d+\.\d+(?:e[-+]?\d+)?)(?![\w.])", r"\1f", text))


@pytest.mark.parametrize("name", TABLES)
def test_helpers(name, tmp_path):
    helpers = table(name)
    heads = {}
    for helper, text in helpers.items():
        head = re.match(r"(?:precise )?(\w+) \w+\(([^)]*)\)\n\{", text)
        if head and helper not in PARTIAL and not re.search(r"oi_pair|oi_turn", head[0]):
            heads[helper] = head
    c = (REPO / "src/body/scalar.h").read_text() + (REPO / "src/body/math.h").read_text()
    known = subprocess.run(["g++", "-E", "-P", "-x", "c++", "-I", REPO / "src", "-"], input='#include "body/scalar.h"\n',
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    known = set(re.findall(r"static inline \w+ (oi_\w+)\(", known))
    compared = [h for h in heads if h in known]
    assert len(compared) > 350 and "oi_sin_f32" in compared and "oi_idiv_i64" in compared and c
    lines = ['#include "glsl_shim.hpp"', "namespace glsl {", *map(as_cpp, helpers.values()), "}", "int main() {"]
    lines += [f'    compare("{h}", {"true" if SMALL.match(h) else "false"}, {h}, glsl::{h});' for h in compared]
    lines += ["    return failed != 0;", "}"]
    (tmp_path / "helpers.cpp").write_text("\n".join(lines))
    subprocess.run(["g++", "-std=gnu++20", "-O1", "-w", "-fpermissive", "-ffp-contract=off", "-I", REPO / "src", "-I", REPO / "tests",
                    "helpers.cpp", "-o", "helpers"], cwd=tmp_path, check=True)  # fmt: skip
    done = subprocess.run([tmp_path / "helpers"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
