"""Training with tf.keras: the native context. TensorFlow is imported on the first use of a name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from det_native.frameworks import get_framework, missing, translated
from det_native.unsupported import unsupported_names

if TYPE_CHECKING:
    from det_native.keras.context import TFKerasNativeContext
    from det_native.keras.native import FitCall

__all__ = ["FitCall", "TFKerasNativeContext"]

if find_spec("tensorflow") is None:
    raise missing(get_framework("keras"), __name__)

_HOMES = {"TFKerasNativeContext": "det_native.keras.context", "FitCall": "det_native.keras.native"}
_unsupported = unsupported_names(
    __name__,
    {"SequenceAdapter", "TFKerasExperimentalContext", "TFKerasTrial", "TFKerasTrialContext", "callbacks"},
    remedy="Until then use det_native.experimental.keras.init() and model.fit().",
)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        _unsupported(name)
    from importlib import import_module

    with translated(__name__):
        value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
