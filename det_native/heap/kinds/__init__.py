"""The kinds: importing this package fills the table with those of Python's classes.

Those of a library's classes follow when an object of the library is met.
"""

from det_native.heap.edges import OF_LIBRARIES
from det_native.heap.kinds import builtin, functions, instances, process  # noqa: F401 (each fills the table)

OF_LIBRARIES |= {
    "PIL": ("pillow_",),
    "det_native": ("torch_",),
    "jax": ("jax_",),
    "jaxlib": ("jax_",),
    "keras": ("keras2", "keras3"),
    "lightgbm": ("boosters",),
    "numpy": ("numpy_",),
    "pandas": ("pandas_",),
    "polars": ("polars_",),
    "pyarrow": ("pyarrow_",),
    "tensorflow": ("tensorflow_", "tensorflow_datasets"),
    "tensorflow_estimator": ("tensorflow_",),
    "torch": ("torch_",),
    "xgboost": ("boosters",),
}
