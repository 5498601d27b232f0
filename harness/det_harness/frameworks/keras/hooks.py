"""The hooks that ``det.keras.callbacks.Callback`` adds to Keras's, and who raised what in a hook."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_native.keras.callbacks import Callback


class AddedHooks:
    """Calls the added hooks of those callbacks that have them."""

    def __init__(self, callbacks: Iterable[Any]) -> None:
        self._callbacks = [each for each in callbacks if isinstance(each, Callback)]
        self._in_workload = False

    @property
    def wants_checkpoints(self) -> bool:
        """Whether anybody wants to add to checkpoints."""
        return any(type(each).on_checkpoint_end is not Callback.on_checkpoint_end for each in self._callbacks)

    def workload_begins(self, done: int, until: int) -> None:
        """Batches are trained until `until` are done."""
        self._in_workload = True
        self._call("on_train_workload_begin", done, until - done, {})

    def workload_ends(self, done: int, logs: Mapping[str, Any]) -> None:
        """The batches are trained, or as many of them as there were; nothing happens if none had begun."""
        if not self._in_workload:
            return
        self._in_workload = False
        self._call("on_train_workload_end", done, dict(logs))

    def checkpoint_written(self, uuid: str, folder: Path) -> None:
        """A checkpoint lies in a folder, and is not published yet."""
        self._call("on_checkpoint_end", str(folder))

    def _call(self, hook: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, hook)(*arguments)


class NamingCallbacks(tf.keras.callbacks.CallbackList):  # type: ignore[misc]  # TensorFlow has no types
    """Keras's list of callbacks, which says which of them raised an exception, and where.

    It has to be said here: Keras takes its own frames out of a traceback that leaves ``fit``.
    """


def _naming(hook: str) -> Callable[..., None]:
    original = getattr(tf.keras.callbacks.CallbackList, hook)

    @functools.wraps(original)
    def call(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            original(self, *arguments, **named)
        except BaseException as error:
            name_callback(error)
            raise

    return call


for _mode in ("train", "epoch", "train_batch", "test", "test_batch"):
    for _moment in ("begin", "end"):
        setattr(NamingCallbacks, f"on_{_mode}_{_moment}", _naming(f"on_{_mode}_{_moment}"))


def name_callback(error: BaseException) -> None:
    """Add to an exception in which hook of which callback it was raised, if it was in one."""
    traceback, calling = error.__traceback__, None
    while traceback is not None:
        frame = traceback.tb_frame
        if isinstance(frame.f_locals.get("self"), tf.keras.callbacks.CallbackList | AddedHooks):
            calling = traceback
        traceback = traceback.tb_next
    if calling is None or calling.tb_next is None or hasattr(error, "__notes__"):
        return
    values = calling.tb_frame.f_locals.values()
    kind, list_of_all = tf.keras.callbacks.Callback, tf.keras.callbacks.CallbackList  # in Keras 3 one is the other
    callback = next((each for each in values if isinstance(each, kind) and not isinstance(each, list_of_all)), None)
    names = (calling.tb_frame.f_code.co_name.lstrip("_"), *(each for each in values if isinstance(each, str)))
    hook = next((each for each in names if each.startswith("on_")), None)
    if callback is not None and hook is not None:
        error.add_note(f"This was raised in {type(callback).__name__}.{hook}(), a callback of the training.")
