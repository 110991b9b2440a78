#!/usr/bin/env bash
# fuzz.sh SECONDS [--short]: fuzz every tests/fuzz/fuzz_NAME.c for that long, two at a time. Grows
# build-fuzz/corpus/NAME from the kept tests/fuzz/corpus/NAME, and, unless --short, adds what reached
# new code to the kept corpus. Findings lie in build-fuzz/findings. --can: is libFuzzer here at all?
set -u
cd "$(dirname "$0")/.." || exit 3

can_fuzz() {
    command -v clang > /dev/null || return 1
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d[n] * 0; }' |
        clang -fsanitize=fuzzer -x c - -o /dev/null 2> /dev/null
}

if [ "${1:-}" = --can ]; then
    can_fuzz
    exit
fi
seconds=${1:-60} mode=${2:-}
if ! can_fuzz; then
    echo "fuzz: needs clang with libFuzzer (Debian: clang libclang-rt-dev)" >&2
    exit 3
fi
tools/build.sh fuzz || exit 1
mkdir -p build-fuzz/findings

run_one() { # NAME
    local name=$1 bin=build-fuzz/bin/fuzz_$1 kept=tests/fuzz/corpus/$1 grown=build-fuzz/corpus/$1
    local log=build-fuzz/$1.log dict=()
    mkdir -p "$grown"
    [ ! -f "tests/fuzz/$name.dict" ] || dict=(-dict="tests/fuzz/$name.dict")
    [ -d "$kept" ] || { echo "fuzz: $name FINDING: there is no $kept to start from"; return 1; }
    if ! "$bin" "${dict[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build-fuzz/findings/$name-" \
        "$grown" "$kept" > "$log" 2>&1; then
        tail -n 60 "$log"
        echo "fuzz: $name FINDING, see $log and build-fuzz/findings/$name-*"
        return 1
    fi
    if [ "$mode" != --short ]; then
        "$bin" -merge=1 "$kept" "$grown" >> "$log" 2>&1 || { echo "fuzz: $name: merge failed"; return 1; }
    fi
    echo "fuzz: $name no finding in ${seconds}s," \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs," \
        "$(find "$grown" "$kept" -type f | wc -l) inputs"
}

names=$(for f in tests/fuzz/fuzz_*.c; do n=${f##*/fuzz_}; echo "${n%.c}"; done)
[ -e "tests/fuzz/fuzz_${names%%$'\n'*}.c" ] || { echo "fuzz: no harness yet"; exit 0; }
status=0 running=()
for name in $names; do
    run_one "$name" &
    running+=($!)
    if [ ${#running[@]} = 2 ]; then
        wait "${running[0]}" || status=1
        running=("${running[1]}")
    fi
done
for pid in "${running[@]}"; do
    wait "$pid" || status=1
done
exit $status
