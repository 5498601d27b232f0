#!/bin/sh
# Makes the environment in $VENV313 from constraints-3.13.txt: Python 3.13 with Keras 3 on TensorFlow and JAX, without
# PyTorch, whose wheel for it is one of 3 GB. Only tests want it. Where there is no such Python, it says so and ends well.
set -eu

found=""
for candidate in "${PYTHON313:-}" python3.13 "$HOME"/.pyenv/versions/3.13.*/bin/python; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
        found="$candidate"
        break
    fi
done
if [ -z "$found" ]; then
    echo "There is no Python 3.13 here: the tests on it, with Keras 3, are skipped. Name one: make python313 PYTHON313=/path"
    exit 0
fi
[ -x "$VENV313/bin/python" ] || "$found" -m venv "$VENV313"

log="$VENV313/setup.log"
echo "Installing Python 3.13 with Keras 3 into $VENV313 (2 minutes; details in $log) ..."
# The extension of JupyterLab has been built by `make setup`; the same sources are installed here.
if ! "$VENV313/bin/python" -m pip install -q -c constraints-3.13.txt -r tools/python313.txt -e . >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    exit 1
fi
touch "$VENV313/.installed"
