"""A loop over ``context.epochs()`` as something that is trained like a PyTorchTrial."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from det_harness.frameworks.torch.definition import Definition
from det_harness.frameworks.torch.evaluation import Validation
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.metric_choice import MetricChoice
from det_harness.trial.schedule import Periods
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.epochs_call import EpochsCall
from det_native.pytorch.gradients import Gradients
from det_native.schema.metric_names import suggestion

logger = logging.getLogger("det_harness")

_BY_ITSELF = "A loop over context.epochs() loads, trains and evaluates by itself."


class CapturedLoop(Definition, Validation):
    """A loop over ``context.epochs()``: what the user has built in the program."""

    as_in_torch = True
    verb = "report"

    def __init__(self, call: EpochsCall, services: Services) -> None:
        call.context.env = services.environment
        self.name = call.name
        self.trainer = call.trainer
        self.services = services
        self._call = call
        self._choice = MetricChoice(services, self.name, said=call.context.metric_said)
        services.reporter.no_validation()
        self.quick = services.validation_batches is not None
        schedule = services.schedule
        if not self.quick:
            periods = in_whole_epochs(schedule.periods, services.environment, call.batches)
            schedule.periods = whole(periods, call.batches)

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Let the context that the user's objects belong to take part in the run."""
        context = self._call.context
        context.join_run(self.services.environment, gradients, self.trainer, self.name)
        context.distributed.connect(self.services.communicator)
        trial_class = type(self.name, (_Loop,), {})
        return trial_class(context), context

    def training_loader(self, trial: PyTorchTrial) -> DataLoader | None:
        """Return None: the loop goes over loaders by itself."""
        return None

    def evaluation(self, trial: PyTorchTrial, context: PyTorchTrialContext, reduction: Reduction) -> Validation:
        """Return this itself: the loop has computed the metrics."""
        return self

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return self.trainer

    def run(self) -> dict[str, Any]:
        """Refuse to validate."""
        raise TrialDefinitionError(_BY_ITSELF)

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Choose by which of the first metrics trials are compared, where nobody has said it."""
        self._choice.look(metrics)

    def check_reported(self, names: Collection[str]) -> None:
        """Say after an epoch that the metric which the configuration names is not among those reported, if any are."""
        metric = self.services.environment.metric
        if self._call.context.metric_said and metric and names and metric not in names:
            logger.warning(
                "searcher.metric is '%s', but the loop over context.epochs() has reported %s in its first epoch. %s"
                "The trial fails at its end if that metric has not come by then: report it, or set searcher.metric to "
                "one of these.",
                metric,
                ", ".join(names),
                suggestion(metric, list(names)),
            )

    def refuse_silence(self) -> None:
        """Say that a trial has reported nothing; refuse that of a search.

        Raises
        ------
        TrialDefinitionError
        """
        if (self.services.environment.config.get("searcher") or {}).get("name", "single") != "single":
            raise TrialDefinitionError(
                f"{self.trainer} has reported no metrics: nothing says how good the trial is. Call "
                f"context.report({self.services.environment.metric or 'loss'}=...) in it."
            )
        logger.warning("%s has reported no metrics: nothing says how good the trial is.", self.trainer)

    def epoch_length(self, loader: DataLoader | None, context: PyTorchTrialContext) -> int:
        """Return the batches that an epoch counts as; in a quick check one."""
        return 1 if self.quick else self._call.batches


def whole(periods: Periods, epoch: int) -> Periods:
    """Return periods of whole epochs: those that end within one end with it."""
    return replace(
        periods,
        length=ceil(periods.length / epoch) * epoch,
        validation_period=ceil(periods.validation_period / epoch) * epoch,
        checkpoint_period=ceil(periods.checkpoint_period / epoch) * epoch,
    )


def rescaled(periods: Periods, epoch: int, other: int) -> Periods:
    """Return periods of as many whole epochs, of which each counts as another number of batches."""
    return replace(
        periods,
        length=periods.length // epoch * other,
        validation_period=periods.validation_period // epoch * other,
        checkpoint_period=periods.checkpoint_period // epoch * other,
    )


class _Loop(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        pass

    def train_batch(self, *arguments: Any, **named: Any) -> Any:
        raise TrialDefinitionError(_BY_ITSELF)

    build_training_data_loader = build_validation_data_loader = train_batch
