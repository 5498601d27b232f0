"""What ``context.train()`` and ``context.epochs()`` return: a training that begins with the loop over them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from det_native.errors import TrialDefinitionError


@dataclass(frozen=True)
class LoopWords:
    """What a loop goes over, for messages.

    Attributes
    ----------
    call : str
        What the elements come from: ``context.train``.
    element : str
        What the loop is given each time: ``batch``.
    elements : str
        Several of them.
    """

    call: str
    element: str
    elements: str

    @property
    def not_begun(self) -> str:
        """That no loop has begun the training."""
        return (
            f"no loop has asked for its {self.elements} yet, so nothing is trained. The training begins with the loop, "
            f"`for {self.element} in {self.call}(...):`, or `for {self.element} in` the name that the {self.elements} "
            "have got."
        )


OVER_BATCHES = LoopWords("context.train", "batch", "batches")
OVER_EPOCHS = LoopWords("context.epochs", "epoch", "epochs")
OVER_OPERATIONS = LoopWords("context.searcher.operations", "op", "operations")
#: By the name of the call.
WORDS = {words.call: words for words in (OVER_BATCHES, OVER_EPOCHS, OVER_OPERATIONS)}


class LoopBatches(Iterator[Any]):
    """The batches, or the epochs, of one training, for one loop.

    Nothing happens before a loop asks for one: the loop may stand in a later cell than the call.

    Parameters
    ----------
    call : str
        What the user has called: ``context.train``.
    begin : callable
        Begins the training, and returns its batches, or epochs.
    length : callable
        Returns how many the whole training has.
    """

    #: It holds no weights; what looks at a model's content goes no further.
    _det_known_by_identity = True

    def __init__(self, call: str, begin: Callable[[], Iterator[Any]], length: Callable[[], int]) -> None:
        self._words = WORDS[call]
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
                f"A second loop over the same {self._words.call}(...): its training has ended, and has no "
                f"{self._words.elements} left. Call {self._words.call}() again to train on from here."
            )
        return self

    def __next__(self) -> Any:
        """Return the next one; asked for the first one, begin the training."""
        self._asked = True
        if self._batches is None:
            self._batches = self._begin()
        try:
            return next(self._batches)
        except BaseException:
            self._ended = True
            raise

    def __len__(self) -> int:
        """Return how many the whole training has, wherever it is asked: those that a trial has done before included.

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
            return f"<the {self._words.elements} of {self._words.call}()>"
        return f"<the {self._words.elements} of {self._words.call}(): {self._words.not_begun}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"The {self._words.elements} of {self._words.call}() cannot be pickled: they belong to a training of this "
            "process."
        )

    def __del__(self) -> None:
        if not self._asked:
            warnings.warn(f"{self._words.call}(): {self._words.not_begun}", RuntimeWarning, stacklevel=2)
