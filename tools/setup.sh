#!/bin/sh
# Makes the environment in $VENV from constraints.txt. Run by `make setup`, and by itself by every other target.
set -eu

if [ -z "${PYTHON:-}" ] || ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    echo "det_native needs Python 3.11 for its full environment; found: ${PYTHON:-none}. Name one: make setup PYTHON=/path/to/python3.11" >&2
    exit 1
fi

sh tools/system_packages.sh

if [ ! -x "$VENV/bin/python" ]; then
    "$PYTHON" -m venv "$VENV"
fi

log="$VENV/setup.log"
echo "Installing the pinned environment into $VENV (about 2 minutes the first time; details in $log) ..."
if ! {
    "$VENV/bin/python" -m pip install -q -c constraints.txt pip &&
    "$VENV/bin/python" -m pip install -q -c constraints.txt torch tensorflow-cpu --group dev -e .
} >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    exit 1
fi
"$VENV/bin/python" -m ipykernel install --sys-prefix --name det-native --display-name "Python 3 (det_native)" >>"$log" 2>&1
