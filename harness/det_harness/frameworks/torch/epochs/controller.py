"""Runs a trial of a loop over ``context.epochs()``: what is due besides training is done between two of its epochs."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from time import monotonic
from types import FrameType

import torch

from det_harness.frameworks.base import LoopController
from det_harness.frameworks.torch.call_snapshot import begin_loop
from det_harness.frameworks.torch.epochs.definition import CapturedLoop
from det_harness.frameworks.torch.epochs.pace import Pace
from det_harness.frameworks.torch.epochs.shares import Shares
from det_harness.frameworks.torch.epochs.training import EpochsTraining
from det_harness.trial.metrics import is_best
from det_harness.trial.schedule import Finish
from det_harness.trial.services import Services
from det_native.pytorch.epochs_call import EpochsCall
from det_native.pytorch.samplers import seed_for
from det_native.pytorch.wrapped_loader import WrappedLoader

logger = logging.getLogger("det_harness")


class EpochsController(LoopController):
    """Runs one trial of a loop over ``context.epochs()``; it gives the numbers of the epochs.

    Metrics go to the searcher, and checkpoints are made, as much time has passed, unless the configuration has a period
    for them. A loop that is left ends in order: the epoch in which that happened counts if the body has used it.

    On several slots they meet once an epoch, at its end. If one has left the loop, all end there.
    """

    _training: EpochsTraining

    def __init__(self, call: EpochsCall, services: Services) -> None:
        self._definition = CapturedLoop(call, services)
        super().__init__(call, training := EpochsTraining(self._definition, call))
        self._rows = training.rows
        self._pace = Pace(monotonic(), 1)
        self._best_saved: float | None = None
        self._compare = self._save = self._looked = False
        self._taken = 0
        self._versions: list[int] = []

    def _begin_loop(self, frame: FrameType | None) -> None:
        training, context = self._training, self._call.context
        context.begin_loop(self._rows.add)
        context.loading.most = 1 if self._definition.quick else None
        shares = Shares(context, training.services.communicator) if training.ranks.several else None
        if shares is not None:
            context.loading.pass_of, context.loading.dataset_of = shares.pass_of, shares.dataset_of
        if context.role == "worker":  # here nothing goes on from a checkpoint
            begin_loop(context, frame)
        if shares is not None:
            self._warn_of_whole_data(shares, frame)

    def _begin(self) -> None:
        training = self._training
        self._pace = Pace(monotonic(), training.schedule.periods.length // training.epoch_length)
        self._draw_apart()

    def _next(self) -> int:
        number: int = self._call.first + self._training.done // self._training.epoch_length
        return number

    def close(self) -> None:
        """Let go of the user's code."""
        self._call.context.end_loop()
        self._call.context.loading.most = None
        self._call.context.loading.pass_of = WrappedLoader.batches
        self._call.context.loading.dataset_of = WrappedLoader.whole_dataset

    def _warn_of_whole_data(self, shares: Shares, frame: FrameType | None) -> None:
        """Say which names of the loop stand for all records, where each slot trains on its share of them."""
        if frame is None or self._training.services.communicator.rank:
            return
        code, names = frame.f_code, {**frame.f_globals, **frame.f_locals}
        values = {name: names.get(name) for name in (*code.co_names, *code.co_varnames, *code.co_freevars)}
        for name in shares.names_of_data(values):
            text = (
                f"The loop over context.epochs() reads `{name}`, which has all records, and on "
                f"{self._training.services.communicator.size} slots each trains on its share of them: a sum over "
                f"records of its batches, divided by len({name}), is that much too small. Divide by len() of the "
                "wrapped loader's .dataset, or by what the loop has counted."
            )
            logger.warning(text)
            self._training.services.reporter.warning(text)

    def _draw_apart(self) -> None:
        """Have each slot draw its own numbers from torch: dropout, noise. Python's and NumPy's decide alike on all."""
        rank, seed = self._training.services.communicator.rank, self._training.services.environment.trial_seed
        if rank and not self._training.done:
            torch.manual_seed(seed_for(seed, rank))

    def _report_alone(self) -> None:
        self._rows.end_epoch()
        self._rows.report_alone()

    def _advance(self) -> bool:
        """Do what is due until the next epoch begins; returns False at the end."""
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
        context = self._call.context
        self._rows.begin_epoch(training.done)
        context.enter_batch(training.done)
        self._taken, self._versions = context.loading.taken, self._changes()
        if training.ranks.several:
            training.ranks.send_buffers()
        return True

    def _is_best_to_save(self, metrics: Mapping[str, float]) -> bool:
        """Whether these metrics are better than those of the checkpoints so far, where the best one is to be kept."""
        environment, communicator = self._training.services.environment, self._training.services.communicator
        value = metrics.get(environment.metric or "")
        if value is None or math.isnan(value) or self._training.schedule.periods.policy != "best":
            return False
        best = is_best(value, self._best_saved, smaller_is_better=environment.smaller_is_better)
        best = bool(communicator.broadcast_object(best))
        if best:
            self._best_saved = value
        return best

    def _after_body(self) -> None:
        """Do what belongs to the end of an epoch, which the loop's body is done with, or has left."""
        training, rows = self._training, self._rows
        used = not self._left or self._is_used()
        periods, now = training.schedule.periods, monotonic()
        flags = [
            training.ranks.stops,
            self._left,
            rows.due,
            not periods.validation_period and self._pace.due(now),
            not periods.checkpoint_period and periods.policy != "none" and self._pace.saving_due(now),
        ]
        communicator = training.services.communicator
        if training.ranks.several:
            flags = communicator.all_reduce_any(*flags)()
        stop, self._left, due, self._compare, self._save = flags
        if self._left and training.ranks.several:
            used = bool(communicator.broadcast_object(used))
        if used:
            rows.end_epoch()
            training.done += training.epoch_length
            training.schedule.trained(training.done)
            self._look(rows.names)
        if self._left:
            training.schedule.end_here(validate=used or training.done > 0)
        elif stop:
            training.schedule.request_stop()
        elif due:
            rows.report()

    def _look(self, names: Sequence[str]) -> None:
        """Look at the metrics of an epoch that has ended."""
        environment = self._training.services.environment
        if self._training.done == self._training.epoch_length:
            self._definition.check_reported(names)
        if names and not self._looked:
            self._looked = True
            self._definition.validated(dict.fromkeys(names))
            environment = self._training.services.environment
        if environment.metric and not self._training.ranks.several:
            self._rows.note_best(environment.metric, smaller_is_better=environment.smaller_is_better)

    def _is_used(self) -> bool:
        """Whether the body has done something in its epoch: reported, taken a batch, or changed a weight."""
        context = self._call.context
        return not self._rows.empty or context.loading.taken > self._taken or self._changes() != self._versions

    def _changes(self) -> list[int]:
        """Return how often the last weight of each optimizer was changed in place."""
        groups = (optimizer.param_groups for optimizer in self._call.context.optimizers)
        return [several[-1]["params"][-1]._version for several in groups if several and several[-1]["params"]]
