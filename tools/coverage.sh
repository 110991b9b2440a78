#!/usr/bin/env bash
# coverage.sh: run the suite on an instrumented build and print line and branch coverage per folder.
# src/oinf, src/dsl and src/graph must reach 95 % of lines and 85 % of branches.
set -eu
cd "$(dirname "$0")/.."
dir=build-coverage
command -v gcov > /dev/null || { echo "coverage: needs gcov (Debian: gcc)" >&2; exit 3; }
tools/build.sh coverage
find $dir -name '*.gcda' -delete
ctest --test-dir $dir --output-on-failure -j "${JOBS:-2}" | tail -n 3
if build/venv/bin/python -c 'import pytest' 2> /dev/null; then
    OPENINFER_BIN=$PWD/$dir/bin/openinfer OPENINFER_BUILD=$PWD/$dir PATH=$PWD/$dir/bin:$PATH \
        OPENINFER_SANITIZED=1 build/venv/bin/python -m pytest -q -p no:cacheprovider tests | tail -n 3
else
    echo "coverage: system tests left out: no pytest in build/venv"
fi
python3 tools/coverage.py $dir $dir/coverage.txt
echo "coverage: per file, with the lines that never ran, in $dir/coverage.txt"
