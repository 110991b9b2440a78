#!/usr/bin/env bash
# coverage.sh: run the suite on an instrumented build and print line and branch coverage per folder.
# src/oinf, src/dsl and src/graph must reach 95 % of lines and 85 % of branches.
set -eu
cd "$(dirname "$0")/.."
dir=build-coverage
command -v gcovr > /dev/null || { echo "coverage: needs gcovr (Debian: gcovr)" >&2; exit 3; }
tools/build.sh coverage
find $dir -name '*.gcda' -delete
ctest --test-dir $dir --output-on-failure -j "${JOBS:-2}" | tail -n 3
if build/venv/bin/python -c 'import pytest' 2> /dev/null; then
    OPENINFER_BIN=$PWD/$dir/bin/openinfer OPENINFER_BUILD=$PWD/$dir PATH=$PWD/$dir/bin:$PATH \
        OPENINFER_SANITIZED=1 build/venv/bin/python -m pytest -q -p no:cacheprovider tests | tail -n 3
else
    echo "coverage: system tests left out: no pytest in build/venv"
fi
gcovr --root . --object-directory $dir --filter 'src/' --filter 'cli/' --exclude '.*_test\.c' \
    --exclude-unreachable-branches --json-summary $dir/coverage.json \
    --txt $dir/coverage.txt --html-details $dir/coverage.html
python3 tools/coverage.py $dir/coverage.json
echo "coverage: per file in $dir/coverage.txt, per line in $dir/coverage.html"
