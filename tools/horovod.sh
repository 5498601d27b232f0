#!/bin/sh
# Builds Horovod for the PyTorch of $VENV, and installs it there. There is no wheel of it, and its last version is older
# than the C++ of today's PyTorch, so that two lines of its build files are changed. The wheel is kept outside of the
# checkout, by the versions that it was built for: the build, some 6 minutes on two cores, is done once. Nothing calls this.
set -eu

VERSION=0.28.1
VENV="${VENV:-.venv}"
python="$(cd "$VENV/bin" && pwd)/python"
for tool in g++ cmake make; do
    command -v "$tool" >/dev/null 2>&1 || missing="${missing:-} $tool"
done
if [ -n "${missing:-}" ]; then
    echo "Building Horovod needs:$missing (apt-get install g++ cmake make)." >&2
    exit 1
fi

versions="$("$python" -c 'import sys, torch; print(f"cp{sys.version_info[0]}{sys.version_info[1]}-torch{torch.__version__}")')"
wheels="${XDG_CACHE_HOME:-$HOME/.cache}/det_native/wheels/$versions"
wheel="$(ls "$wheels"/horovod-$VERSION-*.whl 2>/dev/null | head -n 1)"

if [ -z "$wheel" ]; then
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    log="$work/build.log"
    echo "Building Horovod $VERSION for $versions (some 6 minutes on two cores) ..."
    if ! {
        "$python" -m pip download -q --no-binary horovod --no-deps --no-build-isolation -d "$work" "horovod==$VERSION" &&
            tar -xzf "$work/horovod-$VERSION.tar.gz" -C "$work" &&
            cd "$work/horovod-$VERSION" &&
            sed -i 's/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD 17)/' CMakeLists.txt horovod/torch/CMakeLists.txt &&
            HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 \
                HOROVOD_WITHOUT_MXNET=1 CMAKE_POLICY_VERSION_MINIMUM=3.5 \
                "$python" -m pip wheel -q --no-deps --no-build-isolation -w "$work/made" .
    } >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        exit 1
    fi
    cd "$OLDPWD"
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
"$python" -m pip install -q --no-deps "$wheel"
"$python" -m pip install -q -c constraints.txt cloudpickle psutil pyyaml packaging
echo "Horovod $VERSION is installed in $VENV."
