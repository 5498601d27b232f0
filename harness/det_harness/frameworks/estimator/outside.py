"""What a training of an estimator may change outside of its graphs: hooks, input functions, names of the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from det_harness.frameworks.base import FrameworkHarness
from det_harness.trial import after_training, heap_file
from det_native.heap import roots
from det_native.heap.call import CallSnapshot


class EstimatorsHarness(FrameworkHarness):
    """What both ways of training an estimator bring home; its variables lie in files."""

    def note_names(self, call: Any) -> None:
        """Look at all that a call can reach in the program, before it trains."""
        call.snapshot = snapshot_of(call)

    def load_into(self, call: Any, directory: Path) -> None:
        """Put what a training has changed into the program's objects."""
        context = call.context
        if context is None:
            return
        if context.role in ("worker", "load"):  # an earlier call, which does not train here
            self.note_names(call)
        for folder in (after_training.weights_in(directory), directory):
            if heap_file.is_in(folder) and call.snapshot is not None:
                heap_file.bring_home(heap_file.read(folder), call.snapshot)
                break


def snapshot_of(call: Any) -> CallSnapshot:
    """Return all that a call of ``train_and_evaluate()`` can reach, as it is now."""
    namespace, frames = roots.roots_of_call()
    given = {"train_spec": call.train_spec, "eval_spec": call.eval_spec, "params": call.estimator.params}
    config = call.context.env.config if call.context is not None else {}
    searcher = config.get("searcher") or {}
    return CallSnapshot(namespace, frames, given, exact=searcher.get("name", "single") == "single")


class KeptChanges:
    """Writes what has changed into checkpoints, and knows whether the last one has all of it.

    Parameters
    ----------
    snapshot : CallSnapshot or None
        None for a trial class, whose program is not the notebook's.
    """

    def __init__(self, snapshot: CallSnapshot | None) -> None:
        self._snapshot = snapshot
        self._kept: bytes | None = None
        self._saved = b""

    def open(self, folder: Path | None) -> None:
        """Take what a checkpoint has, for :meth:`restore`."""
        self._saved = b"" if folder is None else heap_file.read(folder)

    def save(self, folder: Path) -> None:
        """Write it into a checkpoint."""
        if self._snapshot is not None:
            heap_file.save(folder, self._snapshot)
            self._kept = heap_file.digest_in(folder)

    def restore(self) -> None:
        """Put it in place, once; hooks have begun."""
        saved, self._saved = self._saved, b""
        if self._snapshot is not None:
            heap_file.restore(saved, self._snapshot)

    def save_end(self, checkpoints: Any) -> None:
        """Have the last checkpoint have what hooks have changed when the training ended."""
        if self._snapshot is not None and self._kept is not None and heap_file.digest(self._snapshot) != self._kept:
            checkpoints.save_end(self.save)
