"""What ``context.train()`` returns: the batches of a training that begins when a loop asks for the first of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from det_native.errors import TrialDefinitionError

NOT_BEGUN = (
    "no loop has asked for its batches yet, so nothing is trained. The training begins with the loop, "
    "`for batch in context.train(...):`, or `for batch in` the name that the batches have got."
)


class LoopBatches(Iterator[Any]):
    """The batches of one training, for one loop.

    Nothing happens before a loop asks for a batch: the loop may stand in a later cell than the call.

    Parameters
    ----------
    begin : callable
        Begins the training, and returns its batches.
    length : callable
        Returns how many batches the whole training has.
    """

    #: It holds no weights; what looks at a model's content goes no further.
    _det_known_by_identity = True

    def __init__(self, begin: Callable[[], Iterator[Any]], length: Callable[[], int]) -> None:
        self._begin = begin
        self._length = length
        self._asked = False
        self._batches: Iterator[Any] | None = None
        self._ended = False

    def __iter__(self) -> LoopBatches:
        """Return the batches themselves.

        Raises
        ------
        TrialDefinitionError
            If they were all given: a loop over them would do nothing, and say nothing.
        """
        closed = self._batches is not None and getattr(self._batches, "gi_frame", self) is None
        if self._ended or closed:
            raise TrialDefinitionError(
                "A second loop over the same context.train(...): its training has ended, and has no batches left. For "
                "another training call init() again, and make and wrap model and optimizer again."
            )
        return self

    def __next__(self) -> Any:
        """Return the next batch; asked for the first one, begin the training."""
        self._asked = True
        if self._batches is None:
            self._batches = self._begin()
        try:
            return next(self._batches)
        except BaseException:
            self._ended = True
            raise

    def __len__(self) -> int:
        """Return the batches of the whole training, wherever it is asked: also of those that a trial has done before.

        So progress bars have a total, and a scheduler of so many steps is the same in every run of the program.
        """
        return self._length()

    def __bool__(self) -> bool:
        """Return True, without a look at the length."""
        return True

    def close(self) -> None:
        """End the training, as leaving the loop does; without one that has begun, nothing happens."""
        self._ended = self._batches is not None
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def __repr__(self) -> str:
        if self._batches is not None:
            return "<the batches of context.train()>"
        return f"<the batches of context.train(): {NOT_BEGUN}>"

    def __reduce__(self) -> Any:
        raise TypeError("The batches of context.train() cannot be pickled: they belong to a training of this process.")

    def __del__(self) -> None:
        if not self._asked:
            warnings.warn(f"context.train(): {NOT_BEGUN}", RuntimeWarning, stacklevel=2)
