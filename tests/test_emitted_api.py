"""What an emitted program offers to the program around it: saved states and weights that are checked before
anything is believed, a header for C and C++, and a main that says when its input or output fails."""

import dataclasses
import os
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import TensorSpec, write_oinf  # noqa: E402

GRAPH = """
dynamic { x: f32[4]; }
constant { w: f32[4]; }
volatile { y: f32[4]; }
persistent {
  step: i32 @init(0);
  K(t): f32[4] @table @cap(t=5);
  M(a, b): f32[2] @table @cap(a=3, b=4);
  C(u): f32[4, 2] @auto_dim(u) @cap(u=6);
}
block entry {
  assign s: f32[4];
  op mul(x, w) >> s;
  cache.write s >> K[step];
  cache.increment step;
  op BODY(s) >> y;
  return y;
}
"""

DRIVER = r"""
#include "p.h"
#include "q.h"
#include "hal.h"
#include "kernel/digest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(1); } } while (0)
#define HEAD 40

static p a, b, before;
static q other;
static unsigned char room[p_SAVED_BYTES + 1], *const saved = room + 1; /* no alignment is needed */
static unsigned char good[p_SAVED_BYTES];

/* A load that is refused with that error changes nothing; the good state is there again afterwards. */
static void refused(int error, size_t size)
{
    memcpy(&before, &b, sizeof b);
    CHECK(p_load(&b, saved, size) == error);
    CHECK(memcmp(&before, &b, sizeof b) == 0);
    memcpy(saved, good, sizeof good);
}

/* As an attacker would: a state with a right checksum, only that this member is wrong. */
static void forged(void *member, const void *value, size_t n)
{
    const size_t at = (size_t)((unsigned char *)member - (unsigned char *)&a.oi_state_data);
    memcpy(saved + HEAD + at, value, n);
    const uint64_t digest = oi_digest(saved + HEAD, sizeof a.oi_state_data);
    memcpy(saved + 32, &digest, sizeof digest);
    refused(p_ERROR_STATE_INVALID, sizeof good);
}

static void states(void)
{
    for (int i = 0; i < 3; i++)
        CHECK(p_step(&a) == p_OK);
    p_save(&a, good);
    memcpy(saved, good, sizeof good);
    refused(p_ERROR_STATE_SIZE, sizeof good - 1);
    refused(p_ERROR_STATE_SIZE, 0);
    CHECK(p_load(&b, NULL, 0) == p_ERROR_STATE_SIZE);
    memset(saved, 0, sizeof good);
    refused(p_ERROR_STATE_FORMAT, sizeof good);
    saved[8]++; /* the version */
    refused(p_ERROR_STATE_FORMAT, sizeof good);
    for (size_t i = 16; i < sizeof good; i += i < HEAD ? 1 : 7) { /* any byte */
        saved[i] ^= 0x10;
        refused(i < 24 ? p_ERROR_STATE_OTHER : i < 32 ? p_ERROR_STATE_SIZE : p_ERROR_STATE_DAMAGED, sizeof good);
    }
    CHECK(sizeof a == sizeof other && q_SAVED_BYTES == p_SAVED_BYTES);
    q_save(&other, saved);
    refused(p_ERROR_STATE_OTHER, sizeof good);

    forged(&a.oi_state_data.oi_size_K[0], &(int64_t){6}, 8);   /* beyond @cap: the next write would leave the table */
    forged(&a.oi_state_data.oi_size_K[0], &(int64_t){-1}, 8);
    forged(&a.oi_state_data.oi_size_K[1], &(int64_t){5}, 8);   /* an axis that does not grow */
    forged(&a.oi_state_data.oi_written_K[0], &(uint8_t){2}, 1);
    forged(&a.oi_state_data.oi_written_K[3], &(uint8_t){1}, 1); /* an entry beyond the size */
    forged(&a.oi_state_data.oi_written_M[0], &(uint8_t){1}, 1);
    forged(&a.oi_state_data.oi_size_C[0], &(int64_t){3}, 8);
    forged(&a.oi_state_data.oi_size_C[0], &(int64_t){11}, 8);

    CHECK(p_load(&b, saved, sizeof good) == p_OK && p_step(&b) == p_OK && b.oi_state_data.step == 4);
}

static void weights(const unsigned char *w, size_t size)
{
    unsigned char *at = aligned_alloc(p_WEIGHTS_ALIGN, size + p_WEIGHTS_ALIGN);
    CHECK(size == p_WEIGHTS_BYTES);
    memcpy(at, w, size);
    CHECK(p_check_weights(at, size) == p_OK);
    memcpy(&before, &b, sizeof b);
    CHECK(p_init(&b, NULL, size) == p_ERROR_WEIGHTS_ADDRESS);
    CHECK(p_init(&b, at, size - 1) == p_ERROR_WEIGHTS_SIZE);
    CHECK(p_init(&b, at, size + 1) == p_ERROR_WEIGHTS_SIZE);
    CHECK(p_init(&b, at, 3) == p_ERROR_WEIGHTS_SIZE);
    for (size_t i = 0; i < size; i++) { /* any byte: the head when it is taken, the others when they are checked */
        at[i] ^= 4;
        const int found = p_check_weights(at, size);
        CHECK(i < 64 ? found < 0 && p_init(&b, at, size) == found : found == p_ERROR_WEIGHTS_DAMAGED);
        CHECK(i >= 64 || found == (i < 8 || i >= 24   ? p_ERROR_WEIGHTS_FORMAT
                                   : i < 16 ? p_ERROR_WEIGHTS_OTHER
                                            : p_ERROR_WEIGHTS_SIZE));
        at[i] ^= 4;
    }
    memmove(at + 1, at, size);
    CHECK(p_init(&b, at + 1, size) == p_ERROR_WEIGHTS_ADDRESS);
    CHECK(p_check_weights(at + 1, size) == p_ERROR_WEIGHTS_ADDRESS);
    CHECK(memcmp(&before, &b, sizeof b) == 0);
    CHECK(p_init((p *)(void *)((unsigned char *)&b + 8), w, size) == p_ERROR_STRUCT_ADDRESS);
    free(at);
}

int main(int argc, char **argv)
{
    size_t size, size_q;
    const void *w = hal_map(argv[argc - 2], &size), *w_q = hal_map(argv[argc - 1], &size_q);
    CHECK(w && w_q && size_q == size);
    CHECK(p_init(&a, w, size) == p_OK && p_init(&b, w, size) == p_OK && q_init(&other, w_q, size_q) == q_OK);
    CHECK(sizeof a == p_STRUCT_BYTES && p_STRUCT_BYTES % p_STRUCT_ALIGN == 0);
    states();
    weights(w, size);
    puts("fine");
    return 0;
}
"""


@dataclasses.dataclass
class Model:
    w: TensorSpec


@pytest.fixture(scope="module")
def programs(openinfer, tmp_path_factory):
    """Two programs of the same size, p and q, in a folder each."""
    folder = tmp_path_factory.mktemp("api")
    model = folder / "m.oinf"
    write_oinf(Model(TensorSpec([0.5, 1.5, 2.5, 3.5], dtype="f32")), str(model))
    for name, op in (("p", "relu"), ("q", "neg")):
        (folder / f"{name}.oi").write_text(GRAPH.replace("BODY", op))
        openinfer("synth", folder / f"{name}.oi", "--model", model, "--target", "cpu_scalar", "-o", folder / name)
    return folder


def compile_with(words, cwd):
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_states_and_weights_are_checked(programs):
    (programs / "driver.c").write_text(DRIVER)
    compile_with(["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-ffp-contract=off",
                  "-Ip", "-Iq", f"-I{REPO}/src", "-o", "driver", "driver.c", "p/p.c", "q/q.c", "p/hal.c", "-lm"],
                 programs)  # fmt: skip
    done = subprocess.run(["./driver", "p/weights.bin", "q/weights.bin"], cwd=programs, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stdout + done.stderr


def test_main_checks_every_byte_of_the_weights(programs):
    subprocess.run(["make", "-s", "CC=gcc", "CFLAGS=-O1"], cwd=programs / "p", check=True)
    weights = bytearray((programs / "p/weights.bin").read_bytes())
    weights[-60] ^= 1
    (programs / "flipped.bin").write_bytes(weights)
    for path, code, says in (("p/weights.bin", 0, b""), ("flipped.bin", 1, b"damaged"), ("p/p.c", 1, b"do not belong"),
                             ("nothing.bin", 1, b"cannot be read")):  # fmt: skip
        done = subprocess.run(["p/p", path], cwd=programs, stdin=subprocess.DEVNULL, capture_output=True)
        assert (done.returncode, says in done.stderr) == (code, True), path


# -- main.c says so when its input or its output fails --


@pytest.fixture(scope="module")
def main(programs):
    """The program p, and the bytes of one step's input."""
    subprocess.run(["make", "-s", "CC=gcc", "CFLAGS=-O1"], cwd=programs / "p", check=True)
    return programs / "p", b"\0" + bytes(16)


def run_main(main, given, *more, stdout=subprocess.PIPE):
    return subprocess.run(["./p", "weights.bin", *more], cwd=main[0], input=given, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize("cut", [1, 5, 16])
@pytest.mark.parametrize("steps", [0, 2])
def test_main_notices_an_input_that_is_cut_short(main, cut, steps):
    done = run_main(main, main[1] * steps + main[1][:cut])
    assert done.returncode == 2 and b"cut short" in done.stderr
    assert run_main(main, main[1] * steps).returncode == 0


def test_main_notices_inputs_that_mean_nothing(main):
    done = run_main(main, b"\1" + main[1])
    assert done.returncode == 2 and b"a graph that is not there" in done.stderr
    done = subprocess.run(["./p < ."], shell=True, cwd=main[0], stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"cannot be read" in done.stderr
    done = run_main(main, main[1], "3", "3")  # two numbers of steps, inputs for one
    assert done.returncode == 2 and b"cut short" in done.stderr
    assert run_main(main, main[1] * 2, "3", "3").returncode == 0


@pytest.mark.parametrize("more", [[], ["5"]])
def test_main_notices_an_output_that_cannot_be_written(main, more):
    with open("/dev/full", "wb") as full:
        done = run_main(main, main[1], *more, stdout=full)
    assert done.returncode == 3 and b"cannot be written" in done.stderr


def test_main_does_not_wait_for_weights_from_a_pipe(main):
    pipe = main[0] / "pipe"
    os.mkfifo(pipe)
    done = subprocess.run(["./p", "pipe"], cwd=main[0], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=10)
    assert done.returncode == 1 and b"cannot be read" in done.stderr
