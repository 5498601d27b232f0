"""Deadlock detection: ranks that wait in different collective operations, and so for ever.

Where one rank leaves out a call that the others make (``step_optimizer()`` of a batch that it finds too short), each
waits in another collective operation. None has failed, so nothing else would end it.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any, NamedTuple

from det_harness.program.calls import ProgramSource
from det_native.errors import TrialDefinitionError

LONG_SECONDS = 20.0

SAME_CALLS = (
    "On several slots every slot makes the same backward passes and steps of its optimizers in each batch, in the same "
    "order; where one has nothing to learn from a batch, it can multiply its loss by 0."
)

_KEY = "waits"
_HARNESS = ("det_harness", "det_native")
# From these, hooks of ours exchange gradients.
_OF_TORCH = ("backward", "step")
_BETWEEN = "between two batches"
# Where a framework's loop over batches is: what is called from there, and not from the user's code, is ours.
_OF_A_LOOP = re.compile(r"frameworks\.\w+\.(controller|loop)")


class _LongWait(NamedTuple):
    """A wait that has become long: which of the rank's it is, and where."""

    number: int
    place: str


class DeadlockDetection:
    """Waits for operations, and tells apart those that are long from those that never end.

    A rank that has waited long says so, with the place, in the store in which the ranks have met. Once all have, and
    none of them has moved for as long again, and the places differ, it will never end. In the same place they wait for
    the network.
    """

    def __init__(
        self, store: Any, rank: int, size: int, source: ProgramSource | None, long_seconds: float = LONG_SECONDS
    ) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._source = source
        self._period = timedelta(seconds=long_seconds)
        self._number = 0

    def monitored(self, work: Any, *, on_gpu: bool = False) -> _MonitoredWork:
        """Return a handle of a ``torch.distributed.Work`` whose ``wait()`` is one of these."""
        return _MonitoredWork(self, work, on_gpu=on_gpu)

    def wait(self, work: Any, *, on_gpu: bool = False) -> None:
        """Wait for an operation; for one on a GPU too, until it has ended there.

        Raises
        ------
        TrialDefinitionError
            If the ranks wait in different collective operations.
        RuntimeError
            Of the backend: another rank is gone.
        """
        seen: list[_LongWait | None] = []
        while not (self._ends_soon_on_gpu(work) if on_gpu else self._ends_soon(work)):
            if not seen:
                self._number += 1
                self._say(_LongWait(self._number, self._place(sys._getframe(1))))
            before, seen = seen, self._all()
            if seen == before and None not in seen:
                self._raise_if_deadlocked([wait.place for wait in seen if wait is not None])
        if seen:
            self._say(None)

    def _ends_soon(self, work: Any) -> bool:
        try:
            work.wait(self._period)
        except RuntimeError:
            if work.is_completed():
                raise
            return False
        return True

    def _ends_soon_on_gpu(self, work: Any) -> bool:
        # A wait with a limit would have NCCL give up the connection at its end.
        end = time.monotonic() + self._period.total_seconds()
        while not work.is_completed():
            if time.monotonic() >= end:
                return False
            time.sleep(0)  # lets other threads run, those that load data say
        work.wait()  # for the order of what the GPU does
        return True

    def _say(self, wait: _LongWait | None) -> None:
        self._store.set(f"{_KEY}/{self._rank}", json.dumps(wait))

    def _all(self) -> list[_LongWait | None]:
        """Return the long waits of all ranks, None for a rank that is in none."""
        return [self._of(rank) for rank in range(self._size)]

    def _of(self, rank: int) -> _LongWait | None:
        key = f"{_KEY}/{rank}"
        said = json.loads(self._store.get(key)) if self._store.check([key]) else None
        return None if said is None else _LongWait(*said)

    def _raise_if_deadlocked(self, places: list[str]) -> None:
        if len(set(places)) == 1:
            return
        ranks = ", ".join(map(str, range(len(places) - 1)))
        listed = "\n".join(f"  rank {rank}: {place}" for rank, place in enumerate(places))
        raise TrialDefinitionError(
            f"Deadlock: ranks {ranks} and {len(places) - 1} wait in different collective operations:\n{listed}\nOne of "
            f"them left out a call that another made. {SAME_CALLS}"
        )

    def _place(self, frame: FrameType | None) -> str:
        """Return in which call of the user's a frame is, in words that follow "rank 0:".

        Hooks of gradients on a GPU run in a thread of PyTorch's, while the user's code waits in the main one.
        """
        place, is_known = self._place_in_thread(frame)
        main = threading.main_thread()
        if not is_known and threading.current_thread() is not main:
            other, is_known = self._place_in_thread(sys._current_frames().get(main.ident or 0))
            place = other if is_known else place
        return place

    def _place_in_thread(self, frame: FrameType | None) -> tuple[str, bool]:
        """Return the place of a frame, and whether it is one of the user's."""
        called = ""
        while frame is not None:
            unit = self._source.resolve(frame.f_code.co_filename) if self._source is not None else None
            if self._source is not None and unit is not None:
                return f"in {called}() of {self._source.title(unit)}, line {frame.f_lineno}", True
            package, _, module = str(frame.f_globals.get("__name__")).partition(".")
            if package == "det_harness" and _OF_A_LOOP.fullmatch(module):
                return _BETWEEN, True
            if package in _HARNESS or (package == "torch" and frame.f_code.co_name in _OF_TORCH):
                called = frame.f_code.co_name
            frame = frame.f_back
        return f"in {called}()", False


class _MonitoredWork:
    """An operation that is waited for with `DeadlockDetection`."""

    def __init__(self, deadlocks: DeadlockDetection, work: Any, *, on_gpu: bool) -> None:
        self._deadlocks = deadlocks
        self._work = work
        self._on_gpu = on_gpu

    def wait(self) -> None:
        """Wait for the operation."""
        self._deadlocks.wait(self._work, on_gpu=self._on_gpu)
