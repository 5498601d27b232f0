"""What a training call can reach, from its beginning on: its changes as bytes, put in place in another process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

from det_native.heap.edges import KEPT, Kind, kind_of
from det_native.heap.kinds.builtin import LIST
from det_native.heap.names import ENVIRONMENT, FRAME, NAMESPACE, ROOTS, SETTINGS
from det_native.heap.packing import Packer
from det_native.heap.pickling import Reopen
from det_native.heap.side_by_side import Others
from det_native.heap.snapshot import Snapshot
from det_native.heap.temporary import TemporaryFolders
from det_native.heap.undo import Copies
from det_native.heap.unpacking import put_changes

#: Bytes of changes that come home by themselves; what exceeds it is named and comes when it is asked for.
LIMIT = 1 << 30
#: The file of a checkpoint that has what exceeds it, and is not downloaded unasked.
LARGE = "heap_large.bin"


class Changes(NamedTuple):
    """What has changed since a call began, the largest things apart, and a sentence for each thing that stays."""

    data: bytes
    large: bytes
    left_out: list[str]


class CallSnapshot:
    """All that a training call can reach, as it is when this is made.

    The notebook makes one when it submits a call, the worker when it begins to train: they have run the same program,
    so the same way leads to the same object in both.

    Parameters
    ----------
    namespace : dict
        The notebook's names.
    frames : iterable of frame
        Of the user's functions between the cell and the call, the outermost first.
    given : mapping of str to object
        What the call is given, by names that are the same in both processes.
    kept_elsewhere : iterable of object
        Objects whose content somebody else saves and loads (the trained model's weights, its optimizer's state): they
        have addresses, and nothing of that content is compared. Of a tensor of PyTorch that is its memory and its
        gradient, of an optimizer what a checkpoint's file has of it; its other attributes are compared.
    exact : bool
        Whether both processes are to hold the same values at the beginning; with other hyperparameters or another
        seed they need not.
    keep_small : bool
        Whether :meth:`undo` will be used: small arrays are copied, and what is kept elsewhere is left alone.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        frames: Iterable[FrameType] = (),
        given: Mapping[str, Any] | None = None,
        kept_elsewhere: Iterable[Any] = (),
        *,
        exact: bool = True,
        keep_small: bool = False,
    ) -> None:
        self._exact = exact
        kept = [
            pair
            for obj in kept_elsewhere
            for pair in ([(obj, KEPT)] if keep_small else kind_of(obj).kept_elsewhere(obj))
        ]
        roots: dict[str, tuple[Any, Kind]] = {
            "names": (namespace, NAMESPACE),
            "environment": (os.environ, ENVIRONMENT),
            "settings": (object(), SETTINGS),
        }
        for place, frame in enumerate(frames):
            if frame.f_locals is not namespace:
                roots[f"function {place} {frame.f_code.co_qualname}"] = frame, FRAME
        roots |= {"given": (dict(given or {}), ROOTS), "kept elsewhere": ([obj for obj, _ in kept], LIST)}
        self._snapshot = Snapshot(roots, {id(obj): kind for obj, kind in kept})
        self._others = Others(self._snapshot)
        self._temporary = TemporaryFolders(self._snapshot)
        self._copies = Copies(self._snapshot) if keep_small else None

    def changes(self, limit: int = LIMIT, *, reopen: Reopen | None = None) -> Changes:
        """Return what has changed since.

        Where that has more bytes than the limit, the largest things are apart. `reopen` is asked of each new open
        file how another process opens it again: a function and its arguments, or NotImplemented.
        """
        data, large, left_out = Packer(self._snapshot, limit, exact=self._exact, reopen=reopen).pack()
        return Changes(data, large, [*left_out, *self._temporary.sentences()])

    def put(self, data: bytes, *, reopen: bool = False, experiment: int | None = None) -> list[str]:
        """Put in place what has changed in another process; return a sentence for each thing that stays as it is.

        With `reopen`, this process goes on with the training: files that the other process had opened are opened here.
        Else names that the program has bound anew since the snapshot stay; with `experiment`, what another experiment
        that ran side by side with this one has changed, too.
        """
        others = self._others
        sentences = put_changes(
            data, self._snapshot, exact=self._exact, reopen=reopen, others=others, experiment=experiment
        )
        return [*sentences, *self._others.sentences(experiment)]

    def open_files(self) -> list[Any]:
        """Return the open files that the call could reach at its beginning."""
        kinds = zip(self._snapshot.objects, self._snapshot.kinds, strict=True)
        return [obj for obj, kind in kinds if kind.stays == "an open file"]

    def undo(self) -> None:
        """Give objects back what they held at the beginning; large arrays keep what they have."""
        if self._copies:
            self._copies.undo()
