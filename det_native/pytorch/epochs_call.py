"""A loop over ``context.epochs()``, and what it says about the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar

from det_native.errors import ArgumentError
from det_native.heap.roots import running_loop
from det_native.pytorch.native_call import BATCH_SIZE, inputs_of_loader, len_of
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.training_call import TrainingCall, check_wrapped, checked_epochs
from det_native.pytorch.wrapped_loader import WrappedLoader
from det_native.schema.environment import TrialEnvironment
from det_native.schema.proof import Input
from det_native.schema.signatures import checked_wait

NAME = "context.epochs"


@dataclass
class EpochsCall(TrainingCall):
    """One loop over ``context.epochs()``, checked.

    Attributes
    ----------
    first : int
        The number of the first epoch, as the loop is given it.
    loaders : list of WrappedLoader
        In the order in which they were wrapped.
    """

    part: ClassVar[str] = "epoch"

    first: int = 0
    loaders: list[WrappedLoader] = field(default_factory=list)

    @classmethod
    def of(cls, context: PyTorchRunContext, bounds: Sequence[Any], wait: Any) -> EpochsCall:
        """Check the arguments of a call.

        Raises
        ------
        TrialDefinitionError
            If nothing is wrapped.
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
        check_wrapped(name, context)
        return cls(context, number, "train", checked_wait(name, wait), first=first, loaders=list(context.loaders))

    @property
    def name(self) -> str:
        """``context.epochs``, for messages."""
        return NAME

    @property
    def trainer(self) -> str:
        """What trains on a batch, for messages."""
        return f"the loop over {NAME}()"

    @property
    def batch_size(self) -> int | None:
        """Records per batch of the first loader that has them; None if there is none."""
        for loader in self.loaders:
            size = getattr(loader.loader, "batch_size", None)
            if size is None:
                size = getattr(getattr(loader.loader, "batch_sampler", None), "batch_size", None)
            if isinstance(size, int) and size > 0:
                return size
        return None

    @property
    def batches(self) -> int:
        """Batches that an epoch counts as: those of the first loader that has a length, 1 without such."""
        return next((length for loader in self.loaders if (length := len_of(loader))), 1)

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
        given = self.inputs_of_parts() | {"the loop": Input(running_loop(), "code")}
        for number, loader in enumerate(self.loaders, 1):
            name = "the wrapped loader" if len(self.loaders) == 1 else f"wrapped loader {number}"
            plain = loader.plain
            if hasattr(plain, "sampler"):
                given |= inputs_of_loader(name, plain)
            elif isinstance(plain, list | tuple):
                given[name] = Input(plain)
        return given

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration; the loop itself shows what it reports."""
