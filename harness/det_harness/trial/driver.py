"""Does what the schedule says between two batches: validate, save, tell; the same for every framework.

A loop that is ours calls `Driver.run`. A loop that is not (of a framework, which calls us back, or of the user) calls
`Driver.advance` between two batches, and trains until the batch that it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from det_harness.trial.forks import end_forked_child
from det_harness.trial.metrics import checked_validation, is_best
from det_harness.trial.schedule import Finish, SaveCheckpoint, Train, Validate
from det_harness.trial.services import Outcome, Services
from det_harness.trial.side_metrics import SideMetrics

Metrics = Mapping[str, Any]


class TrainingPort(Protocol):
    """What a framework implements for the driver. All of it is called on every rank, in the same order.

    What most frameworks have no use for does nothing by itself.
    """

    @property
    def validated_by(self) -> str:
        """What computes the validation metrics, for messages."""

    @property
    def verb(self) -> str:
        """What it does with them, for messages: "return", or "report"."""
        return "return"

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""

    def validation(self) -> AbstractContextManager[Metrics | None]:
        """Validate; in the block, in which the models still are as they were for it, the metrics are reported.

        Gives the metrics, each reduced to one value, unchecked; None where there is nothing to validate with.
        """

    def validated(self, metrics: dict[str, Any]) -> None:
        """Call what of the user's wants to know the metrics, which have been reported."""
        return

    def save(self) -> None:
        """Save a checkpoint of the present state."""

    @property
    def awaits_uploads(self) -> bool:
        """Whether something of the user's wants to know when checkpoints are published; on all ranks the same."""
        return False

    def uploaded(self, uuid: str) -> None:
        """Tell it of one."""
        return

    def wait(self) -> None:
        """Block until every checkpoint is published."""


class Driver:
    """Asks the schedule, has the framework do what it says, and tells the schedule what was done."""

    def __init__(self, services: Services, port: TrainingPort) -> None:
        self._services = services
        self._schedule = services.schedule
        self._port = port
        self._side_metrics = SideMetrics(quiet=services.communicator.rank > 0)

    def run(self, train: Callable[[int], None]) -> None:
        """Train to the end.

        Parameters
        ----------
        train : callable
            Trains until so many batches are done in total, or fewer where a stop is requested.
        """
        while isinstance(action := self.advance(), Train):
            train(action.until)

    def advance(self, metrics: Metrics | None = None) -> Train | Finish:
        """Do all that is due before the next batch; returns until when to train then, or that this was the end.

        Parameters
        ----------
        metrics : mapping, optional
            Of a validation that the framework's own loop has just made: it counts, whether one is due or not.

        Raises
        ------
        TrialDefinitionError
            If the metrics of a validation are not what the configuration needs.
        """
        end_forked_child()
        if metrics and self._schedule.stop_requested:
            # The checkpoint of the stop has to know of it, or the continued trial would validate the same batch again.
            self._validate(metrics)
            metrics = None
        while True:
            self._tell_uploads()
            action = self._schedule.next()
            if isinstance(action, SaveCheckpoint):
                self._port.report()
                self._services.settle()
                self._port.save()
                self._schedule.checkpointed()
            elif isinstance(action, Validate) or metrics:
                self._validate(metrics)
                metrics = None
            else:
                if isinstance(action, Finish):
                    self._port.report()
                return action

    def finish(self, result: Any = None) -> Outcome:
        """Wait for the checkpoints under way and return how the trial ended; `result` is what the user's call returns.

        Raises
        ------
        StorageError
            If a checkpoint could not be written.
        """
        end_forked_child()
        self._port.wait()
        self._tell_uploads()
        progress = self._schedule.progress
        return Outcome(progress.batches, stopped=not progress.validated_at_end, result=result)

    def _validate(self, known: Metrics | None) -> None:
        self._port.report()
        with nullcontext(known) if known else self._port.validation() as found:
            if found is None:
                self._schedule.validated(best=False)
                return
            batch = self._schedule.progress.batches
            environment = self._services.environment
            owner, verb = self._port.validated_by, self._port.verb
            checked = checked_validation(found, environment.metric, owner, verb, batch, others=environment.metrics)
            metrics = self._side_metrics.recorded(checked, owner, verb)
            best = self._is_best(metrics)
            self._services.reporter.validation(batch, metrics)
            self._schedule.validated(best=best)
            self._port.validated(metrics)

    def _is_best(self, metrics: dict[str, Any]) -> bool:
        """Return whether a checkpoint is to be kept of this; only rank 0 knows the experiment's best."""
        metric = self._services.environment.metric
        if metric is None or self._schedule.periods.policy != "best":
            return False
        communicator, best = self._services.communicator, False
        if communicator.rank == 0:
            known, smaller = self._services.reporter.best_metric(), self._services.environment.smaller_is_better
            best = is_best(metrics[metric], known, smaller_is_better=smaller)
        return bool(communicator.broadcast_object(best))

    def _tell_uploads(self) -> None:
        """Tell of the checkpoints that were published since the last call."""
        if not self._port.awaits_uploads:
            return
        communicator, checkpoints = self._services.communicator, self._services.checkpoints
        for uuid in communicator.broadcast_object(checkpoints.published() if communicator.rank == 0 else None):
            self._port.uploaded(uuid)
