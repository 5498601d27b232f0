"""The kinds: importing this package fills the table."""

from det_native.heap.kinds import (
    builtin,
    functions,
    instances,
    keras2,
    keras3,
    numpy_,
    pandas_,
    process,
    tensorflow_,
    torch_,
)

__all__ = [
    "builtin",
    "functions",
    "instances",
    "keras2",
    "keras3",
    "numpy_",
    "pandas_",
    "process",
    "tensorflow_",
    "torch_",
]
