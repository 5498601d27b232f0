"""Where epochs begin and end, counted in batches: a Sequence of the user's may have another length in each."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any


class EpochLengths:
    """Knows the epochs up to the present one; those to come are taken to be as long as that.

    Parameters
    ----------
    follow : bool
        Whether lengths may change: the data say at the beginning of each epoch how long it is.

    Attributes
    ----------
    as_first : bool
        Whether all epochs are as long as the first because the data have said that; others are told once.

    Examples
    --------
    >>> lengths = EpochLengths(2, follow=True)
    >>> lengths.begin(1, 3)
    >>> lengths.start_of(1), lengths.start_of(2), lengths.start_of(3)
    (2, 5, 8)
    >>> lengths.place(4)
    (1, 2)
    """

    def __init__(self, steps: int, *, follow: bool = False) -> None:
        self.steps = steps
        self.follow = follow
        self.as_first = False
        self._starts = [0]

    def begin(self, epoch: int, steps: int) -> None:
        """Epoch number `epoch`, the present one or the next, has so many batches."""
        if not self.follow:
            return
        if epoch == len(self._starts):
            self._starts.append(self.start_of(epoch))
        self.steps = steps

    def start_of(self, epoch: int) -> int:
        """Return the batches before an epoch."""
        last = len(self._starts) - 1
        return self._starts[epoch] if epoch <= last else self._starts[last] + (epoch - last) * self.steps

    def steps_of(self, epoch: int) -> int:
        """Return the batches of an epoch."""
        return self.start_of(epoch + 1) - self.start_of(epoch)

    def place(self, batches: int) -> tuple[int, int]:
        """Return the epoch in which the batch after the first `batches` lies, and its number there."""
        epoch = bisect_right(self._starts, batches) - 1
        if epoch == len(self._starts) - 1:
            epoch += (batches - self._starts[epoch]) // self.steps
        return epoch, batches - self.start_of(epoch)

    def after(self, batches: int, epochs: int) -> int:
        """Return the batches that are done so many epochs after the first `batches`."""
        epoch, step = self.place(batches)
        return self.start_of(epoch + epochs) + min(step, self.steps_of(epoch + epochs) - 1)

    def state(self, epoch: int) -> dict[str, Any]:
        """Return what :meth:`restore` needs at the beginning of an epoch."""
        return {"starts": [self.start_of(each) for each in range(epoch + 1)], "steps": self.steps_of(epoch)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the lengths that were known at the beginning of an epoch."""
        if self.follow:
            self._starts, self.steps = [*state["starts"]], int(state["steps"])
