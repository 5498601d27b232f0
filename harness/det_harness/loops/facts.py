"""What is to be known of a loop of the user's own before its first pass: periods, the metric to compare by."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.metric_choice import MetricChoice
from det_harness.trial.schedule import Periods
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.loops.epochs_call import EpochsCall
from det_native.schema.metric_names import suggestion

logger = logging.getLogger("det_harness")


class LoopFacts:
    """A loop of the user's own: what was built in the program.

    Parameters
    ----------
    further : str
        What reports more often than once in a pass.

    Attributes
    ----------
    quick : bool
        One pass only, which counts as one batch.
    batches : int
        Batches that a pass counts as.
    """

    verb = "report"
    further = ""

    def __init__(self, call: EpochsCall, services: Services) -> None:
        call.context.env = services.environment
        self.name = call.name
        self.trainer = call.trainer
        self.services = services
        self._call = call
        self._choice = MetricChoice(services, self.name, said=call.context.metric_said)
        self.quick = services.validation_batches is not None
        self.batches = 1 if self.quick else call.batches
        schedule = services.schedule
        if not self.quick:
            schedule.periods = whole(
                in_whole_epochs(schedule.periods, services.environment, call.batches), call.batches
            )

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Choose by which of the first metrics trials are compared, where nobody has said it."""
        self._choice.look(metrics)

    def check_reported(self, names: Collection[str]) -> None:
        """Say after a pass that the metric which the configuration names is not among those reported, if any are."""
        metric = self.services.environment.metric
        if self._call.context.metric_said and metric and names and metric not in names:
            logger.warning(
                "searcher.metric is '%s', but %s has reported %s in its first %s. %s"
                "The trial fails at its end if that metric has not come by then: report it, or set searcher.metric to "
                "one of these.",
                metric,
                self.trainer,
                ", ".join(names),
                self._call.part,
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
