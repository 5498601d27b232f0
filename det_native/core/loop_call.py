"""A loop of the Core API in a notebook, and what it says about the experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from det_native.errors import UnsupportedFeatureError
from det_native.loops.epochs_call import EpochsCall
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import Framework


@dataclass
class CoreLoopCall(EpochsCall):
    """A loop over ``context.epochs()``: an epoch counts as the steps that its body reports, as 1 without any."""

    framework: ClassVar[Framework] = "core"

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says: epochs as batches, so that no hyperparameter has to say how large a batch is."""
        config, fills = self.context.env.config, super().configuration_fills()
        searcher = config.get("searcher") or {}
        periods = (config.get("min_validation_period"), config.get("min_checkpoint_period"))
        if any("epochs" in (length or {}) for length in (searcher.get("max_length"), *periods)):
            return fills
        return {"searcher.metric": fills["searcher.metric"], "searcher.max_length": {"batches": self.epochs or 1}}

    def check(self, environment: TrialEnvironment) -> None:
        """Refuse several slots, among which nobody here divides a loop.

        Raises
        ------
        UnsupportedFeatureError
        """
        slots = (environment.config.get("resources") or {}).get("slots_per_trial", 1)
        if slots > 1:
            raise UnsupportedFeatureError(
                f"resources.slots_per_trial: {slots} is refused: {self.trainer} trains in one process, on one slot. "
                "Several slots are for an experiment whose entrypoint is a command, which starts its processes by "
                "itself, and for det.experimental.pytorch.init(), which divides batches among them."
            )


@dataclass
class OperationsCall(CoreLoopCall):
    """A loop over ``context.searcher.operations()``: one pass, as long as the search wants it."""

    part: ClassVar[str] = "operation"

    @property
    def name(self) -> str:
        """``context.searcher.operations``, for messages."""
        return "context.searcher.operations"

    def configuration_fills(self) -> dict[str, Any]:
        """Return what is assumed of fields of the configuration: nothing says how long an operation is."""
        return super().configuration_fills() | {"searcher.max_length": {"batches": UNTOLD.units}}

    def epochs_in(self, batches: int) -> int:
        """Return 1: a run has one operation."""
        return 1
