#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configure when needed, and build. Quiet unless something goes wrong.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
dir=build
[ "$preset" = default ] || dir=build-$preset
command -v cmake > /dev/null ||
    { echo "build: no cmake here (Debian: cmake); tools/setup.sh build installs it" >&2; exit 3; }
mkdir -p "$dir"
if command -v ninja > /dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
if command -v ccache > /dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi
more=()
[ -z "${OPENINFER_LONG:-}" ] || more=(-DOI_EMULATE_SANITIZED=ON)
if [ ! -f "$dir/CMakeCache.txt" ] || [ CMakePresets.json -nt "$dir/CMakeCache.txt" ] || [ ${#more[@]} != 0 ]; then
    # cmake says "CMake Warning … left out" for what is missing: that must be seen
    cmake --preset "$preset" "${more[@]}" > "$dir/configure.log" || { cat "$dir/configure.log" >&2; exit 1; }
fi
args=(--build "$dir" --parallel "${JOBS:-2}")
[ $# = 0 ] || args+=(--target "$@")
cmake "${args[@]}" > "$dir/build.log" 2>&1 || { cat "$dir/build.log" >&2; exit 1; }
