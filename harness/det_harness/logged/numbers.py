"""Scalars out of what frameworks have for numbers."""

from __future__ import annotations

from typing import Any

from det_harness.trial.metrics import scalar


def number_of(value: Any) -> float | None:
    """Return a scalar as a float: a number, or a tensor or an array of one element; None for anything else."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if isinstance(value, str | bytes | complex):
        return None
    try:
        found = scalar(value)
        if found is not None:
            return found
        numpy = getattr(value, "numpy", None)  # of TensorFlow's tensors and variables
        if callable(numpy):
            return scalar(numpy())
        return float(value) if hasattr(kind, "__float__") else None
    except Exception:  # noqa: BLE001 (several elements, no value yet, on a device that failed, a class of the user's)
        return None


def array_of(value: Any) -> Any:
    """Return values as a numpy array: of a tensor of any framework, or a sequence.

    Raises
    ------
    Exception
        Of numpy or the framework, if there is none.
    """
    import numpy as np

    detach = getattr(value, "detach", None)
    if callable(detach):  # a tensor of PyTorch
        value = detach().cpu()
        # Where they are, as by numpy(), after which the memory could not be resized.
        value = np.from_dlpack(value.float() if value.dtype.is_floating_point else value)
    elif callable(getattr(value, "numpy", None)) and not isinstance(value, np.ndarray):
        value = value.numpy()
    elif isinstance(value, list | tuple) and value and callable(getattr(value[0], "detach", None)):
        value = [array_of(each) for each in value]
    found = np.asarray(value)
    if found.dtype.kind not in "biuf" and found.dtype.name == "bfloat16":
        found = found.astype(np.float32)
    return found
