"""Trains a PyTorch trial by a loop of ours, which calls ``train_batch``."""

from __future__ import annotations

import contextlib
from time import monotonic

from det_harness.frameworks.torch.checks import check_trial_class, check_wrapped
from det_harness.frameworks.torch.definition import Definition, TrialClass
from det_harness.frameworks.torch.native import CapturedCall
from det_harness.frameworks.torch.training import TorchTraining
from det_harness.trial.services import Outcome, Services
from det_native.pytorch import LRScheduler, PyTorchTrial
from det_native.pytorch.native_call import TorchCall
from det_native.pytorch.nesting import to_device

__all__ = ["NativeTorchController", "PyTorchTrialController", "check_trial_class", "check_wrapped"]


class PyTorchTrialController:
    """Runs one trial of a :class:`PyTorchTrial` subclass."""

    def __init__(self, trial_class: type[PyTorchTrial], services: Services) -> None:
        self._loop = _Loop(TorchTraining(TrialClass(trial_class, services)))

    def run(self) -> Outcome:
        """Train to the end.

        Raises
        ------
        TrialDefinitionError
            If the class breaks a rule of the API.
        RankLostError
            If another rank is gone.
        Exception
            Whatever the user's code raises.
        """
        return self._loop.run()


class NativeTorchController(PyTorchTrialController):
    """Runs one trial of a captured call of ``context.fit()``."""

    def __init__(self, call: TorchCall, services: Services) -> None:
        self._loop = _Loop(TorchTraining(CapturedCall(call, services)))


def train_to_the_end(definition: Definition) -> Outcome:
    """Train what somebody else has made, as :class:`PyTorchTrialController` does."""
    return _Loop(TorchTraining(definition)).run()


class _Loop:
    """Our loop over the batches of a training."""

    def __init__(self, training: TorchTraining) -> None:
        self._training = training

    def run(self) -> Outcome:
        """Train to the end."""
        training = self._training
        with training.running():
            with training.started():
                training.driver.run(self._train)
            return training.driver.finish()

    def _train(self, until: int) -> None:
        training = self._training
        training.definition.enter_training_mode(training.context)
        self._train_batch = training.context.around_training(training.trial.train_batch)
        try:
            while training.done < until and not training.schedule.stop_requested:
                self._train_part(min(until, training.part_end()))
        except BaseException:
            with contextlib.suppress(RuntimeError):  # a broken device must not hide the error itself
                training.recorder.report_alone()
            raise
        finally:
            training.schedule.trained(training.done)

    def _train_part(self, end: int) -> None:
        """Train up to a batch within one epoch and workload. What is done for every batch is done here."""
        training, train_batch = self._training, self._train_batch
        context, recorder, batches = training.context, training.recorder, training.batches
        device, enter_batch, stop_requested = context.device, context.enter_batch, training.services.stop_requested
        add = recorder.add
        begin_batch = training.ranks.begin_batch if training.ranks.several else None
        by_batch = training.schedulers(LRScheduler.StepMode.STEP_EVERY_BATCH)
        done = training.done
        epoch = done // training.epoch_length
        training.begin_part()
        try:
            while done < end:
                if begin_batch is not None:
                    answer = begin_batch(due=done + 1 >= recorder.due or monotonic() >= recorder.late)
                batch = to_device(next(batches), device)
                enter_batch(done)
                # No name for what comes back: its graph would live, and cost memory, through the next batch.
                add(done + 1, train_batch(batch, epoch, done))
                del batch  # so that the next one may have its memory, which is in the processor's cache
                done += 1
                for scheduler in by_batch:
                    scheduler.step()
                if begin_batch is None:
                    stop = stop_requested() or context.stop_requested
                    due = done >= recorder.due or monotonic() >= recorder.late
                else:
                    stop, due = answer()
                if stop:
                    training.schedule.request_stop()
                    break
                # The row of the last batch waits: metrics of the workload belong into it.
                if due and done < end:
                    recorder.report()
        finally:
            training.done = done
        training.end_part()
