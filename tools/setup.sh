#!/bin/sh
# Makes the environment in $VENV from constraints.txt, with the JupyterLab extension built and installed in it. Run by
# `make setup`, and by itself by every other target. What npm does is in tools/build_hook.py, which pip runs.
set -eu

STAMP="${STAMP:-$VENV/.installed}"

if [ -z "${PYTHON:-}" ] || ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    echo "det_native needs Python 3.11 for its full environment; found: ${PYTHON:-none}. Name one: make setup PYTHON=/path/to/python3.11" >&2
    exit 1
fi

up_to_date=no
if [ -x "$VENV/bin/python" ] && [ "$STAMP" -nt pyproject.toml ] && [ "$STAMP" -nt constraints.txt ] &&
    [ "$STAMP" -nt tools/setup.sh ]; then
    up_to_date=yes
fi
if [ "$up_to_date" = yes ]; then
    # Only the front end has changed.
    log="$VENV/front_end.log"
    echo "Building the JupyterLab extension anew (details in $log) ..."
    if ! "$VENV/bin/python" -m pip install -q -e . --no-deps --no-build-isolation >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        exit 1
    fi
    exit 0
fi

sh tools/system_packages.sh

if [ ! -x "$VENV/bin/python" ]; then
    "$PYTHON" -m venv "$VENV"
fi

log="$VENV/setup.log"
: >"$log"

# Runs pip with the pinned versions; says what it does, and if that fails, what pip said.
install() {
    echo "  $1 ..."
    shift
    if ! "$VENV/bin/python" -m pip install -q -c constraints.txt "$@" >>"$log" 2>&1; then
        tail -n 30 "$log" >&2
        exit 1
    fi
}

echo "Installing the pinned environment into $VENV (3 to 8 minutes the first time; details in $log):"
install "pip" pip
install "PyTorch and TensorFlow" torch tensorflow-cpu
# The front end's types are made from the master's routes: its packages are there before det_native is built.
requirements="$VENV/requirements.txt"
"$VENV/bin/python" tools/requirements.py >"$requirements"
install "the other packages" torch tensorflow-cpu --group dev -r "$requirements"
install "det_native with its JupyterLab extension" --no-build-isolation -e .
# ipykernel brings the kernel "Python 3"; one of the same interpreter that an earlier version installed goes.
rm -rf "$VENV/share/jupyter/kernels/det-native"
echo "Done: $VENV is ready. Next: make lab (JupyterLab on notebooks/), make demo, or make test."
