"""Runs a trial of a loop of the user's own: what is due besides training is done between two of its passes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from time import monotonic
from types import FrameType
from typing import Any

from det_harness.frameworks.base import LoopController
from det_harness.loops.pace import Pace
from det_harness.loops.training import LoopTraining
from det_harness.trial.metrics import is_best
from det_harness.trial.schedule import Finish
from det_native.callsite import asking_frame
from det_native.loops.epochs_call import EpochsCall


class PassesController(LoopController):
    """Runs one trial of a loop over ``context.epochs()``, and gives the numbers of the epochs.

    Metrics go to the searcher, and checkpoints are made, as much time has passed, unless the configuration has a period
    for them. A loop that is left ends in order: the pass in which that happened counts if the body has used it.

    On several slots they meet once a pass, at its end. If one has left the loop, all end there.
    """

    def __init__(self, call: EpochsCall, training: LoopTraining) -> None:
        super().__init__()
        self._call = call
        self._training = training
        self._rows = training.rows
        self._communicator = training.services.communicator
        self.explained = training.explained
        self._pace = Pace(monotonic(), 1)
        self._best_saved: float | None = None
        self._compare = self._save = self._looked = False

    def batches(self) -> Iterator[Any]:
        """Yield what is left: the numbers of the epochs."""
        training, context = self._training, self._call.context
        with training.running():
            context.begin_loop(self._rows.add)
            self._begin(asking_frame())
            with contextlib.closing(self):
                with training.started(), self._reported_in_any_case():
                    self._pace = Pace(monotonic(), training.schedule.periods.length // training.epoch_length)
                    self._started()
                    while self._advance():
                        self._asker = asking_frame()
                        try:
                            yield self._element()
                        except GeneratorExit:
                            if not self._leaves():
                                raise
                            if context.role == "worker":
                                self._warn_of_code_after_loop(self._training.services)
                        self._after_pass()
                outcome = training.driver.finish()
        self.outcome = outcome

    def close(self) -> None:
        """Let go of the user's code; its frame stays, which may hold the last reference to who asks for the epochs."""
        self._call.context.end_loop()

    # -- what belongs to a framework

    def _begin(self, frame: FrameType | None) -> None:
        """Do what is due before a checkpoint is looked for; `frame` is the loop's."""

    def _started(self) -> None:
        """Do what is due before the first pass of this run."""

    def _element(self) -> Any:
        """Return what the loop is given for its next pass."""
        return self._call.first + self._training.passes

    def _begin_pass(self) -> None:
        """Note where a pass begins."""

    def _is_used(self) -> bool:
        """Whether the body has done something in a pass that it has left."""
        return not self._rows.empty

    def _goes_on_later(self) -> bool:
        """Whether the body has ended its pass since it knew that the trial is to go on at another time."""
        return False

    # -- between two passes

    @contextlib.contextmanager
    def _reported_in_any_case(self) -> Iterator[None]:
        """Report what was done before an exception in the block."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(RuntimeError):
                self._rows.end_epoch()
                self._rows.report_alone()
            raise

    def _advance(self) -> bool:
        """Do what is due until the next pass begins; returns False at the end."""
        training, schedule, pace = self._training, self._training.schedule, self._pace
        began = monotonic()
        goes_on = not schedule.over and not schedule.stop_requested
        paced = self._compare and goes_on
        if self._save and goes_on:
            schedule.request_checkpoint()
        saved = schedule.progress.last_checkpointed
        metrics = training.latest() if paced else {}
        compared = training.services.environment.metric
        if compared and compared not in metrics:
            metrics = {}  # it may come later
        if metrics:
            training.report_best()
            if self._is_best_to_save(metrics):
                schedule.request_checkpoint()
        action = training.driver.advance(metrics or None)
        if paced:
            pace.done(began=began, ended=monotonic())
        if schedule.progress.last_checkpointed != saved:
            pace.saved(monotonic())
        if isinstance(action, Finish):
            return False
        self._rows.begin_epoch(training.done)
        self._begin_pass()
        return True

    def _is_best_to_save(self, metrics: Mapping[str, float]) -> bool:
        """Whether these metrics are better than those of the checkpoints so far, where the best one is to be kept."""
        environment = self._training.services.environment
        value = metrics.get(environment.metric or "")
        if value is None or math.isnan(value) or self._training.schedule.periods.policy != "best":
            return False
        best = is_best(value, self._best_saved, smaller_is_better=environment.smaller_is_better)
        best = bool(self._communicator.broadcast_object(best))
        if best:
            self._best_saved = value
        return best

    def _after_pass(self) -> None:
        """Do what belongs to the end of a pass, which the loop's body is done with, or has left."""
        training, rows, several = self._training, self._rows, self._communicator.size > 1
        later = self._goes_on_later()
        used = not (self._left or later) or self._is_used()
        periods, now = training.schedule.periods, monotonic()
        flags = [
            training.stops,
            self._left,
            rows.due,
            not periods.validation_period and self._pace.due(now),
            not periods.checkpoint_period and periods.policy != "none" and self._pace.saving_due(now),
        ]
        if several:
            flags = self._communicator.all_reduce_any(*flags)()
        stop, self._left, due, self._compare, self._save = flags
        if self._left and several:
            used = bool(self._communicator.broadcast_object(used))
        if used:
            first = not training.passes
            training.end_pass()
            self._look(first=first)
        elif later:
            training.schedule.checkpointed()  # the pass begins again, from what was saved before it
        else:
            training.leave()
        if self._left and not later:
            training.schedule.end_here(validate=used or training.done > 0)
        elif stop or later:
            training.schedule.request_stop()
        elif due:
            rows.report()

    def _look(self, *, first: bool) -> None:
        """Look at the metrics of a pass that has ended."""
        loop, names = self._training.loop, self._rows.names
        if first:
            loop.check_reported(names)
        if names and not self._looked:
            self._looked = True
            loop.validated(dict.fromkeys(names))
        environment = self._training.services.environment
        if environment.metric and self._communicator.size == 1:
            self._rows.note_best(environment.metric, smaller_is_better=environment.smaller_is_better)
