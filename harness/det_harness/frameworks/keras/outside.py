"""What a call of ``fit`` may change outside of its model's weights: all that the program's names and the call lead to.

In a checkpoint: ``heap.bin`` with what has changed since the call began, and ``callback_states.*`` with the states of
callbacks that say themselves what they are (``get_state()`` of ``det_native.keras.Callback``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import handles
from det_harness.frameworks.keras.optimizers import optimizers_of
from det_harness.trial import heap_file, state_files
from det_harness.trial.open_files import flush_writers
from det_native.heap.call import CallSnapshot
from det_native.keras import pipelines
from det_native.keras.callbacks import keeps_own_state
from det_native.keras.generations import internals
from det_native.keras.native import FitCall

logger = logging.getLogger("det_native")

_OWN = "callback_states"
# Parts of a compiled model that Keras builds with the first batch: of tf.keras 2, and of Keras 3.
_BUILT_BY_FIT = ("compiled_loss", "compiled_metrics", "_compile_loss", "_compile_metrics", "_loss_tracker")


def snapshot_of(call: FitCall) -> CallSnapshot:
    """Return all that a call can reach, as it is when the call is submitted, or begins to train."""
    given: dict[str, Any] = {"model": call.model, "callbacks": call.callbacks()}
    if getattr(call.model, "optimizer", None) is not None:
        given["model.optimizer"] = call.model.optimizer
    for name in ("x", "validation_data"):
        data = call.arguments[name]
        if isinstance(data, tf.data.Dataset):
            given[name], given[f"functions of {name}"] = data, pipelines.functions_of(data)
        elif not isinstance(data, tuple | list):
            given[name] = data
    return heap_file.snapshot_of(given, call.context.env, _kept_by_checkpoints(call))


def _kept_by_checkpoints(call: FitCall) -> Iterator[Any]:
    """Yield what other files of a checkpoint have: weights, optimizers, running metrics."""
    model = call.model
    for variable in model.weights if model.built else ():
        yield variable
        inner = getattr(variable, "_variable", getattr(variable, "_value", None))  # mixed precision; Keras 3
        if inner is not None:
            yield inner
    yield from optimizers_of(model)
    for name in _BUILT_BY_FIT:
        part = getattr(model, name, None)
        if part is not None:
            yield part
    yield from filter(keeps_own_state, call.callbacks())


class FitChanges(heap_file.KeptChanges):
    """The changes of a call of ``fit``, with the states of callbacks that say themselves what they are."""

    def __init__(self, call: FitCall) -> None:
        super().__init__(lambda: call.snapshot, reopen=handles.reduced)
        self._call = call

    def save_with(self, folder: Path, callbacks: Sequence[Any]) -> None:
        """Write them into the folder of a checkpoint; who has something buffered is told to write it out."""
        if self._call.snapshot is None:
            return
        flush_writers([self._call.snapshot.open_files(), *(part for each in callbacks for part in vars(each).values())])
        self.save(folder)
        states = _own_states(callbacks)
        if states:
            state_files.dump(
                folder, _OWN, states, lambda path: f"What {path[0].rpartition(' ')[0]}.get_state() returns"
            )

    def digest_with(self, callbacks: Sequence[Any]) -> bytes:
        """Return what tells the present states from others."""
        return b"" if self._call.snapshot is None else self.digest() + repr(_own_states(callbacks)).encode()

    def restore_from(self, folder: Path, callbacks: Sequence[Any]) -> None:
        """Bring everything to where it was; the callbacks' ``on_train_begin`` has been called."""
        if self._call.snapshot is None:
            return
        with self._call.data_preserved():  # which has gone on from its own state
            handles.go_on(self._call.snapshot.open_files())
            self.open(folder)
            self.restore()
            for callback in callbacks:
                if isinstance(callback, tf.keras.callbacks.History):
                    _go_on_with(callback)
            _give_own(folder, callbacks, lambda callback, state: callback.load_state(state))


def _go_on_with(history: Any) -> None:
    """Have the ``History`` of this process go on with what that of the process before it had noted."""
    noted = history.model.history
    if noted is not None and noted is not history:
        history.history, history.epoch = noted.history, noted.epoch
        history.model.history = history


def bring_home(checkpoint: Path, call: FitCall) -> list[str]:
    """Give the objects of the notebook what training elsewhere has made of them; return what stays as it was."""
    snapshot, call.snapshot = call.snapshot, None
    with internals.as_in_fit(call.model):
        sentences = heap_file.bring_home(checkpoint, snapshot)
    if snapshot is not None:
        _give_own(heap_file.folder_in(checkpoint), call.callbacks(), _load_state)
    return sentences


def _own_states(callbacks: Sequence[Any]) -> dict[str, Any]:
    kept = [callback for callback in callbacks if keeps_own_state(callback)]
    return {f"{type(callback).__qualname__} {n}": callback.get_state() for n, callback in enumerate(kept)}


def _give_own(folder: Path, callbacks: Sequence[Any], give: Callable[[Any, Any], None]) -> None:
    if not (folder / f"{_OWN}.json").exists():
        return
    kept = [callback for callback in callbacks if keeps_own_state(callback)]
    for callback, state in zip(kept, state_files.load(folder, _OWN).values(), strict=False):
        give(callback, state)


def _load_state(callback: Any, state: Any) -> None:
    try:
        callback.load_state(state)
    except Exception as error:  # noqa: BLE001 (code of the user's; the weights are here, and the cell goes on)
        logger.warning("%s.load_state() has failed, so the callback is as it was: %s", type(callback).__name__, error)
