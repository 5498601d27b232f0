"""What a training call can reach, from its beginning on: its changes as bytes, put in place in another process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from det_native.heap.apply import apply
from det_native.heap.pack import pack
from det_native.heap.snapshot import Snapshot

#: Bytes of changes that come home by themselves; what exceeds it is named and stays on the worker.
LIMIT = 1 << 30


@dataclass(frozen=True)
class Changes:
    """What has changed since a call began.

    Attributes
    ----------
    data : bytes
        For :meth:`CallSnapshot.put`.
    left_out : list of str
        A sentence for each thing that could not be packed.
    """

    data: bytes
    left_out: list[str] = field(default_factory=list)


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
        have addresses, and nothing of their content is compared.
    exact : bool
        Whether both processes are to hold the same values at the beginning; with other hyperparameters or another
        seed they need not.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        frames: Iterable[FrameType] = (),
        given: Mapping[str, Any] | None = None,
        kept_elsewhere: Iterable[Any] = (),
        *,
        exact: bool = True,
    ) -> None:
        self._snapshot = Snapshot(namespace, given)

    def changes(self, limit: int = LIMIT) -> Changes:
        """Return what has changed since."""
        return Changes(*pack(self._snapshot))

    def put(self, data: bytes) -> list[str]:
        """Put in place what has changed in another process; return a sentence for each thing that stays as it is."""
        return apply(data, self._snapshot)
