"""What a framework sees of the GPUs that its process may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuSight:
    """What a framework sees.

    Attributes
    ----------
    version : str
        Of the framework.
    built_for : str
        What its build can use: ``"CUDA 12.6"``; empty if it is the processors only.
    """

    gpus: int
    version: str
    built_for: str = ""

    @property
    def why_none(self) -> str:
        """Why it sees no GPU, as far as its build tells; a part of a sentence."""
        if not self.built_for:
            return "it is built for the processors only"
        return f"it is built for {self.built_for}, and cannot use the driver or its own libraries"


def tensorflow_sight() -> GpuSight:
    """Return what TensorFlow sees; nothing is set up on a GPU for it."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    built_for = ""
    if build.get("is_cuda_build"):
        built_for = f"CUDA {build.get('cuda_version', '')}".rstrip()
    elif build.get("is_rocm_build"):
        built_for = "ROCm"
    return GpuSight(len(tf.config.list_physical_devices("GPU")), tf.__version__, built_for)
