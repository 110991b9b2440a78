#!/usr/bin/env bash
# setup.sh MODE: make sure that what MODE needs is installed, as packages.txt lists it.
# Installs with apt-get when we are root or sudo works, and Python packages into build/venv. What
# cannot be installed is named, written to build/setup/left-out for the test summary, and we go on.
set -u
cd "$(dirname "$0")/.." || exit 3

case "${1:-}" in
build) groups="build" ;;
demo) groups="build python" ;;
test) groups="build python test style fuzz" ;;
fuzz) groups="build fuzz" ;;
coverage) groups="build python test" ;;
sanitize) groups="build python test" ;;
models) groups="build python test models" ;;
bench) groups="build python models bench" ;;
format) groups="style" ;;
all) groups="build python test style fuzz models bench" ;;
*) echo "usage: tools/setup.sh build|demo|test|fuzz|coverage|sanitize|models|bench|format|all" >&2; exit 2 ;;
esac

venv=build/venv
state=build/setup
mkdir -p "$state"
: > "$state/left-out"

# names KIND: the packages of that kind in the wanted groups
names() {
    awk -v kind="$1" -v groups=" $groups " \
        '!/^#/ && NF && $2 == kind && index(groups, " " $1 " ") { print $3 }' packages.txt
}

purpose() {
    awk -v name="$1" '$3 == name { $1 = $2 = $3 = ""; sub(/^ +/, ""); print; exit }' packages.txt
}

missing_apt() {
    local have
    command -v dpkg-query > /dev/null || { names apt; return; }
    # shellcheck disable=SC2046 # one word per package is meant
    have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(names apt) 2> /dev/null |
        awk '$2 == "installed" { print $1 }')
    grep -vxF -e "$have" <(names apt)
}

missing_pip() {
    [ -n "$(names pip)" ] || return 0
    [ -x "$venv/bin/python" ] || { names pip; return; }
    # shellcheck disable=SC2046
    "$venv/bin/python" - $(names pip) << 'PYTHON'
import importlib.metadata as metadata, sys
for name in sys.argv[1:]:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        print(name)
PYTHON
}

# Python packages that must lie in the environment itself
missing_wheel() {
    [ -n "$(names wheel)" ] || return 0
    [ -x "$venv/bin/python" ] || { names wheel; return; }
    # shellcheck disable=SC2046
    "$venv/bin/python" - $(names wheel) << 'PYTHON'
import importlib.metadata as metadata, sys, sysconfig
own = sysconfig.get_path("purelib")
for name in sys.argv[1:]:
    if not any(metadata.distributions(name=name, path=[own])):
        print(name)
PYTHON
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
        sudo "$@"
    else
        return 1
    fi
}

# A try that failed is not repeated by every make; deleting build/setup tries again.
tried_before() {
    [ "$(cat "$state/failed-$1" 2> /dev/null)" = "$2" ]
}

install_apt() {
    local missing="$1" get="apt-get -q -o Acquire::Retries=1 -o Acquire::http::Timeout=20"
    command -v apt-get > /dev/null || { echo "setup: no apt-get here"; return; }
    if ! as_root true; then
        echo "setup: not root, and sudo would need a password; as root this does it:"
        echo "  apt-get install --no-install-recommends" $missing
        return
    fi
    echo "setup: installing" $missing
    local quiet=$state/apt.log
    # shellcheck disable=SC2086
    as_root $get update > "$quiet" 2>&1 || echo "setup: apt-get update failed (no network?)"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive $get install -y --no-install-recommends $missing \
        >> "$quiet" 2>&1 && return
    # one unknown name must not keep the others out
    for name in $missing; do
        # shellcheck disable=SC2086
        as_root env DEBIAN_FRONTEND=noninteractive $get install -y --no-install-recommends "$name" \
            >> "$quiet" 2>&1 || echo "setup: could not install $name, see $quiet"
    done
}

install_wheel() { install_pip "$1" --ignore-installed --only-binary :all:; }

install_pip() { # NAMES OPTIONS
    local missing="$1" quiet=$state/pip.log
    shift
    if [ ! -x "$venv/bin/python" ]; then
        # Debian's own Python first: with what apt-get installed for it, pip has nothing to do
        local system=/usr/bin/python3
        [ -x $system ] || system=python3
        command -v $system > /dev/null || { echo "setup: no python3 here"; return; }
        if ! $system -m venv --system-site-packages "$venv" > "$quiet" 2>&1; then
            rm -rf "$venv"
            echo "setup: python3 -m venv failed (Debian: python3-venv), see $quiet"
            return
        fi
        [ $# != 0 ] || missing=$(missing_pip)
        [ -n "$missing" ] || return
    fi
    echo "setup: installing into $venv:" $missing
    # llama.cpp is compiled here; bench/peers/tiles.h says why it is included
    local name tiles="-include $PWD/bench/peers/tiles.h"
    export CMAKE_ARGS="-DCMAKE_C_FLAGS='$tiles' -DCMAKE_CXX_FLAGS='$tiles' ${CMAKE_ARGS:-}"
    for name in $missing; do
        "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 1 --timeout 20 \
            "$@" "$name" >> "$quiet" 2>&1 || echo "setup: could not install $name, see $quiet"
    done
}

# The package of this checkout, for build/venv/bin/python: the path is relative, so that a checkout may move.
link_package() {
    local site
    for site in "$venv"/lib/python*/site-packages; do
        [ ! -d "$site" ] || echo ../../../../../python/src > "$site/openinfer.pth"
    done
}

for kind in apt pip wheel; do
    missing=$(missing_$kind)
    [ -n "$missing" ] || continue
    if tried_before $kind "$missing"; then
        echo "setup: not trying again to install" $missing "(delete $state to try again)"
    else
        install_$kind "$missing"
        missing=$(missing_$kind)
        [ -z "$missing" ] || echo "$missing" > "$state/failed-$kind"
    fi
    for name in $missing; do
        echo "$name ($(purpose "$name"))" >> "$state/left-out"
    done
done

link_package

if [ -s "$state/left-out" ]; then
    echo "setup: these are missing; what needs them is left out:"
    sed 's/^/  /' "$state/left-out"
fi
for need in "cc:gcc" "cmake:cmake" "pkg-config:pkg-config"; do
    case " $groups " in *" build "*) ;; *) continue ;; esac
    command -v "${need%%:*}" > /dev/null ||
        { echo "setup: cannot build without ${need%%:*} (Debian: ${need##*:})" >&2; exit 3; }
done
exit 0
