"""Runs a PyTorchTrial: builds the user's objects, restores them, then does what the schedule says."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from det_harness import rng, torch_state
from det_harness.metrics import checked_validation, is_best, scalar
from det_harness.recorder import TrainingRecorder
from det_harness.schedule import Finish, SaveCheckpoint, Train, Validate
from det_harness.services import Outcome, Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import LRScheduler, PyTorchCallback, PyTorchTrial, PyTorchTrialContext, Reducer
from det_native.pytorch.data import adapt_data_loader, data_length

_OLD_INTERFACE = ("build_model", "optimizer", "create_lr_scheduler")


class PyTorchTrialController:
    """Runs one trial of a :class:`PyTorchTrial` subclass.

    Parameters
    ----------
    trial_class : type
        The user's class.
    services : Services
    """

    def __init__(self, trial_class: type[PyTorchTrial], services: Services) -> None:
        check_trial_class(trial_class)
        self._trial_class = trial_class
        self._name = trial_class.__name__
        self._services = services
        self._schedule = services.schedule
        self._recorder = TrainingRecorder(services.reporter, f"{self._name}.train_batch()")
        searcher = services.environment.config.get("searcher") or {}
        self._metric: str | None = searcher.get("metric")
        self._smaller_is_better = bool(searcher.get("smaller_is_better", True))

    def run(self) -> Outcome:
        """Train to the end.

        Raises
        ------
        TrialDefinitionError
            If the class breaks a rule of the API.
        Exception
            Whatever the user's code raises.
        """
        self._build()
        with self._services.checkpoints.restore() as folder:
            if folder is not None:
                self._schedule.restore(torch_state.load_schedule(folder))
                torch_state.load(folder, self._context, self._callbacks)
        self._batches = self._training_batches()
        try:
            stopped = self._follow_schedule()
        finally:
            del self._batches  # ends the loader's workers
        self._services.checkpoints.wait()
        return Outcome(batches=self._schedule.progress.batches, stopped=stopped)

    def _build(self) -> None:
        environment = self._services.environment
        rng.seed_all(environment.trial_seed)
        self._context = PyTorchTrialContext(environment)
        self._trial = self._trial_class(self._context)
        check_wrapped(self._name, self._context)
        training = adapt_data_loader(self._trial.build_training_data_loader(), "build_training_data_loader")
        validation = adapt_data_loader(self._trial.build_validation_data_loader(), "build_validation_data_loader")
        shard: dict[str, Any] = {
            "num_replicas": environment.ranks.size,
            "rank": environment.ranks.rank,
            "seed": environment.trial_seed,
        }
        self._training_loader, self._shard = training, shard
        self._full_evaluation = _overrides(self._trial_class, "evaluate_full_dataset")
        self._validation_loader = validation.get_data_loader(**({} if self._full_evaluation else shard))
        self._callbacks = _checked_callbacks(self._name, self._trial.build_callbacks())

    def _training_batches(self) -> Iterator[Any]:
        """Begin the training data at the batch that comes next."""
        done = self._schedule.progress.batches
        loader = self._training_loader.get_data_loader(repeat=True, skip=done, **self._shard)
        self._epoch_length = len(loader)
        if self._epoch_length < 1:
            raise TrialDefinitionError(
                f"{self._name}.build_training_data_loader() returned a loader without batches: its dataset has fewer "
                "records than one batch, or none."
            )
        self._context.set_epoch_length(self._epoch_length)
        return iter(loader)

    def _follow_schedule(self) -> bool:
        """Do what is due until the end; returns whether it came early."""
        while True:
            match self._schedule.next():
                case Train(until):
                    self._train(until)
                case Validate():
                    self._validate()
                case SaveCheckpoint():
                    self._save()
                case Finish(stopped):
                    self._recorder.report()
                    return stopped

    def _train(self, until: int) -> None:
        context, train_batch, recorder = self._context, self._trial.train_batch, self._recorder
        stop_requested, epoch_length, batches = self._services.stop_requested, self._epoch_length, self._batches
        by_batch = self._schedulers(LRScheduler.StepMode.STEP_EVERY_BATCH)
        by_epoch = self._schedulers(LRScheduler.StepMode.STEP_EVERY_EPOCH)
        for model in context.models:
            model.train()
        done = self._schedule.progress.batches
        try:
            while done < until:
                batch = context.to_device(next(batches))
                context.enter_batch(done)
                # No name for what comes back: its graph would live, and cost memory, through the next batch.
                recorder.add(done + 1, train_batch(batch, done // epoch_length, done))
                done += 1
                for scheduler in by_batch:
                    scheduler.step()
                if by_epoch and done % epoch_length == 0:
                    for scheduler in by_epoch:
                        scheduler.step()
                if done >= recorder.due or monotonic() >= recorder.late:
                    recorder.report()
                if stop_requested() or context.get_stop_requested():
                    self._schedule.request_stop()
                    break
        except BaseException:
            with contextlib.suppress(RuntimeError):  # a broken device must not hide the error itself
                recorder.report()
            raise
        finally:
            self._schedule.trained(done)

    def _schedulers(self, mode: LRScheduler.StepMode) -> list[LRScheduler]:
        return [scheduler for scheduler in self._context.lr_schedulers if scheduler.step_mode is mode]

    def _validate(self) -> None:
        self._recorder.report()
        for callback in self._callbacks.values():
            callback.on_validation_step_start()
        for callback in self._callbacks.values():
            callback.on_validation_start()
        for model in self._context.models:
            model.eval()
        with torch.no_grad():
            method = "evaluate_full_dataset" if self._full_evaluation else "evaluate_batch"
            found = self._evaluate_full() if self._full_evaluation else self._evaluate_batches()
        metrics = checked_validation(found, self._metric, f"{self._name}.{method}()")
        best = self._is_best(metrics)
        self._services.reporter.validation(self._schedule.progress.batches, metrics)
        self._schedule.validated(best=best)
        for callback in self._callbacks.values():
            callback.on_validation_step_end(dict(metrics))
        for callback in self._callbacks.values():
            callback.on_validation_end(dict(metrics))
        if self._services.stop_requested() or self._context.get_stop_requested():
            self._schedule.request_stop()

    def _is_best(self, metrics: dict[str, float]) -> bool:
        if self._metric is None or self._schedule.periods.policy != "best":
            return False
        best = self._services.reporter.best_metric()
        return is_best(metrics[self._metric], best, smaller_is_better=self._smaller_is_better)

    def _evaluate_full(self) -> dict[str, Any]:
        metrics = self._trial.evaluate_full_dataset(self._validation_loader)
        if not isinstance(metrics, dict):
            raise TrialDefinitionError(
                f"{self._name}.evaluate_full_dataset() returned {type(metrics).__name__}; return metrics by name, a "
                "dictionary."
            )
        return metrics

    def _evaluate_batches(self) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {}
        weights: list[int] = []
        for batch in islice(self._validation_loader, self._services.validation_batches):
            moved = self._context.to_device(batch)
            metrics = self._trial.evaluate_batch(moved)
            if not isinstance(metrics, dict):
                raise TrialDefinitionError(
                    f"{self._name}.evaluate_batch() returned {type(metrics).__name__}; return a dictionary of metrics."
                )
            if columns and metrics.keys() != columns.keys():
                raise TrialDefinitionError(
                    f"{self._name}.evaluate_batch() returned the metrics {', '.join(metrics) or 'none'} for one batch "
                    f"and {', '.join(columns)} for those before; return the same names for every batch."
                )
            for name, value in metrics.items():
                columns.setdefault(name, []).append(value)
            weights.append(data_length(moved))
        if not weights:
            raise TrialDefinitionError(
                f"{self._name}.build_validation_data_loader() returned a loader without batches; validation needs data."
            )
        reducers = self._trial.evaluation_reducer()
        return {name: self._reduced(name, values, weights, reducers) for name, values in columns.items()}

    def _reduced(self, name: str, values: list[Any], weights: list[int], reducers: Any) -> Any:
        reducer = reducers.get(name) if isinstance(reducers, dict) else reducers
        if not isinstance(reducer, Reducer):
            raise TrialDefinitionError(
                f"{self._name}.evaluation_reducer() has no det.pytorch.Reducer for the metric '{name}'; return one "
                "reducer for all metrics, or a dictionary with one for each."
            )
        numbers = [scalar(value) for value in values]
        if any(number is None for number in numbers):
            return values[numbers.index(None)]  # refused by the check that follows, with its name and shape
        return reducer.reduce([number for number in numbers if number is not None], weights)

    def _save(self) -> None:
        self._recorder.report()
        self._services.checkpoints.save(self._schedule.progress.batches, self._write, on_saved=self._saved)
        self._schedule.checkpointed()

    def _write(self, folder: Path) -> None:
        torch_state.save(folder, self._context, self._callbacks, self._schedule.snapshot())

    def _saved(self, uuid: str, folder: Path) -> None:
        for callback in self._callbacks.values():
            callback.on_checkpoint_end(str(folder))


def check_trial_class(trial_class: type[PyTorchTrial]) -> None:
    """Refuse a class that cannot be trained, before any of its code runs.

    Raises
    ------
    TrialDefinitionError
        If methods are missing, belong to the old interface, or both or none of the evaluation methods are there.
    """
    name = trial_class.__name__
    old = [method for method in _OLD_INTERFACE if callable(getattr(trial_class, method, None))]
    if old and inspect.isabstract(trial_class):
        raise TrialDefinitionError(
            f"{name} uses the interface of Determined 0.12.12 and earlier ({', '.join(f'{one}()' for one in old)}). "
            "Make models, optimizers and schedulers in __init__(self, context) and wrap them there, with wrap_model(), "
            "wrap_optimizer() and wrap_lr_scheduler() of the context; in train_batch(), call context.backward(loss) "
            "and context.step_optimizer(optimizer)."
        )
    missing = sorted(getattr(trial_class, "__abstractmethods__", ()))
    if missing:
        raise TrialDefinitionError(f"{name} lacks {', '.join(f'{one}()' for one in missing)}; define it in the class.")
    evaluations = [one for one in ("evaluate_batch", "evaluate_full_dataset") if _overrides(trial_class, one)]
    if len(evaluations) != 1:
        found = "both are there" if evaluations else "neither is there"
        raise TrialDefinitionError(
            f"{name} must define exactly one of evaluate_batch() and evaluate_full_dataset(); {found}."
        )


def check_wrapped(name: str, context: PyTorchTrialContext) -> None:
    """Refuse a trial whose models or optimizers would not be trained and saved.

    Raises
    ------
    TrialDefinitionError
        If nothing is wrapped, or an optimizer has parameters of no wrapped model.
    """
    if not context.models:
        raise TrialDefinitionError(f"{name}.__init__() wrapped no model: call self.context.wrap_model(model) there.")
    if not context.optimizers:
        raise TrialDefinitionError(
            f"{name}.__init__() wrapped no optimizer: call self.context.wrap_optimizer(optimizer) there."
        )
    known = {id(parameter) for model in context.models for parameter in model.parameters()}
    for optimizer in context.optimizers:
        if any(id(parameter) not in known for group in optimizer.param_groups for parameter in group["params"]):
            raise TrialDefinitionError(
                f"A {type(optimizer).__name__} of {name} has parameters that belong to no wrapped model, so they would "
                "not be in checkpoints: wrap that model with self.context.wrap_model() too."
            )


def _overrides(trial_class: type[PyTorchTrial], method: str) -> bool:
    return getattr(trial_class, method) is not getattr(PyTorchTrial, method)


def _checked_callbacks(name: str, callbacks: Any) -> dict[str, PyTorchCallback]:
    if not isinstance(callbacks, dict) or not all(isinstance(one, PyTorchCallback) for one in callbacks.values()):
        raise TrialDefinitionError(
            f"{name}.build_callbacks() must return a dictionary of det.pytorch.PyTorchCallback objects by name."
        )
    return callbacks
