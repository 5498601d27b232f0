"""One trial that code of any framework trains and reports: what the contexts of the Core API have in common."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.core.rows import CoreRows
from det_harness.core.state import CoreState
from det_harness.core.stored import StoredCheckpoints
from det_harness.system.sampler import sampled
from det_harness.trial.metrics import compared_number
from det_harness.trial.services import Outcome, Services
from det_native.core.modes import Unit
from det_native.errors import TrialDefinitionError
from det_native.schema.lengths import UNTOLD, Length
from det_native.schema.nvml import own_gpus
from det_native.trial import DistributedContext

if TYPE_CHECKING:
    from det_native.core.cluster_info import ClusterInfo

logger = logging.getLogger("det_native.core")

# Between two lines of the log with the progress.
_PROGRESS_STEP = 0.1


class CoreRun(CoreState):
    """One trial, as the contexts of the Core API see it.

    Attributes
    ----------
    info : ClusterInfo or None
        What the process knows of the trial.
    rows : CoreRows
        Reports metrics.
    stored : StoredCheckpoints
        Makes and reads checkpoints.
    acknowledged : bool
        The code has heard that it is to end, and ends.
    invalid : bool
        The code has reported that its hyperparameters cannot be trained.
    """

    def __init__(self, services: Services, info: ClusterInfo | None, distributed: DistributedContext) -> None:
        super().__init__(services, distributed)
        self.info = info
        self.rows = CoreRows(self)
        self.stored = StoredCheckpoints(self)
        self.acknowledged = False
        self.invalid = False
        self._stopped_early = False
        self._completed = False
        self._checked = False  # what trains has made sure that the trial can be compared
        #: Whether the code has asked how far it is to train.
        self.length_asked = False
        self._stage_done = False
        self._measuring = ExitStack()
        services.count.ask(lambda: max(self.steps, self.rows.last))
        self._said_progress = 0.0

    def pass_rows(self) -> None:
        """Report the rows that were gathered."""
        self.rows.pass_all()

    @cached_property
    def _written_length(self) -> Length | None:
        environment = self.services.environment
        written = environment.stage or (environment.config.get("searcher") or {}).get("max_length")
        length = Length.model_validate(written) if written else None
        return None if length is None or length == UNTOLD else length

    @property
    def length(self) -> int:
        """How far the trial is to train, in the unit of its configuration; 1 where nothing says it."""
        return 1 if self._written_length is None else self._written_length.units

    @property
    def unit(self) -> Unit | None:
        """The unit of that; None where nothing says it."""
        return None if self._written_length is None else Unit(self._written_length.unit.value.upper())

    # -- what the code says

    def progress(self, part: float) -> None:
        """Note which part of the training is done."""
        if part >= self._said_progress + _PROGRESS_STEP or part == 1.0 > self._said_progress:
            self._said_progress = part
            logger.info("progress: %.0f %%", 100 * part)

    def status(self, text: str) -> None:
        """Write what the training does into the log."""
        logger.info("status: %s", text)

    def completed(self, searcher_metric: Any) -> None:
        """Note that the operation of the search is done, with the metric that trials are compared by."""
        environment = self.services.environment
        value = compared_number(environment.metric or "searcher_metric", searcher_metric, "op.report_completed()")
        self.rows.pass_all()
        self.begin(self.steps)
        if environment.metric:
            self.rows.compared(self.steps, environment.metric, value)
        saved = self.services.schedule.progress.last_checkpointed
        if environment.stage is not None and saved < self.steps:
            logger.warning(
                "No checkpoint of step %d was saved: if the search trains this trial on, it begins after step %d.",
                self.steps,
                saved,
            )
        self._completed = True

    def trained(self, outcome: Outcome) -> None:
        """Note what a controller has trained on the same services."""
        self._begun = True
        self.steps = outcome.batches
        self.acknowledged, self._completed = outcome.stopped, not outcome.stopped
        self._checked = True

    def ends_early(self, *, invalid: bool) -> None:
        """Note that the training ends before its length."""
        self.invalid = invalid
        self._stopped_early = True

    # -- what it asks

    def stop_requested(self) -> bool:
        """Whether the training is to end; it has completed where that is since a stage of the search is done."""
        stopped = self.services.stop_requested()
        if self._stage_done and not stopped:
            self._completed = True
        return stopped or self._stage_done

    def validated_after(self, steps: int, metrics: Mapping[str, Any]) -> None:
        """Note whether a stage of the search is done: code of Determined 0.38 asks for no length, and is preempted.

        Parameters
        ----------
        steps : int
        metrics : mapping
            They may have the unit of the stage by its name, as ``time_metric`` says there.
        """
        stage = self.services.environment.stage
        if stage is None or self.length_asked or self.services.environment.metric not in metrics:
            return
        ((unit, units),) = stage.items()
        done = metrics.get(unit, steps if unit == "batches" else 0)
        self._stage_done = isinstance(done, int | float) and done >= units

    def best(self) -> float | None:
        """Return the experiment's best value of the searcher's metric."""
        metric = self.services.environment.metric
        known = [self.services.reporter.best_metric()]
        if metric in self.validated:
            known.append(self.validated[metric][1])
        values = [value for value in known if value is not None]
        smaller = self.services.environment.smaller_is_better
        return None if not values else (min if smaller else max)(values)

    @cached_property
    def tensorboard(self) -> Path:
        """The folder for event files."""
        folder = self.services.tensorboard or Path(tempfile.mkdtemp(prefix="det-tensorboard-"))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def measure(self, seconds: float | None) -> None:
        """Measure what this process uses, as often; None ends it."""
        self._measuring.close()
        profiling = self.services.environment.config.get("profiling") or {}
        if seconds is None or profiling.get("enabled"):
            return
        self._measuring.enter_context(
            sampled(
                {"profiling": {"enabled": True, "period": seconds}},
                own_gpus,
                self.services.reporter.system,
                rank=self.distributed.rank,
                network=not self.distributed.local_rank,
            )
        )

    # -- its end

    def outcome(self) -> Outcome:
        """Return how the training has ended, after :meth:`close`."""
        return Outcome(self.steps, stopped=not self.services.schedule.progress.validated_at_end)

    def close(self, *, complete: bool = True) -> None:
        """Report what is left, and wait for checkpoints under way.

        Parameters
        ----------
        complete : bool
            Whether no exception ends the training.

        Raises
        ------
        TrialDefinitionError
            If trials are compared, and this one has not reported by what.
        """
        self.measure(None)
        if self.distributed.rank == 0:
            self.begin(self.steps)
            self.rows.close()
        self.services.checkpoints.wait()
        progress = self.services.schedule.progress
        if not complete or (self.acknowledged and not self._completed):
            return
        if self.distributed.rank == 0 and not (self.invalid or self._checked):
            self._check_compared()
        progress.validated_at_end = True
        of_stage = self._completed and self.services.environment.stage is not None
        if self._stopped_early or not (self.services.schedule.over or of_stage):
            progress.ended = True  # the code says how long it trains

    def _check_compared(self) -> None:
        environment = self.services.environment
        searches = (environment.config.get("searcher") or {}).get("name", "single") != "single"
        if searches and environment.metric and environment.metric not in self.validated:
            raise TrialDefinitionError(
                f"searcher.metric is '{environment.metric}', and the training has not reported it: give it to "
                "context.train.report_validation_metrics() or to op.report_completed()."
            )
