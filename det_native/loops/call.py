"""A call that trains what a context stands for, whoever trains on a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from det_native.errors import ArgumentError
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallKind, Framework


@dataclass
class TrainingCall(ABC):
    """One call that trains.

    Attributes
    ----------
    part : {"batch", "epoch", "operation"}
        After what it ends when it is interrupted.
    context : LoopContext
        With what the training belongs to.
    epochs : int or None
        None where the call does not say it.
    kind : {"fit", "train"}
        ``train`` for every loop of the user's own.
    wait : bool or None
        Whether the call waits for its end on the cluster; None where it does not say it.
    """

    framework: ClassVar[Framework]
    quiet: ClassVar[bool] = False
    part: ClassVar[str] = "batch"

    context: Any
    epochs: int | None = None
    kind: CallKind = "train"
    wait: bool | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user calls, for messages: ``context.fit``."""

    @property
    @abstractmethod
    def trainer(self) -> str:
        """What trains on a batch, for messages."""

    @abstractmethod
    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch."""

    @abstractmethod
    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path."""

    @abstractmethod
    def steps_per_epoch(self, environment: TrialEnvironment) -> int:
        """Return the batches of one epoch on each slot, for a configuration that is complete."""

    @property
    def models(self) -> list[Any]:
        """The models whose weights have files of their own in checkpoints."""
        return []


def checked_epochs(name: str, epochs: Any) -> int | None:
    """Return the number of epochs that a call asks for.

    Raises
    ------
    ArgumentError
        If it is no whole number of at least 1.
    """
    if epochs is None:
        return None
    if isinstance(epochs, bool) or not isinstance(epochs, Integral) or epochs < 1:
        raise ArgumentError(f"{name}: epochs must be a whole number of at least 1, not {epochs!r}.")
    return int(epochs)
