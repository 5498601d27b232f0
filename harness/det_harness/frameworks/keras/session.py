"""What ``session_config()`` of a trial says, given to its session, or to eager TensorFlow, which has none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from det_native.keras.trial import TFKerasTrial

logger = logging.getLogger("det_native")


def apply_session_config(trial: TFKerasTrial) -> None:
    """Make the session of a trial by its configuration; in eager mode set what of it there is a setting for.

    What is set and cannot be given to eager TensorFlow is named in a warning.
    """
    if not tf.executing_eagerly():
        session = tf.compat.v1.Session(config=trial.session_config())
        tf.compat.v1.keras.backend.set_session(session)
        return
    if type(trial).session_config is TFKerasTrial.session_config:
        return
    config = trial.session_config()
    if config is None:
        return
    tf.config.set_soft_device_placement(bool(config.allow_soft_placement))
    tf.debugging.set_log_device_placement(bool(config.log_device_placement))
    settings: dict[str, Callable[[Any], None]] = {
        "gpu_options.allow_growth": lambda value: _let_memory_grow(),
        "intra_op_parallelism_threads": _threads("intra_op_parallelism_threads"),
        "inter_op_parallelism_threads": _threads("inter_op_parallelism_threads"),
    }
    without = []
    for name, value in _written(config):
        if name in ("allow_soft_placement", "log_device_placement"):
            continue
        try:
            settings[name](value)
        except KeyError:
            without.append(name)
        except RuntimeError:  # TensorFlow says no more than that it has begun already
            without.append(f"{name} (TensorFlow has begun already in this process)")
    if without:
        logger.warning(
            "%s.session_config(): %s without effect, as the trial runs eagerly.",
            type(trial).__name__,
            ", ".join(without),
        )


def _threads(name: str) -> Callable[[int], None]:
    def use(count: int) -> None:
        if getattr(tf.config.threading, f"get_{name}")() != count:
            getattr(tf.config.threading, f"set_{name}")(count)

    return use


def _let_memory_grow() -> None:
    for gpu in tf.config.list_physical_devices("GPU"):
        if not tf.config.experimental.get_memory_growth(gpu):
            tf.config.experimental.set_memory_growth(gpu, True)


def _written(config: Any) -> list[tuple[str, Any]]:
    """Return the fields of a message that are set, by name; those of the GPUs one by one."""
    found = []
    for field, value in config.ListFields():
        if field.name == "gpu_options":
            found += [(f"gpu_options.{name}", each) for name, each in _written(value)]
        else:
            found.append((field.name, value))
    return found
