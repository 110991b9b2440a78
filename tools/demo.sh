#!/usr/bin/env bash
# demo.sh: what OpenInfer does today, step by step, into build/demo. `make demo` has built before.
set -eu
cd "$(dirname "$0")/.."
out=build/demo
rm -rf "$out"
mkdir -p "$out"
export PATH=$PWD/build/bin:$PATH PYTHONPATH=$PWD/python/src PYTHONDONTWRITEBYTECODE=1
python=build/venv/bin/python
[ -x $python ] || python=python3

step() { printf '\n-- %s\n' "$1"; }
show() { # COMMAND...: print it as one would type it, then run it
    printf '$'
    printf ' %s' "${@/#$python/python}"
    printf '\n'
    "$@"
}

step "A model package, written from a Python dataclass"
if command -v $python > /dev/null; then
    show $python examples/minimal_oinf.py $out/minimal.oinf
else
    echo "left out: no python3 here to write the package"
fi
if [ -f $out/minimal.oinf ]; then
    step "What is in it"
    show openinfer inspect $out/minimal.oinf
    step "A graph over it, checked against it"
    show cat examples/minimal.oi
    show openinfer check examples/minimal.oi --model $out/minimal.oinf
    step "The same, simulated: x is 0.5 everywhere, y = 5 * (x + a)"
    show openinfer run examples/minimal.oi --model $out/minimal.oinf --set x=0.5 --fetch y
    step "The same as C: synthesized, built, and its step as a person would read it"
    show openinfer synth examples/minimal.oi --model $out/minimal.oinf --target cpu_scalar -o $out/minimal_c
    show make -s -C $out/minimal_c
    show sed -n '/op add/,/^}/p' $out/minimal_c/minimal.c
    step "And the proof: simulator and program side by side, after every step"
    show openinfer verify examples/minimal.oi --model $out/minimal.oinf --target cpu_scalar --set x=0.5
fi

step "What a mistake looks like"
sed 's/op add(x, a)/op ad(x, b)/' examples/minimal.oi > $out/mistake.oi
if show openinfer check $out/mistake.oi; then
    echo "demo: the mistake was not found" >&2
    exit 1
fi

step "The graph as JSON, and drawn"
show openinfer graph examples/minimal.oi --to json --deterministic -o $out/minimal.json
show openinfer graph examples/minimal.oi --to svg -o $out/minimal.svg
step "What an operator means, and which devices are known"
show openinfer ops mul
show openinfer targets

printf '\nIn %s: ' "$out"
ls $out | tr '\n' ' '
printf '\nopeninfer --help lists the commands.\n'
