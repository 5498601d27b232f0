"""The user's own loop over ``context.train()``: what is due besides training is done between two of its batches."""

from __future__ import annotations

import logging
from time import monotonic
from types import FrameType
from typing import Any

from det_harness.frameworks.base import LoopController
from det_harness.frameworks.torch.native import CapturedCall
from det_harness.frameworks.torch.ranks import Met
from det_harness.frameworks.torch.training import TorchTraining
from det_harness.trial.schedule import Finish
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import LRScheduler
from det_native.pytorch.native_call import TorchCall

logger = logging.getLogger("det_harness")


class TorchLoopController(LoopController):
    """Runs one trial of a loop over ``context.train()``; it gives the loop's batches instead of training on them.

    A loop that is left ends in order. The batch in which that happened is done like any other if the loop's body has
    used it (trained on it, or reported of it), and does not count if it has not. What is due then is done, and before
    the next batch would be given, the training ends.

    On several slots they meet once a batch: when the body begins to train on it, or is done with it. So nobody waits
    for the gradients of a slot that has left: if one has, all end after the same batch.
    """

    _training: TorchTraining

    def __init__(self, call: TorchCall, services: Services) -> None:
        self._definition = CapturedCall(call, services)
        super().__init__(call, TorchTraining(self._definition, own_loop=True))
        self._met: Met | None = None
        self._batch: Any = None
        self._part = 0  # the batch up to which the part under way goes: see `TorchTraining.part_end`
        self._by_batch: list[LRScheduler] = []

    def _begin_loop(self, frame: FrameType | None) -> None:
        self._call.context.begin_loop()
        if self._call.context.role == "worker":  # here nothing goes on from a checkpoint
            from det_harness.frameworks.torch.call_snapshot import begin_loop

            begin_loop(self._call.context, frame)

    def _next(self) -> Any:
        batch, self._batch = self._batch, None
        return batch

    def close(self) -> None:
        """Let go of the user's code."""
        self._call.context.end_loop()

    def _report_alone(self) -> None:
        self._training.recorder.report_alone()

    def _leaves(self) -> bool:
        self.on_purpose = self.on_purpose or (self._met is not None and self._met.left)  # ended elsewhere
        return super()._leaves()

    def _advance(self) -> bool:
        """Do what is due until the next batch is there; returns False at the end."""
        training, schedule = self._training, self._training.schedule
        while True:
            if training.done < self._part and not schedule.stop_requested and not schedule.progress.ended:
                if self._enter_batch():
                    return True
                continue
            action = training.driver.advance()
            if isinstance(action, Finish):
                return False
            self._part = min(action.until, training.part_end())
            self._by_batch = training.schedulers(LRScheduler.StepMode.STEP_EVERY_BATCH)
            if not self._left:
                training.begin_part()

    def _enter_batch(self) -> bool:
        """Have the next batch ready; returns False if there is none because the loop was left."""
        training, context = self._training, self._call.context
        self._met = None
        if self._left:
            context.begin_batch(None)
            self._after_body()
            return False
        self._batch = context.to_device(next(training.batches))
        context.enter_batch(training.done)
        context.begin_batch(self._begin_to_train if training.ranks.several else None)
        return True

    def _begin_to_train(self) -> None:
        """The body begins to train on its batch, on one of several slots."""
        if self._meet(trained=True).left:
            from det_harness.program.runner import ProgramStop

            raise ProgramStop

    def _meet(self, *, trained: bool = False) -> Met:
        done, recorder = self._training.done, self._training.recorder
        due = done + 1 >= recorder.due or monotonic() >= recorder.late
        self._met = met = self._training.ranks.meet(due=due, left=self._left, trained=trained)
        if met.trained and met.passed and not met.left:
            raise TrialDefinitionError(
                f"The slots of the trial go different ways in batch {done + 1} of the loop over context.train(): "
                f"{'another slot does not train on it' if trained else 'this slot has not trained on it'}, so the "
                "others would wait for its gradients. Let every slot compute gradients and step its optimizers for the "
                "same batches."
            )
        return met

    def _after_body(self) -> None:
        """Do what belongs to the end of a batch, which the loop's body is done with, or has left."""
        used = self._call.context.batch_used
        if self._training.ranks.several and self._met is None:
            self._meet()
        if self._met is None:
            ends = self._left and not used
        else:
            ends = self._met.left  # so nobody has trained on the batch
            used = self._definition.services.communicator.broadcast_object(used) if ends else True
        if ends:
            self._end_here(used=used)
        else:
            self._count()

    def _count(self) -> None:
        """A batch is done."""
        training = self._training
        training.done = done = training.done + 1
        training.schedule.trained(done)
        recorder, context = training.recorder, self._call.context
        reported = context.take_reported()
        if reported:
            recorder.add(done, reported)
        for scheduler in self._by_batch:
            scheduler.step()
        if self._met is None:
            stop = training.services.stop_requested() or context.get_stop_requested()
            due = done >= recorder.due or monotonic() >= recorder.late
        else:
            stop, due = self._met.stops, self._met.due
        if stop:
            training.schedule.request_stop()
        elif due and done < self._part:
            recorder.report()
        if stop or done >= self._part:
            training.end_part()

    def _end_here(self, *, used: bool) -> None:
        """End the training where the loop was left, as if its length had been this."""
        training, means = self._training, self._definition.means
        if used:
            self._count()
        self._call.context.take_reported()
        if training.ranks.several:
            logger.info("A slot has left the loop over context.train(): all end after batch %d.", training.done)
        if training.reduction and not training.schedule.ends_workload(training.done):
            training.report_workload()
        training.recorder.report()
        nothing = training.done == 0 or (means is not None and means.empty)
        training.schedule.end_here(validate=not nothing)
