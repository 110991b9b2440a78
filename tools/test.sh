#!/usr/bin/env bash
# test.sh [STAGE...]: every test in stages, each timed; ends with what passed, failed and was left
# out. A failing stage does not stop the others. tools/setup.sh has run before. With OPENINFER_LONG
# set, tests that otherwise try a part of all combinations try all of them.
set -u
cd "$(dirname "$0")/.." || exit 3
export JOBS=${JOBS:-$(nproc 2> /dev/null || echo 2)}
venv=$PWD/build/venv/bin/python
fuzz_seconds=10
[ -z "${OPENINFER_LONG:-}" ] || fuzz_seconds=120
log=build/test-logs
mkdir -p "$log"

passed=0 failed=0 stages_failed=() left_out=() times=() emulated=()

skip() { # REASON
    echo "left out: $1"
    left_out+=("$1")
}

# count N_PASSED N_FAILED
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
}

# -- stages -------------------------------------------------------------------------------------

build_default() { tools/build.sh default; }
build_asan() { tools/build.sh asan; }
build_tsan() { tools/build.sh tsan; }

# unit_in DIR: the cmocka tests and corpus replays of one build
unit_in() {
    local status total bad
    ctest --test-dir "$1" --output-on-failure -j "$JOBS" --no-tests=error > "$log/ctest" 2>&1
    status=$?
    cat "$log/ctest"
    read -r bad total < <(sed -nE 's/.*tests passed, ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/p' \
        "$log/ctest") || { bad=1 total=1; }
    local unable
    unable=$(grep -c ' (Skipped)$' "$log/ctest")
    while read -r line; do
        left_out+=("$line: $(build_says "$1" "$line")")
    done < <(sed -nE 's/^[[:space:]]*[0-9]+ - (.*) \(Skipped\)$/\1/p' "$log/ctest")
    while read -r line; do
        emulated+=("$line")
    done < <(ctest --test-dir "$1" -N -L emulated | sed -nE 's/^ *Test +#[0-9]+: //p')
    count $((total - bad - unable)) "$bad"
    return $status
}

# build_says DIR TEST: why the test was not run
build_says() { "$1/bin/$2" | sed -n 's/^not run: //p'; }

# pytest_in DIR PATH...: the system tests against the command in DIR, on all processors. What is
# measured there is processor time and a process's own memory, which neighbours do not change.
pytest_in() {
    local dir=$1 status n parallel=()
    shift
    if ! "$venv" -c 'import pytest' 2> /dev/null; then
        skip "system tests: no pytest in build/venv"
        return 0
    fi
    if [ "$JOBS" -gt 1 ] && "$venv" -c 'import xdist' 2> /dev/null; then
        parallel=(-n "$JOBS")
    fi
    OPENINFER_BIN=$PWD/$dir/bin/openinfer OPENINFER_BUILD=$PWD/$dir PYTHONDONTWRITEBYTECODE=1 \
        OPENINFER_QUICK_CC=$quick PATH=$quick/bin:$PWD/$dir/bin:$PATH \
        "$venv" -m pytest -q -rs --durations=12 -p no:cacheprovider "${parallel[@]}" "$@" > "$log/pytest" 2>&1
    status=$?
    cat "$log/pytest"
    for n in passed failed error; do
        local m
        m=$(tail -n 1 "$log/pytest" | grep -oE "[0-9]+ ${n}s?\b" | grep -oE '^[0-9]+') || m=0
        if [ $n = passed ]; then count "$m" 0; else count 0 "$m"; fi
    done
    while read -r line; do
        left_out+=("$line")
    done < <(grep -E '^SKIPPED' "$log/pytest")
    while read -r line; do
        emulated+=("$line")
    done < <(sed -n 's/^EMULATED .*:://p' "$log/pytest")
    return $status
}

# What tests compile, they compile through tests/tools/quick_cc.c: the same text once in a run.
quick=$PWD/build/quick_cc
rm -rf "$quick"
mkdir -p "$quick/bin"
for cc in cc gcc clang aarch64-linux-gnu-gcc arm-none-eabi-gcc riscv64-unknown-elf-gcc; do
    ! command -v "$cc" > /dev/null || ln -s ../../bin/quick_cc "$quick/bin/$cc"
done

unit() { unit_in build; }
# every op against numpy has its own process: its helpers share names with those of other tests
system() { pytest_in build tests --ignore=tests/conform; }
# the real models in full, with the figures they print; system runs what is quick of it
models() { JOBS=1 OPENINFER_MODELS=all pytest_in build -rP tests/test_models.py tests/test_chat.py; }
conform() { pytest_in build tests/conform; }
python() { pytest_in build -c python/pyproject.toml python/tests; }
# under a sanitizer: what exercises our own code; not how sources look, what links or loads the library
# elsewhere, what measures time, nor again what mostly runs
# compilers and emulators, whose way through the synthesizer tests/test_synth.py takes too
ours=(--ignore=tests/conform --ignore=tests/onnx_nodes --ignore=tests/test_embedded.py --ignore=tests/test_synth_scale.py --ignore=tests/test_layout.py --ignore=tests/test_mcu.py
    --ignore=tests/test_passes.py --ignore=tests/test_isa.py --ignore=tests/test_exact.py
    --ignore=tests/test_threads.py --ignore=tests/test_bench.py --ignore=tests/test_half_weights.py
    --ignore=tests/test_arena.py --ignore=tests/test_quick_cc.py
    --deselect=tests/test_pipelines.py::test_random_chains_on_a_board
    --deselect=tests/test_pipelines.py::test_vectors_in_turns
    --deselect=tests/test_pipelines.py::test_parts_of_chains
    --deselect=tests/test_synth.py::test_instances
    "--deselect=tests/test_docs.py::test_commands[python.md]"
    "--deselect=tests/test_docs.py::test_commands[pytorch.md]"
    "--deselect=tests/test_docs.py::test_commands[quantize.md]"
    --deselect=tests/test_examples.py::test_package_needs_no_numpy
    --deselect=tests/test_synthfuzz.py::test_a_wrong_program_is_reduced)
asan() {
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
    unit_in build-asan
    local status=$?
    OPENINFER_SANITIZED=1 pytest_in build-asan tests "${ours[@]}" && return $status
}
tsan() {
    unit_in build-tsan
    local status=$?
    OPENINFER_SANITIZED=1 pytest_in build-tsan tests "${ours[@]}" && return $status
}

fuzz() {
    local status
    if ! tools/fuzz.sh --can; then
        skip "fuzzing: no clang with libFuzzer here"
        return 0
    fi
    tools/fuzz.sh $fuzz_seconds --short > "$log/fuzz" 2>&1
    status=$?
    cat "$log/fuzz"
    count "$(grep -c '^fuzz: .* no finding' "$log/fuzz")" "$(grep -c '^fuzz: .* FINDING' "$log/fuzz")"
    return $status
}

# The default build is gcc at -O3, which sees furthest, and takes no warnings; this is what clang has to say.
compilers() {
    if ! command -v clang > /dev/null; then
        skip "second compiler: no clang here"
        return 0
    fi
    tools/build.sh default && "$venv" tools/clang_check.py build && count 1 0
}

format() {
    if ! command -v clang-format > /dev/null; then
        skip "layout check: no clang-format here"
        return 0
    fi
    make -s format-check && count 1 0
}

install() {
    local status
    tests/install/run.sh > "$log/install" 2>&1
    status=$?
    cat "$log/install"
    count "$(grep -c '^ok ' "$log/install")" "$(grep -c '^not ok ' "$log/install")"
    while read -r line; do
        left_out+=("${line#left out: }")
    done < <(grep '^left out: ' "$log/install")
    return $status
}

# The bars of tools/coverage.py hold: all of it again, slowly, so only in the long run.
coverage() { tools/coverage.sh > "$log/coverage" 2>&1 && count 1 0; local status=$?; cat "$log/coverage"; return $status; }

# -- running them -----------------------------------------------------------------------------------

# spent: into $cpu, the processor seconds of everything that has ended
spent() {
    times > "$log/times"
    cpu=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$log/times")
}

run() { # STAGE: its name is the function that does it
    local start=$SECONDS before
    spent
    before=$cpu
    printf '\n== %s\n' "$1"
    if ! "$1"; then
        stages_failed+=("$1")
        echo "== $1 FAILED"
    fi
    spent
    times+=("$(printf '%s %ds (%ds)' "$1" $((SECONDS - start)) $((cpu - before)))")
}

summary() {
    printf '\n== summary\n'
    (IFS=,; echo "time (of processors): ${times[*]}, total ${SECONDS}s (${cpu}s)") | sed 's/,\([a-z]\)/, \1/g'
    if [ -s build/setup/left-out ]; then
        while read -r line; do
            left_out+=("not installed: $line")
        done < build/setup/left-out
    fi
    if [ ${#left_out[@]} -gt 0 ]; then
        echo "left out:"
        printf '%s\n' "${left_out[@]}" | sort | uniq -c | sed -E 's/^ +1 /  /; s/^ +([0-9]+) (.*)/  \2 (\1 times)/'
    else
        echo "left out: nothing"
    fi
    # run, but by no processor that has the instructions
    [ ${#emulated[@]} = 0 ] || echo "emulated: $(printf '%s\n' "${emulated[@]}" | sort -u | tr '\n' ' ')"
    [ ${#stages_failed[@]} = 0 ] || echo "failed stages: ${stages_failed[*]}"
    # a stage that broke before it could count anything is a failure too
    [ ${#stages_failed[@]} = 0 ] || [ "$failed" != 0 ] || failed=${#stages_failed[@]}
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}

case "${*:-all}" in
all)
    stages="build_default unit system conform python build_asan asan fuzz compilers format install"
    [ -z "${OPENINFER_LONG:-}" ] || stages+=" coverage"
    ;;
asan) stages="build_asan asan" ;;
tsan) stages="build_tsan tsan" ;;
*) stages="$*" ;;
esac
for stage in $stages; do
    run "$stage"
done
summary
