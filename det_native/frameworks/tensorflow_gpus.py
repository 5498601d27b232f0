"""How TensorFlow comes with what it needs on GPUs: for the frameworks that compute with it."""

from __future__ import annotations

WITH_GPUS = "tensorflow[and-cuda]"
# The build for processors has the same files under another name.
GPU_REMEDY = (
    "{python} -m pip uninstall -y tensorflow tensorflow-cpu && "
    "{python} -m pip install 'tensorflow[and-cuda]=={version}'"
)
