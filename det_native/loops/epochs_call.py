"""A loop over ``context.epochs()``, and what it says about the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Self

from det_native.errors import ArgumentError
from det_native.heap.roots import running_loop
from det_native.loops.call import TrainingCall, checked_epochs
from det_native.schema.checks import BATCH_SIZE
from det_native.schema.environment import TrialEnvironment
from det_native.schema.proof import Input
from det_native.schema.signatures import checked_wait

NAME = "context.epochs"


@dataclass
class EpochsCall(TrainingCall):
    """One loop over ``context.epochs()``, checked. An epoch counts as one batch where nothing else is known of it.

    Attributes
    ----------
    first : int
        The number of the first epoch, as the loop is given it.
    """

    part: ClassVar[str] = "epoch"

    first: int = 0

    @classmethod
    def of(cls, context: Any, bounds: Sequence[Any], wait: Any, **known: Any) -> Self:
        """Check the arguments of a call.

        Raises
        ------
        ArgumentError
            If an argument makes no sense.
        """
        name = f"{NAME}()"
        if len(bounds) > 2:
            raise ArgumentError(f"{name} takes the number of epochs, or the first and the end as range() does.")
        first = bounds[0] if len(bounds) == 2 else 0
        if isinstance(first, bool) or not isinstance(first, int):
            raise ArgumentError(f"{name}: the first epoch must be a whole number, not {first!r}.")
        number = bounds[-1] if bounds else None
        if isinstance(number, int) and first:
            number -= first
            if number < 1:
                raise ArgumentError(f"{name}: there is no epoch from {first} to {bounds[-1]}.")
        number = checked_epochs(name, number)
        return cls(context, number, "train", checked_wait(name, wait), first=first, **known)

    @property
    def name(self) -> str:
        """``context.epochs``, for messages."""
        return NAME

    @property
    def trainer(self) -> str:
        """What trains on a batch, for messages."""
        return f"the loop over {self.name}()"

    @property
    def batch_size(self) -> int | None:
        """Records per batch; None if nothing says it."""
        return None

    @property
    def batches(self) -> int:
        """Batches that an epoch counts as."""
        return 1

    @property
    def assumed(self) -> frozenset[str]:
        """Fields among ``configuration_fills`` that nobody typed: they contradict no configuration."""
        fields = {"searcher.metric", "records_per_epoch", f"hyperparameters.{BATCH_SIZE}"}
        if self.epochs is None:
            fields.add("searcher.max_length")
        return frozenset(fields)

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path; see ``assumed``."""
        env = self.context.env
        size = self.batch_size or int(env.hparams.get(BATCH_SIZE) or env.slots)  # a record for each slot, at least
        return {
            "searcher.metric": "loss",
            f"hyperparameters.{BATCH_SIZE}": size,
            "records_per_epoch": self.batches * size,
            "searcher.max_length": {"epochs": 1 if self.epochs is None else self.epochs},
        }

    def steps_per_epoch(self, environment: TrialEnvironment) -> int:
        """Return the batches that an epoch counts as."""
        return self.batches

    def epochs_in(self, batches: int) -> int:
        """Return how many epochs so many batches are, the last one whole."""
        return ceil(batches / self.batches)

    def inputs(self) -> dict[str, Input]:
        """Return what the call is given, by what it is called in messages: what a worker compares."""
        return {"the loop": Input(running_loop(), "code")}

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration; the loop itself shows what it reports."""
