"""Which rows, or batches, of its data a rank has: every so many-th, so that together the ranks have a global batch.

All ranks make as many batches of an epoch. Where the last one of a rank would have nothing in it, it is given what
another has, and it counts nothing there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from det_native.schema.environment import TrialEnvironment

Order = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Share:
    """A rank's part of the data of a trial."""

    rank: int = 0
    size: int = 1

    @classmethod
    def of(cls, environment: TrialEnvironment) -> Share:
        """Return that of a trial's process."""
        return cls(environment.ranks.rank, environment.ranks.size)

    def own(self, count: int) -> int:
        """Return how many of `count` rows, or batches, are this rank's."""
        return max(0, math.ceil((count - self.rank) / self.size))

    def batches(self, records: int, batch_size: int = 1) -> int:
        """Return the batches of an epoch, the same on every rank; `batch_size` is that of a rank."""
        return math.ceil(records / (batch_size * self.size))

    def is_idle_last(self, records: int, batch_size: int = 1) -> bool:
        """Return whether the last of these batches has nothing of this rank's own in it."""
        return math.ceil(self.own(records) / batch_size) < self.batches(records, batch_size)

    def padded(self, records: int, batch_size: int) -> int:
        """Return the rows that this rank is given in an epoch: its own, and one more where it would be idle."""
        return self.own(records) + self.is_idle_last(records, batch_size)

    def rows(self, order: Order, padded: int) -> Order:
        """Return a rank's part of an order of rows, with `padded` rows of which one may be another rank's."""
        own = order[self.rank :: self.size]
        return np.append(own, order[:1]) if padded > len(own) else own
