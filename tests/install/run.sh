#!/usr/bin/env bash
# run.sh: installs the default build below a temporary folder and uses it as a stranger would: by
# pkg-config, by CMake, shared and static, from C and from C++. One "ok" or "not ok" line per check.
set -u
cd "$(dirname "$0")/../.." || exit 3
here=$PWD/tests/install
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" > "$tmp/log" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/  /' "$tmp/log"
        bad=1
    fi
}

have() { # COMMAND WHAT
    command -v "$1" > /dev/null || { echo "left out: $2: no $1 here"; return 1; }
}

check "make install" make -s install DESTDIR="$tmp/stage" PREFIX=/opt/openinfer
root=$tmp/moved # an installed tree may be moved
mv "$tmp/stage/opt/openinfer" "$root" || exit 1
lib=$(dirname "$(find "$root" -name libopeninfer.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig
case $root in "$PWD"*) exit 1 ;; esac

only_ours() {
    local others
    others=$(nm -D --defined-only "$lib/libopeninfer.so" | awk '{ print $3 }' | grep -v '^oi_')
    [ -z "$others" ] || { echo "exported: $others"; return 1; }
    nm -D --defined-only "$lib/libopeninfer.so" | grep -q ' oi_version$'
}
check "the shared library exports oi_* only" only_ours
soname() { readelf -d "$lib/libopeninfer.so" | grep -q 'soname: \[libopeninfer\.so\.[0-9]*\]'; }
check "versioned soname" soname
check "all symbols of the shared library are resolved" \
    cc -shared -Wl,--no-undefined,--whole-archive "$lib/libopeninfer.a" \
    -Wl,--no-whole-archive -o "$tmp/whole.so" $(pkg-config --libs json-c) -lm -lpthread
no_private_paths() { ! grep -rlF "$PWD" "$root/include" "$lib/pkgconfig" "$lib/cmake"; }
check "installed text files do not name the source folder" no_private_paths

run_shared() { LD_LIBRARY_PATH=$lib "$1"; }
shared_by_pkg_config() {
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" \
        $(pkg-config --cflags --libs openinfer) -o "$tmp/shared" && run_shared "$tmp/shared"
}
check "C99 program by pkg-config, shared" shared_by_pkg_config
static_by_pkg_config() {
    cc -std=c99 "$here/consumer.c" $(pkg-config --cflags openinfer) -Wl,-Bstatic \
        $(pkg-config --static --libs openinfer) -Wl,-Bdynamic -o "$tmp/static" && "$tmp/static" &&
        ! readelf -d "$tmp/static" | grep -q 'NEEDED.*libopeninfer'
}
check "program by pkg-config, static" static_by_pkg_config
header_alone() {
    echo '#include <openinfer.h>' |
        cc -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c - $(pkg-config --cflags openinfer)
}
check "the header compiles alone" header_alone
cplusplus() {
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -x c++ "$here/consumer.c" \
        $(pkg-config --cflags --libs openinfer) -o "$tmp/cplusplus" && run_shared "$tmp/cplusplus"
}
if have c++ "C++ program"; then check "C++ program" cplusplus; fi
by_cmake() {
    cmake -S "$here" -B "$tmp/cmake" -DCMAKE_PREFIX_PATH="$root" && cmake --build "$tmp/cmake" &&
        "$tmp/cmake/with_shared" && "$tmp/cmake/with_static"
}
check "find_package(openinfer), shared and static" by_cmake

check "the installed command runs" "$root/bin/openinfer" version
man_pages() {
    local page
    for page in openinfer $("$root/bin/openinfer" help --list | sed 's/^/openinfer-/'); do
        [ -s "$root/share/man/man1/$page.1" ] || { echo "no man page $page"; return 1; }
    done
}
check "every command has a man page" man_pages
man_renders() {
    local page said
    for page in "$root"/share/man/man1/*.1 "$root"/share/man/man3/openinfer.3; do
        said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -l "$page" 2>&1 > /dev/null)
        [ -z "$said" ] || { echo "$page: $said"; return 1; }
    done
}
if have man "man page layout"; then check "man pages render without warnings" man_renders; fi
check "bash completion" bash -n "$root/share/bash-completion/completions/openinfer"
if have zsh "zsh completion"; then
    check "zsh completion" zsh -n "$root/share/zsh/site-functions/_openinfer"
fi
if have fish "fish completion"; then
    check "fish completion" fish -n "$root/share/fish/vendor_completions.d/openinfer.fish"
fi

# -- the Python package -------------------------------------------------------------------------
python=build/venv/bin/python
python_installs() {
    cp -r python "$tmp/python" && # pip writes beside the sources
        "$python" -m venv --system-site-packages "$tmp/venv" &&
        OPENINFER_BUILD=$PWD/build "$tmp/venv/bin/python" -m pip install -q --no-index --no-build-isolation \
            --disable-pip-version-check "$tmp/python" &&
        cd "$tmp" && "$tmp/venv/bin/verify_oinf" --help && "$tmp/venv/bin/dataclass_to_oinf" --help &&
        "$tmp/venv/bin/python" -c 'import openinfer, pathlib
assert (pathlib.Path(openinfer.__file__).parent / "py.typed").exists() and openinfer.version()'
}
if [ ! -x "$python" ]; then
    echo "left out: installing the Python package: no build/venv"
elif ! "$python" -c 'import setuptools, wheel' 2> /dev/null; then
    echo "left out: installing the Python package: no setuptools and wheel here"
else
    check "pip install ./python" python_installs
fi
types() { cd python && mypy --cache-dir "$tmp/mypy"; }
if have mypy "types of the Python package"; then check "types of the Python package" types; fi
exit $bad
