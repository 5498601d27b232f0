"""What is set in libraries for the whole process: one function for each library, called only where it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any

from det_native.process.stream import is_loaded

#: Set by the notebook itself, once the first figure is drawn.
_OF_THE_NOTEBOOK = frozenset({"backend", "backend_fallback", "interactive"})


def library_settings() -> dict[str, Hashable]:
    """Return what is set in the libraries that this process has loaded, by a name that a person understands."""
    state: dict[str, Hashable] = {}
    for name, settings_of in _SETTINGS.items():
        if is_loaded(name):
            with suppress(Exception):  # a library that is only half loaded
                settings = settings_of(sys.modules[name])
                state |= settings if isinstance(settings, dict) else {f"settings of {name}": settings}
    return state


def _torch(torch: Any) -> Hashable:
    return (
        str(torch.get_default_dtype()),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_grad_enabled(),
        torch.is_anomaly_enabled(),
        torch.get_float32_matmul_precision(),
    )


def _keras(keras: Any) -> Hashable:
    backend = keras.backend
    policy = keras.mixed_precision.global_policy() if hasattr(keras.mixed_precision, "global_policy") else ""
    name = getattr(policy, "name", str(policy))
    return (backend.floatx(), backend.image_data_format(), backend.epsilon(), name)


def _matplotlib(matplotlib: Any) -> dict[str, Hashable]:
    values = dict.items(matplotlib.rcParams)  # its own way chooses a backend
    return {f"rcParams[{name!r}]": str(value) for name, value in values if name not in _OF_THE_NOTEBOOK}


_SETTINGS: Mapping[str, Callable[[Any], Hashable | dict[str, Hashable]]] = {
    "numpy": lambda numpy: tuple(sorted(numpy.geterr().items())),
    "pandas": lambda pandas: hash(str(sys.modules["pandas._config.config"]._global_config)),
    "torch": _torch,
    "tensorflow": lambda tf: (tf.config.functions_run_eagerly(), tf.executing_eagerly()),
    "keras": _keras,
    "tf_keras": _keras,
    "sklearn": lambda sklearn: str(sorted(sklearn.get_config().items())),
    "matplotlib": _matplotlib,
}
