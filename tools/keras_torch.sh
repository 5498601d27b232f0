#!/bin/sh
# Makes the environment in $VENV_TORCH from $PYTHON, which is 3.11: Keras 3 with PyTorch as its backend, and TensorFlow beside
# it, which det_native reads data with. Only tests want it: `make lanes` runs them where it is found.
set -eu

log="$VENV_TORCH/setup.log"
[ -x "$VENV_TORCH/bin/python" ] || "$PYTHON" -m venv "$VENV_TORCH"
echo "Installing Keras 3 and PyTorch into $VENV_TORCH (2 minutes; details in $log) ..."
grep -v '^jax$' tools/python313.txt >"$VENV_TORCH/wanted.txt"
if ! "$VENV_TORCH/bin/python" -m pip install -q -r "$VENV_TORCH/wanted.txt" -e . \
    "torch==2.13.0" "keras==3.15.*" "tensorflow-cpu==2.21.*" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    exit 1
fi
touch "$VENV_TORCH/.installed"
