"""Training with tf.keras: trial classes and the native context. TensorFlow is imported on the first use of a name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from det_native.frameworks import get_framework, missing, translated
from det_native.public_names import listed, without_init

if TYPE_CHECKING:
    from det_native.keras import callbacks
    from det_native.keras.adapter import SequenceAdapter
    from det_native.keras.base_context import TFKerasContext
    from det_native.keras.callbacks import TFKerasTensorBoard
    from det_native.keras.context import TFKerasNativeContext
    from det_native.keras.determined_callback import DeterminedCallback, TensorBoard
    from det_native.keras.experimental_context import TFKerasExperimentalContext
    from det_native.keras.native import FitCall
    from det_native.keras.trial import InputData, TFKerasTrial
    from det_native.keras.trial_context import TFKerasTrialContext

__all__ = [
    "DeterminedCallback",
    "FitCall",
    "InputData",
    "SequenceAdapter",
    "TFKerasContext",
    "TFKerasExperimentalContext",
    "TFKerasNativeContext",
    "TFKerasTensorBoard",
    "TFKerasTrial",
    "TFKerasTrialContext",
    "TensorBoard",
    "callbacks",
]

if find_spec("tensorflow") is None:
    raise missing(get_framework("keras"), __name__)

_HOMES = {
    "DeterminedCallback": "det_native.keras.determined_callback",
    "FitCall": "det_native.keras.native",
    "InputData": "det_native.keras.trial",
    "SequenceAdapter": "det_native.keras.adapter",
    "TFKerasContext": "det_native.keras.base_context",
    "TFKerasExperimentalContext": "det_native.keras.experimental_context",
    "TFKerasNativeContext": "det_native.keras.context",
    "TFKerasTensorBoard": "det_native.keras.callbacks",
    "TFKerasTrial": "det_native.keras.trial",
    "TFKerasTrialContext": "det_native.keras.trial_context",
    "TensorBoard": "det_native.keras.determined_callback",
}


def __getattr__(name: str) -> object:
    if name == "init":
        raise without_init("keras")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    with translated(__name__):
        if name == "callbacks":
            return import_module("det_native.keras.callbacks")
        value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


__dir__ = listed(__all__)
