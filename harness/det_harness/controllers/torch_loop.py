"""The user's own loop over ``context.train()``: what is due besides training is done between two of its batches."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from time import monotonic
from types import FrameType
from typing import Any

from det_harness.controllers.torch_native import NativeTorchController
from det_harness.schedule import Finish, SaveCheckpoint, Train
from det_harness.services import Outcome, Services
from det_native.callsite import asking_frame, left_on_purpose
from det_native.pytorch import LRScheduler
from det_native.pytorch.native_call import TorchCall
from det_native.tensorboard import place


class TorchLoopController(NativeTorchController):
    """Runs one trial of a loop over ``context.train()``; it gives the loop's batches instead of training on them.

    Parameters
    ----------
    call : TorchCall
    services : Services

    Attributes
    ----------
    outcome : Outcome or None
        How the training ended; None while it goes on, and after an exception in the loop's body.
    on_purpose : bool
        Whoever closes the batches knows that the loop was not left by an exception; otherwise the loop's frame tells.
    """

    def __init__(self, call: TorchCall, services: Services) -> None:
        super().__init__(call, services)
        self.outcome: Outcome | None = None
        self.on_purpose = False
        self._left = False
        self._asker: FrameType | None = None

    def batches(self) -> Iterator[Any]:
        """Yield the batches that are left, to the end.

        An iterator that is closed before that has been left by the user's code. What a ``break`` left is finished
        with a checkpoint; what an exception left is not.
        """
        with place.writing_to(self._event_files()):
            self._build()
            self._call.context.begin_loop()
            with self._shutdown_in_any_case(), contextlib.closing(self):
                with self._training():
                    try:
                        stopped = yield from self._all_batches()
                    except GeneratorExit:
                        if not self._left:
                            self._recorder.report_alone()
                            raise
                        stopped = self._leave()
                self._await_checkpoints()
            self.outcome = Outcome(batches=self._schedule.progress.batches, stopped=stopped)

    def close(self) -> None:
        """Let go of the user's code."""
        self._call.context.end_loop()
        self._asker = None

    def _all_batches(self) -> Generator[Any, None, bool]:
        """Yield the batches and do what is due, until the end; returns whether it came early."""
        while True:
            match self._schedule.next():
                case Train(until):
                    yield from self._batches_until(until)
                case Finish(stopped):
                    self._recorder.report()
                    return stopped
                case action:
                    self._between_batches(action)
            self._checkpoints.tell_published()

    def _batches_until(self, until: int) -> Iterator[Any]:
        for model in self._context.models:
            model.train()
        try:
            while self._done < until and not self._schedule.stop_requested:
                yield from self._part(min(until, self._part_end()))
        except GeneratorExit:
            raise
        except BaseException:
            with contextlib.suppress(RuntimeError):
                self._recorder.report_alone()
            raise
        finally:
            self._schedule.trained(self._done)

    def _part(self, end: int) -> Iterator[Any]:
        """Yield the batches up to one within one epoch and workload; see ``_train_part``, which trains by itself."""
        context, recorder, batches = self._context, self._recorder, self._batches
        begin_batch = self._ranks.begin_batch if self._ranks.several else None
        by_batch = self._schedulers(LRScheduler.StepMode.STEP_EVERY_BATCH)
        epoch, first = divmod(self._done, self._epoch_length)
        if first == 0:
            self._hooks.call("on_training_epoch_start", epoch)
        while self._done < end:
            if begin_batch is not None:
                answer = begin_batch(due=self._done + 1 >= recorder.due or monotonic() >= recorder.late)
            batch = context.to_device(next(batches))
            context.enter_batch(self._done)
            self._asker = asking_frame()
            try:
                yield batch
            except GeneratorExit:
                self._left = self.on_purpose or left_on_purpose(self._asker)
                if self._left:  # the batch is counted: it may have changed the weights
                    self._count()
                raise
            del batch
            self._count()
            for scheduler in by_batch:
                scheduler.step()
            if begin_batch is None:
                stop = self._services.stop_requested() or context.get_stop_requested()
                due = self._done >= recorder.due or monotonic() >= recorder.late
            else:
                stop, due = answer()
            if stop:
                self._schedule.request_stop()
                break
            if due and self._done < end:
                recorder.report()
        self._end_part()

    def _count(self) -> None:
        """A batch is done."""
        self._done += 1
        reported = self._call.context.take_reported()
        if reported:
            self._recorder.add(self._done, reported)

    def _leave(self) -> bool:
        """End the training where the loop was left: with a checkpoint of what is not saved."""
        self._schedule.request_stop()
        while isinstance(self._schedule.next(), SaveCheckpoint):
            self._save()
        self._recorder.report()
        return True
