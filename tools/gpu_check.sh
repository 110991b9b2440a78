#!/usr/bin/env bash
# gpu_check.sh: the CUDA programs of all examples, and a decode step of a language model, on a machine with a GPU.
#
#   tools/gpu_check.sh pack [DIR]   here, after a build: what travels, into DIR (build/gpu_check)
#   DIR/gpu_check.sh run            there: CUDA 13 (nvcc), make and a C compiler are all it needs
#
# The command travels with its loader and libraries, so that nothing has to be installed or built there. Each example is
# verified against the simulator, which runs there, too. A line for each: name, result, seconds. The exit code is 0 if all agree.
# BUDGET (220) bounds the seconds: what is left then is named as left out.
set -u

pack() {
    cd "$(dirname "$0")/.."
    local bin=${OPENINFER_BIN:-$PWD/build/bin/openinfer} out=${1:-build/gpu_check}
    local python=python3
    [ ! -x build/venv/bin/python ] || python=build/venv/bin/python
    export PYTHONPATH=$PWD/python/src
    rm -rf "$out"
    mkdir -p "$out/lib" "$out/examples"
    cp "$bin" "$out/openinfer"
    strip "$out/openinfer" 2> /dev/null || true
    # "libc.so.6 => /lib/.../libc.so.6 (0x...)", and the loader alone
    ldd "$bin" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p' | while read -r path; do
        cp -L "$path" "$out/lib/"
    done
    local name
    for path in examples/*.oi; do
        name=$(basename "$path" .oi)
        mkdir -p "$out/examples/$name"
        cp "$path" "$out/examples/$name/"
        "$python" "examples/${name}_oinf.py" "$out/examples/$name/$name.oinf" > /dev/null || exit 1
        "$python" "examples/${name}_ref.py" "$out/examples/$name/$name.oinf" "$out/examples/$name" > /dev/null || exit 1
        rm -rf "$out/examples/$name/out"
        sed -n 's/.*"steps": *\([0-9]*\).*/\1/p' "$out/examples/$name/run.json" | head -1 > "$out/examples/$name/steps"
        [ -s "$out/examples/$name/steps" ] || echo 3 > "$out/examples/$name/steps"
    done
    "$python" bench/gpu_lm.py > "$out/lm_1b.oi"
    "$python" bench/gpu_lm.py --layers 2 > "$out/lm_kernels.oi"
    "$python" bench/gpu_lm.py --layers 2 --dim 256 --heads 4 --kv 2 --ffn 512 --vocab 1024 --ctx 64 > "$out/lm_small.oi"
    cp "$0" "$out/gpu_check.sh"
    echo "packed: $(du -sh "$out" | cut -f1) in $out; there: $out/gpu_check.sh run"
}

# seconds since the beginning, with tenths
since() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }'; }

command_of() { # the command, by its own loader
    "$here/lib/$(basename "$here"/lib/ld-linux*)" --library-path "$here/lib" "$here/openinfer" "$@"
}

over() { [ "$(date +%s)" -ge "$end" ]; }

verify_one() { # NAME GRAPH MODEL STEPS SET...
    local name=$1 graph=$2 model=$3 steps=$4 begin said code
    shift 4
    begin=$(date +%s.%N)
    said=$(command_of verify "$graph" ${model:+--model "$model"} --target "$target" --cc nvcc --no-per-node --partition-all --steps "$steps" "$@" 2>&1)
    code=$?
    printf '%-22s %-8s %6s s  %s\n' "$name" "$([ $code = 0 ] && echo ok || echo "exit $code")" "$(since "$begin")" "$(echo "$said" | tail -1)" \
        >> "$work/lines"
    if [ $code != 0 ]; then
        { echo "--- $name"; echo "$said" | head -30; } >> "$work/failures"
    fi
}

run() {
    here=$(cd "$(dirname "$0")" && pwd)
    work=$(mktemp -d)
    end=$(($(date +%s) + ${BUDGET:-220}))
    export PATH=$PATH:/usr/local/cuda/bin
    command -v nvcc > /dev/null || { echo "gpu_check: no nvcc here" >&2; exit 3; }
    nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader
    nvcc --version | tail -2 | head -1
    local cap
    cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1)
    target=$work/device.json
    printf '{"extends": "cuda_hopper", "cuda": {"compute_capability": "%s"}}\n' "$cap" > "$target"
    : > "$work/lines"
    : > "$work/failures"

    # the long one first, alone: it is what is timed
    local begin
    begin=$(date +%s.%N)
    if command_of synth "$here/lm_1b.oi" --target "$target" -o "$work/lm" > "$work/lm.log" 2>&1 && make -s -C "$work/lm" >> "$work/lm.log" 2>&1; then
        echo "lm_1b built in $(since "$begin") s"
        bench_lm 0
        bench_lm 1000
        BLOCKS=66 bench_lm 0 # half of the multiprocessors
    else
        echo "lm_1b did not build:"
        tail -5 "$work/lm.log"
        echo "lm_1b" >> "$work/failures"
    fi

    # two layers of it, kernel by kernel: what the first block spends
    command_of bench "$here/lm_kernels.oi" --target "$target" --cc nvcc --kernels --steps 20 --set token=3 --set from=1000 2>&1 | tail -60

    local name sets folder
    verify_one lm_small "$here/lm_small.oi" "" 4 --set token=3 --set from=9 &
    for folder in "$here"/examples/*/; do
        name=$(basename "$folder")
        if over; then
            echo "$name: left out, the time is over" >> "$work/lines"
            continue
        fi
        sets=()
        for input in "$folder"in/*/; do
            [ -d "$input" ] && sets+=(--set "$(basename "$input")=@$input{step}.npy")
        done
        verify_one "$name" "$folder$name.oi" "$folder$name.oinf" "$(cat "${folder}steps")" "${sets[@]}" &
        while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-8}" ]; do wait -n; done
    done
    wait
    sort "$work/lines"
    cat "$work/failures"
    local failed=0
    [ ! -s "$work/failures" ] || failed=1
    [ $failed = 0 ] && echo "gpu_check: all as they should be" || echo "gpu_check: something is wrong"
    rm -rf "$work"
    exit $failed
}

# The times of 50 steps at one place of the cache: records of 32 bytes and 8 of time. The first graph byte, then token and from.
bench_lm() {
    local place=$1
    {
        printf '\0\3\0\0\0'
        printf "\\$(printf '%03o' $((place % 256)))\\$(printf '%03o' $((place / 256)))\\0\\0"
    } > "$work/input"
    if ! (cd "$work/lm" && ./lm_1b weights.bin 50 < "$work/input" > "$work/times"); then
        echo "lm_1b at $place: exit $?"
        echo "lm_1b" >> "$work/failures"
        return
    fi
    od -An -v -t u8 -w40 "$work/times" | awk -v at="$place" -v blocks="${BLOCKS:+, $BLOCKS blocks}" '{ t[NR] = $5 }
        END { if (NR == 0) { print "lm_1b at place", at ": the first step failed"; exit 1 } n = asort_(t, NR); printf "lm_1b at place %s" blocks ": %d steps, median %.3f ms = %.0f tokens/s, best %.3f ms\n", at, NR, t[int((NR + 1) / 2)] / 1e6, 1e9 / t[int((NR + 1) / 2)], t[1] / 1e6 }
        function asort_(a, n,   i, j, x) { for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x } return n }' || echo "lm_1b at $place" >> "$work/failures"
}

case ${1:-} in
pack) pack "${2:-}" ;;
run) run ;;
*) sed -n '2,11p' "$0"; exit 2 ;;
esac
