"""A loop over ``context.epochs()`` in PyTorch: wrapped loaders say what an epoch is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from det_native.loops.epochs_call import NAME, EpochsCall
from det_native.pytorch.native_call import inputs_of_loader, len_of
from det_native.pytorch.training_call import TorchTrainingCall, check_wrapped
from det_native.pytorch.wrapped_loader import WrappedLoader
from det_native.schema.proof import Input


@dataclass
class TorchEpochsCall(EpochsCall, TorchTrainingCall):
    """One loop over ``context.epochs()``, checked.

    Attributes
    ----------
    loaders : list of WrappedLoader
        In the order in which they were wrapped.
    """

    loaders: list[WrappedLoader] = field(default_factory=list)

    @classmethod
    def of(cls, context: Any, bounds: Sequence[Any], wait: Any, **known: Any) -> Self:
        """Check the arguments of a call, and that something is wrapped."""
        call = super().of(context, bounds, wait, loaders=list(context.loaders), **known)
        check_wrapped(f"{NAME}()", context)
        return call

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

    def inputs(self) -> dict[str, Input]:
        """Return what the call is given, by what it is called in messages: what a worker compares."""
        given = self.inputs_of_parts() | super().inputs()
        for number, loader in enumerate(self.loaders, 1):
            name = "the wrapped loader" if len(self.loaders) == 1 else f"wrapped loader {number}"
            plain = loader.plain
            if hasattr(plain, "sampler"):
                given |= inputs_of_loader(name, plain)
            elif isinstance(plain, list | tuple):
                given[name] = Input(plain)
        return given
