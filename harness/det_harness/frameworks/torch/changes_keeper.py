"""What a loop, or the functions of a call, change besides the wrapped objects: in checkpoints, and brought home."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from det_harness.frameworks.torch.trial_state import CHANGES
from det_harness.trial import after_training, heap_file, state_files
from det_native.heap.call import CallSnapshot
from det_native.heap.roots import roots_of_call
from det_native.pytorch import PyTorchCallback
from det_native.pytorch.native_call import TorchCall
from det_native.pytorch.native_run import PyTorchRunContext

logger = logging.getLogger("det_harness")

_DATA = "data"


def begin_loop(context: PyTorchRunContext, frame: FrameType | None) -> None:
    """Take the snapshot of a loop that begins; `frame` is the loop's."""
    _begin(context, frame, {})


def begin_call(call: TorchCall) -> None:
    """Take the snapshot of a call of ``context.fit()``, before it trains."""
    functions = {"train_batch": call.train_batch, "evaluate_batch": call.evaluate_batch}
    _begin(call.context, None, functions | {f"callbacks.{name}": value for name, value in call.callbacks.items()})


def _begin(context: PyTorchRunContext, frame: FrameType | None, given: Mapping[str, Any]) -> None:
    context.snapshot = None
    loaders = {f"loader {number}": loader.plain for number, loader in enumerate(context.loaders)}
    try:
        namespace, frames = roots_of_call(frame)
        context.snapshot = CallSnapshot(
            namespace,
            frames,
            {"state": context.state, **given, **loaders},
            list(_kept_elsewhere(context)),
            exact=heap_file.is_exact(context.env),
        )
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are read)
        logger.warning("Variables that the training changes are not kept, as they cannot be read: %s", error)


def _kept_elsewhere(context: PyTorchRunContext) -> Iterator[Any]:
    """Yield what checkpoints have in files of their own."""
    for model in context.models:
        yield from model.parameters()
        yield from model.buffers()
    yield from context.optimizers
    for wrapped in context.lr_schedulers:
        yield wrapped.scheduler
    yield from context.scalers


class ChangesKeeper(PyTorchCallback):
    """Keeps in checkpoints what a loop, or the functions of a call, have changed.

    Parameters
    ----------
    context : PyTorchRunContext
    """

    def __init__(self, context: PyTorchRunContext) -> None:
        self._context = context
        self._warned: set[str] = set()
        self._saved = b""

    def state_dict(self) -> dict[str, Any]:
        snapshot = self._context.snapshot
        if snapshot is None:
            return {}
        changes = snapshot.changes()
        for sentence in changes.left_out:
            if sentence not in self._warned:
                self._warned.add(sentence)
                logger.warning("%s A trial that is stopped and goes on has it as the cells make it.", sentence)
        content = heap_file.content_of(changes)
        self._saved = hashlib.blake2b(content).digest()
        return {_DATA: np.frombuffer(content, np.uint8)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._context.snapshot is not None and state_dict:
            heap_file.restore(state_dict[_DATA].tobytes(), self._context.snapshot)

    def state_at_end(self) -> dict[str, Any] | None:
        """Return the state after the training, if it differs from that of the last checkpoint."""
        before = self._saved
        if not before:
            return None
        state = self.state_dict()
        return state if self._saved != before else None


def bring_changes(context: PyTorchRunContext, directory: Path) -> list[str]:
    """Put in place what a training has changed whose checkpoint is in `directory`; return what stays as it was."""
    for folder in (after_training.weights_in(directory), directory):
        state = state_files.load(folder, "callbacks").get(CHANGES) if (folder / "callbacks.json").exists() else None
        if state and context.snapshot is not None:
            return heap_file.bring_home(state[_DATA].tobytes(), context.snapshot)
    return []
