#!/bin/sh
# Builds Horovod for the PyTorch and the TensorFlow of $VENV, and installs it there. There is no wheel of it, and its
# last version is older than the C++ of today's PyTorch, so that lines of its build files are changed. The wheel is kept
# outside of the checkout, by the versions that it was built for: the build, some 6 minutes on two cores, is done once.
# Run by `make test`; it is also part of our wheel, as share/det_native/horovod.sh. With the argument `build`, nothing is
# installed, and the wheel's path printed.
set -eu

VERSION=0.28.1
CMAKE=4.4.4 # where the system has none
VENV="${VENV:-.venv}"
if [ ! -x "$VENV/bin/python" ]; then
    echo "There is no Python environment in $VENV: name one, VENV=/path/to/environment sh $0" >&2
    exit 1
fi
python="$(cd "$VENV/bin" && pwd)/python"
for tool in g++ make; do
    command -v "$tool" >/dev/null 2>&1 || missing="${missing:-} $tool"
done

frameworks="$("$python" - <<'END'
import importlib.metadata as metadata
import sys

found = {}
for name in ("torch", "tensorflow", "tensorflow-cpu"):
    try:
        found[name.partition("-")[0]] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print("-".join([f"cp{sys.version_info[0]}{sys.version_info[1]}", *(name + found[name] for name in sorted(found))]))
END
)"
with="HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1"
case "$frameworks" in
*-torch*) with="$with HOROVOD_WITH_PYTORCH=1" ;;
*) with="$with HOROVOD_WITHOUT_PYTORCH=1" ;;
esac
case "$frameworks" in
*-tensorflow*) with="$with HOROVOD_WITH_TENSORFLOW=1" ;;
*) with="$with HOROVOD_WITHOUT_TENSORFLOW=1" ;;
esac
if [ "${frameworks#*-}" = "$frameworks" ]; then
    echo "Neither PyTorch nor TensorFlow is installed in $VENV: Horovod is built for the ones that are." >&2
    exit 1
fi

wheels="${XDG_CACHE_HOME:-$HOME/.cache}/det_native/wheels/$frameworks"
wheel="$(ls "$wheels"/horovod-$VERSION-*.whl 2>/dev/null | head -n 1)"

# The source, with C++17 for C++14, and its wheel, below the folder $1.
build() {
    if ! command -v cmake >/dev/null 2>&1; then
        "$python" -m pip install -q --no-deps --target "$1/tools" "cmake==$CMAKE" || return
        PATH="$1/tools/bin:$PATH" PYTHONPATH="$1/tools" && export PATH PYTHONPATH
    fi
    "$python" -m pip download -q --no-binary horovod --no-deps --no-build-isolation -d "$1" "horovod==$VERSION" &&
        tar -xzf "$1/horovod-$VERSION.tar.gz" -C "$1" &&
        cd "$1/horovod-$VERSION" &&
        sed -i 's/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD 17)/' CMakeLists.txt horovod/*/CMakeLists.txt &&
        env $with MAKEFLAGS=-j2 CMAKE_POLICY_VERSION_MINIMUM=3.5 \
            "$python" -m pip wheel -q --no-deps --no-build-isolation -w "$1/made" .
}

if [ -z "$wheel" ]; then
    if [ -n "${missing:-}" ]; then
        echo "Building Horovod needs:$missing (apt-get install g++ make)." >&2
        exit 1
    fi
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    echo "Building Horovod $VERSION for $frameworks (some 6 minutes on two cores) ..." >&2
    if ! (build "$work") >"$work/build.log" 2>&1; then
        tail -n 40 "$work/build.log" >&2
        exit 1
    fi
    mkdir -p "$wheels"
    made="$(ls "$work"/made/horovod-*.whl)"
    # A wheel that is there is whole.
    cp "$made" "$wheels/.$$.part" && mv "$wheels/.$$.part" "$wheels/$(basename "$made")"
    wheel="$wheels/$(basename "$made")"
fi
if [ "${1:-}" = build ]; then
    echo "$wheel"
    exit 0
fi
# The same version may be there, built for other frameworks.
"$python" -m pip install -q --no-deps --force-reinstall "$wheel"
"$python" -m pip install -q cloudpickle psutil pyyaml packaging
echo "Horovod $VERSION is installed in $VENV."
