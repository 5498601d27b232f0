"""What stands for a validation where ``fit()`` or ``train()`` of PyTorch has none: means of the training metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from det_harness.ranks.communicator import Communicator
from det_harness.trial.services import Reporter
from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchCallback
from det_native.pytorch.native_call import TorchCall
from det_native.schema.manifests import CheckpointManifest


class TrainingMeans(Reporter):
    """Means of the training metrics since the last validation: what stands for a validation where there is none.

    Takes the place of a reporter, and passes everything on.

    Parameters
    ----------
    reporter : Reporter
    communicator : Communicator
    call : TorchCall
        The call that trains.
    metric : str or None
        The searcher's metric.

    Attributes
    ----------
    keeper : PyTorchCallback
        Takes what was summed up so far into checkpoints.
    """

    def __init__(self, reporter: Reporter, communicator: Communicator, call: TorchCall, metric: str | None) -> None:
        self._reporter = reporter
        self._communicator = communicator
        self._call = call
        self._metric = metric
        self.keeper = _MeansKeeper()

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return self._call.trainer

    @property
    def verb(self) -> str:
        """What it does with them."""
        return "report" if self._call.train_batch is None else "return"

    @property
    def empty(self) -> bool:
        """Whether nothing was reported at all, on any rank the same."""
        keeper = self.keeper
        return bool(self._communicator.broadcast_object(not keeper.sums and not keeper.last))

    def run(self) -> dict[str, Any]:
        """Return the means of the first rank, and begin anew; the last ones again, if nothing was reported since.

        Raises
        ------
        TrialDefinitionError
            If nothing was reported at all.
        """
        keeper = self.keeper
        if keeper.sums:
            keeper.last, keeper.sums = {name: total / count for name, (total, count) in keeper.sums.items()}, {}
        means = dict(self._communicator.broadcast_object(keeper.last))
        if not means:
            raise TrialDefinitionError(self._nothing())
        return means

    def _nothing(self) -> str:
        name = self._metric or "loss"
        if self._call.train_batch is None:
            remedy = (
                f"call context.report({name}=...) in the loop, or pass validation_loader and evaluate_batch to train()"
            )
        else:
            remedy = f"return {{'{name}': ...}} from it, or pass validation_loader and evaluate_batch to fit()"
        return (
            f"{self.owner} has reported no training metrics, and there is no validation: nothing says how good the "
            f"trial is. To fix it, {remedy}."
        )

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Add rows up, and pass them on."""
        sums = self.keeper.sums
        for name, column in metrics.items():
            total, count = sums.get(name, (0.0, 0))
            for value in column:
                # A step that was skipped may have a gradient norm of NaN; of the searcher's metric that is to be seen.
                if value is not None and (name == self._metric or not math.isnan(value)):
                    total, count = total + value, count + 1
            if count:
                sums[name] = (total, count)
        self._reporter.training(batches, metrics)

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        """Pass on the metrics of a validation."""
        self._reporter.validation(batch, metrics)

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Pass on a checkpoint."""
        self._reporter.checkpoint(location, manifest)

    def warning(self, text: str) -> None:
        """Pass on a warning."""
        self._reporter.warning(text)

    def best_metric(self) -> float | None:
        """Return the experiment's best value of the searcher's metric."""
        return self._reporter.best_metric()


class _MeansKeeper(PyTorchCallback):
    def __init__(self) -> None:
        self.sums: dict[str, tuple[float, int]] = {}
        self.last: dict[str, float] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "last": dict(self.last)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.sums = {name: (total, count) for name, (total, count) in state_dict["sums"].items()}
        self.last = dict(state_dict["last"])
