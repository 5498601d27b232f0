"""Runs a PyTorchTrial: builds the user's objects, restores them, then does what the schedule says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from det_harness.frameworks.torch.checkpoints import TorchCheckpoints
from det_harness.frameworks.torch.checks import (
    batches_of_an_epoch,
    check_evaluation,
    check_trial_class,
    check_wrapped,
    checked_loader,
)
from det_harness.frameworks.torch.compilation import Compilation
from det_harness.frameworks.torch.evaluation import Evaluation, Validation
from det_harness.frameworks.torch.gradients import gradients_of
from det_harness.frameworks.torch.hooks import CallbackHooks
from det_harness.frameworks.torch.modes import evaluating
from det_harness.frameworks.torch.ranks import RanksInStep
from det_harness.frameworks.torch.recorder import TrainingRecorder
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.ranks.communicator import losses_named
from det_harness.trial import rng
from det_harness.trial.averages import averaged
from det_harness.trial.metrics import checked_validation, is_best
from det_harness.trial.schedule import Finish, SaveCheckpoint, Train, Validate
from det_harness.trial.services import Outcome, Services
from det_native.imports import load_optimizers
from det_native.pytorch import DataLoader, LRScheduler, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.gradients import Gradients
from det_native.pytorch.nesting import to_device
from det_native.tensorboard import place

__all__ = ["PyTorchTrialController", "check_trial_class", "check_wrapped"]


class PyTorchTrialController:
    """Runs one trial of a :class:`PyTorchTrial` subclass.

    Parameters
    ----------
    trial_class : type
        The user's class.
    services : Services
    trainer : str
        What trains on a batch, for messages; the class's ``train_batch()`` by default.
    """

    _evaluation_class: type[Evaluation] = Evaluation
    _verb = "return"  # what the user's code does with its training metrics, for messages

    def __init__(self, trial_class: type[PyTorchTrial], services: Services, trainer: str = "") -> None:
        check_trial_class(trial_class)
        environment = services.environment
        self._trial_class = trial_class
        self._name = trial_class.__name__
        self._services = services
        self._schedule = services.schedule
        self._communicator = communicator = services.communicator
        optimizations = environment.config.get("optimizations") or {}
        averages = communicator.size > 1 and bool(optimizations.get("average_training_metrics", False))
        self._recorder = TrainingRecorder(
            services.reporter,
            trainer or f"{self._name}.train_batch()",
            (lambda batches, columns: averaged(batches, columns, communicator)) if averages else None,
            self._verb,
        )
        searcher = environment.config.get("searcher") or {}
        self._compilation = Compilation(environment.config, self._name)
        self._metric: str | None = searcher.get("metric")
        self._smaller_is_better = bool(searcher.get("smaller_is_better", True))
        self._done = 0

    def run(self) -> Outcome:
        """Train to the end.

        Raises
        ------
        TrialDefinitionError
            If the class breaks a rule of the API.
        PeerLostError
            If another rank is gone.
        Exception
            Whatever the user's code raises.
        """
        with place.writing_to(self._event_files()), self.explained():
            self._build()
            with self._shutdown_in_any_case():
                stopped = self._run()
        return Outcome(batches=self._schedule.progress.batches, stopped=stopped)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Let what goes wrong in the block be said in words: a rank that is gone, models that cannot be compiled."""
        with losses_named(), self._compilation.explained():
            yield

    def _run(self) -> bool:
        with self._training():
            stopped = self._follow_schedule()
        self._await_checkpoints()
        return stopped

    @contextlib.contextmanager
    def _training(self) -> Iterator[None]:
        """Be ready for the batch that comes next, in the block."""
        position = self._checkpoints.restore()
        self._done = self._schedule.progress.batches
        self._ranks.start()
        self._batches = self._training_batches(position)
        try:
            self._begun()
            with rng.preserved():  # it runs at every start, also of a trial that is continued
                self._hooks.call("on_training_start")
            with self._context.steps_watched():
                yield
        finally:
            del self._batches  # ends the loader's workers
            self._checkpoints.settle()

    def _begun(self) -> None:
        """Everything is ready for the batch that comes next."""

    def _await_checkpoints(self) -> None:
        self._checkpoints.wait()
        self._checkpoints.tell_published()

    def _event_files(self) -> Path | None:
        """Return the folder for TensorBoard's files: every rank has its own, lest their curves mix."""
        folder, rank = self._services.tensorboard, self._communicator.rank
        return folder / f"rank-{rank}" if folder is not None and rank > 0 else folder

    def _build(self) -> None:
        load_optimizers()
        environment = self._services.environment
        rng.seed_all(environment.trial_seed)
        gradients = gradients_of(self._communicator, environment.config, self._name)
        self._make_trial(gradients)
        context, trial = self._context, self._trial
        self._compilation.apply(context.models, context.device)
        self._ranks = RanksInStep(context, self._communicator, gradients, self._services.stop_requested)
        self._training_loader = checked_loader(self._name, trial, "build_training_data_loader")
        ranks = environment.ranks
        self._shard: dict[str, Any] = {
            "num_replicas": ranks.size,
            "rank": ranks.rank,
            "seed": environment.trial_seed,
        }
        reducers = context.experimental.reducers
        self._reduction = Reduction((one for one in reducers if one.for_training), self._communicator)
        self._evaluation = self._make_evaluation(
            Reduction((one for one in reducers if one.for_validation), self._communicator, "validation")
        )
        self._hooks = CallbackHooks(self._name, trial.build_callbacks(), rank_zero=ranks.rank == 0)
        context.call_before_steps(self._hooks.of("on_before_optimizer_step"))
        self._checkpoints = TorchCheckpoints(self._services, context, self._hooks, self._reduction)
        self._epoch_length = self._batches_of_an_epoch()
        context.set_epoch_length(self._epoch_length)

    def _make_trial(self, gradients: Gradients) -> None:
        self._context = PyTorchTrialContext(self._services.environment, gradients=gradients, owner=self._name)
        self._trial = self._trial_class(self._context)
        check_wrapped(self._name, self._context, self._trial_class)

    def _make_evaluation(self, reduction: Reduction) -> Validation:
        validation = self._validation_loader()
        check_evaluation(self._name, validation, self._trial, None if reduction else self._metric)
        return self._evaluation_class(
            self._trial,
            self._context,
            lambda sharded: validation.get_data_loader(**(self._shard if sharded else {})),
            self._services.validation_batches,
            reduction,
            self._communicator,
            self._metric,
        )

    def _validation_loader(self) -> DataLoader:
        return checked_loader(self._name, self._trial, "build_validation_data_loader")

    def _batches_of_an_epoch(self) -> int:
        return batches_of_an_epoch(self._name, self._training_loader, self._context)

    def _training_batches(self, position: Any) -> Iterator[Any]:
        """Begin the training data at the batch that comes next."""
        loader = self._training_loader.get_data_loader(repeat=True, skip=self._done, position=position, **self._shard)
        return iter(loader)

    def _follow_schedule(self) -> bool:
        """Do what is due until the end; returns whether it came early."""
        while True:
            match self._schedule.next():
                case Train(until):
                    self._train(until)
                case Finish(stopped):
                    self._recorder.report()
                    return stopped
                case action:
                    self._between_batches(action)
            self._checkpoints.tell_published()

    def _between_batches(self, action: Validate | SaveCheckpoint) -> None:
        if isinstance(action, Validate):
            self._validate()
        else:
            self._save()

    def _train(self, until: int) -> None:
        self._enter_training_mode()
        self._train_batch = self._compilation.around_training(self._context.around_training(self._trial.train_batch))
        try:
            while self._done < until and not self._schedule.stop_requested:
                self._train_part(min(until, self._part_end()))
        except BaseException:
            with contextlib.suppress(RuntimeError):  # a broken device must not hide the error itself
                self._recorder.report_alone()
            raise
        finally:
            self._schedule.trained(self._done)

    def _enter_training_mode(self) -> None:
        for model in self._context.models:
            model.train()

    def _part_end(self) -> int:
        """Return the batch up to which nothing has to be done but training: the end of the epoch or workload."""
        epoch = self._done - self._done % self._epoch_length + self._epoch_length
        if not self._reduction:
            return epoch
        unit = self._schedule.periods.scheduling_unit
        return min(epoch, self._done - self._done % unit + unit)

    def _train_part(self, end: int) -> None:
        """Train up to a batch within one epoch and workload. What is done for every batch is done here."""
        context, train_batch, recorder, batches = self._context, self._train_batch, self._recorder, self._batches
        device, enter_batch, stop_requested = context.device, context.enter_batch, self._services.stop_requested
        add = recorder.add
        begin_batch = self._ranks.begin_batch if self._ranks.several else None
        by_batch = self._schedulers(LRScheduler.StepMode.STEP_EVERY_BATCH)
        done = self._done
        epoch, first = divmod(done, self._epoch_length)
        if first == 0:
            self._hooks.call("on_training_epoch_start", epoch)
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
                    self._schedule.request_stop()
                    break
                # The row of the last batch waits: metrics of the workload belong into it.
                if due and done < end:
                    recorder.report()
        finally:
            self._done = done
        self._end_part()

    def _end_part(self) -> None:
        """Do what is due at the end of an epoch or workload, if one has ended."""
        epoch, rest = divmod(self._done, self._epoch_length)
        if rest == 0:
            for scheduler in self._schedulers(LRScheduler.StepMode.STEP_EVERY_EPOCH):
                scheduler.step()
            self._hooks.call("on_training_epoch_end", epoch - 1)
        if self._reduction and self._schedule.ends_workload(self._done):
            self._report_workload()
        elif self._ranks.agree(self._done >= self._recorder.due or monotonic() >= self._recorder.late):
            self._recorder.report()
        if self._ranks.agree(self._context.get_stop_requested()):
            self._schedule.request_stop()

    def _report_workload(self) -> None:
        """Report, with the batches, what the reducers make of the workload that has ended."""
        self._recorder.report(self._reduction.reduce(), self._done)
        self._reduction.reset()

    def _schedulers(self, mode: LRScheduler.StepMode) -> list[LRScheduler]:
        return [scheduler for scheduler in self._context.lr_schedulers if scheduler.step_mode is mode]

    def _validate(self) -> None:
        self._recorder.report()
        hooks = self._hooks
        hooks.call("on_validation_step_start")
        hooks.call("on_validation_start")
        self._ranks.send_buffers()
        with evaluating(self._context.models):
            evaluation = self._evaluation
            metrics = checked_validation(evaluation.run(), self._metric, evaluation.owner, evaluation.verb)
            best = self._communicator.broadcast_object(self._communicator.rank == 0 and self._is_best(metrics))
            self._services.reporter.validation(self._schedule.progress.batches, metrics)
            self._schedule.validated(best=best)
            hooks.call_with_metrics("on_validation_step_end", metrics)
            hooks.call_with_metrics("on_validation_end", metrics)
        self._ranks.end_validation()
        if self._ranks.agree(self._ranks.stops):
            self._schedule.request_stop()

    def _is_best(self, metrics: dict[str, float]) -> bool:
        if self._metric is None or self._schedule.periods.policy != "best":
            return False
        best = self._services.reporter.best_metric()
        return is_best(metrics[self._metric], best, smaller_is_better=self._smaller_is_better)

    def _save(self) -> None:
        self._recorder.report()
        self._checkpoints.save(lambda: getattr(self._batches, "position", None))

    @contextlib.contextmanager
    def _shutdown_in_any_case(self) -> Iterator[None]:
        """Run ``on_trial_shutdown`` after the block; what goes wrong in it does not hide what went wrong before."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                self._hooks.call("on_trial_shutdown")
            raise
        self._hooks.call("on_trial_shutdown")
