"""Trains a Keras model: Keras keeps its own loop, and we ask the schedule from a list of callbacks.

One controller serves native calls of ``fit`` and trial classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import callback_state, handles, model_state
from det_harness.frameworks.keras.comparison import Comparison
from det_harness.frameworks.keras.data import make_feed
from det_harness.frameworks.keras.due import DueValidations
from det_harness.frameworks.keras.hooks import name_callback
from det_harness.frameworks.keras.loop import TrainingCallbacks
from det_harness.frameworks.keras.model_state import load_weights
from det_harness.frameworks.keras.randomness import RandomnessCheck
from det_harness.frameworks.keras.validation import ValidationFeed
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.services import Outcome, Services
from det_harness.trial.user_files import UserFiles
from det_native.keras.caches.reading import damage_behind
from det_native.keras.callbacks import TensorBoard
from det_native.keras.context import Interception
from det_native.keras.native import FitCall
from det_native.tensorboard.place import writing_to

__all__ = ["KerasController", "in_whole_epochs", "load_weights"]


class KerasController(TrainingPort):
    """Runs one trial of a captured call of ``fit``: Keras's loop has the batches, `driver` what is due between them.

    Parameters
    ----------
    call : FitCall
        The user's model, data, callbacks and arguments.
    services : Services
        Schedule, reports and checkpoints.
    """

    validated_by = "the validation of model.fit()"

    def __init__(self, call: FitCall, services: Services) -> None:
        self.call = call
        self.services = services
        call.context.use_environment(services.environment)
        call.check(services.environment)
        self.steps = call.steps_per_epoch(services.environment)
        schedule = services.schedule
        schedule.periods = in_whole_epochs(schedule.periods, services.environment, self.steps)
        self.feed = self._make_feed()
        self._randomness = RandomnessCheck()
        self.validation_feed = self._make_validation_feed()
        self.driver = Driver(services, self)
        self.comparison = Comparison(call, services)

    def run(self) -> Outcome:
        """Train to the end; return Keras's ``History`` as the result."""
        call, schedule = self.call, self.services.schedule
        self._prepare_model()
        self._files = self._files_to_keep()
        with ExitStack() as restored, writing_to(self.services.tensorboard):
            folder = restored.enter_context(self.services.checkpoints.restore())
            if folder is not None:
                schedule.restore(model_state.progress_of(folder))
                self.validation_feed.restore(folder)
            self._restore_files(folder)
            self._callbacks = callbacks = self._make_callbacks(folder, restored)
            try:
                self._fit()
            except BaseException as error:
                name_callback(error)
                callbacks.broken_off()
                raise
            finally:
                callbacks.leave_model()
                self._close()
        callbacks.finish()
        return self.driver.finish(call.model.history)

    def epochs(self) -> int:
        """Return the number of the last epoch, counted as Keras's ``epochs`` does."""
        initial = int(self.call.arguments["initial_epoch"])
        return initial + math.ceil(self.services.schedule.periods.length / self.steps)

    def verbosity(self) -> int:
        """Return what to print: as asked for in the user's process, a line per epoch on workers.

        Of a minimal loop nothing: Keras would count the batches of a whole epoch, of which one is trained.
        """
        if self.services.validation_batches is not None:
            return 0
        asked = self.call.arguments["verbose"]
        asked = 1 if asked == "auto" else int(asked)
        return min(asked, 1) * 2 if self.call.context.role == "worker" else asked

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""
        return self.services.stop_requested() or self.call.context.get_stop_requested()

    # -- for the driver

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""
        self._callbacks.report()

    @contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Validate the model as it is, in the middle of an epoch or after it."""
        if self.validation_feed.x is not None:
            found = self._evaluate()
        else:  # the metrics of training stand in
            found = dict(self._callbacks.logs) if self.services.schedule.progress.batches else {}
        self.comparison.validated(found)
        yield found or None

    def save(self) -> None:
        """Take a checkpoint of the present state."""
        schedule, hooks = self.services.schedule, self._callbacks.hooks

        def write(folder: Path) -> None:
            self._save_model(folder, schedule.snapshot())
            callback_state.save(folder, self.call.model, self._callbacks.callbacks)
            self.feed.save(folder)
            self.validation_feed.save(folder)
            for files in self._files:
                files.save(folder)

        self._randomness.look(self.call.model)
        on_saved = hooks.checkpoint_written if hooks.wants_checkpoints else None
        self.services.checkpoints.save(schedule.progress.batches, write, on_saved=on_saved)

    def restore(self, folder: Path) -> None:
        """Bring model, files and callbacks to where a checkpoint was taken; ``on_train_begin`` has been called."""
        self._restore_model(folder)
        files = self.services.files
        if files is not None:
            handles.truncate_pending(files.restored())
            files.restore(folder)
        callback_state.restore(folder, self.call.model, self._callbacks.callbacks)

    def _files_to_keep(self) -> list[UserFiles]:
        """Return the folders whose files go into the checkpoints."""
        files, events = self.services.files, self.services.tensorboard
        if files is None:
            return []
        if events is None or not any(isinstance(each, TensorBoard) for each in self.call.callbacks()):
            return [files]
        return [files, files.of_trial(events, "tensorboard")]

    def _restore_files(self, folder: Path | None) -> None:
        """Let callbacks that look for their files find them."""
        for files in self._files:
            if folder is not None:
                files.restore(folder)
            files.begin()

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self.services.checkpoints.wait()

    # -- what a model of graphs does in another way

    def _make_feed(self) -> Any:
        return make_feed(self.call, self.services.environment, self.steps)

    def _make_validation_feed(self) -> Any:
        return ValidationFeed(self.call, self.services.environment, self.services.validation_batches)

    def _make_callbacks(self, folder: Path | None, restored: ExitStack) -> TrainingCallbacks:
        return TrainingCallbacks(self, folder, restored)

    def _prepare_model(self) -> None:
        model_state.build(self.call, self.feed.first)
        model_state.seed_random_layers(self.call.model, self.services.environment.trial_seed)

    def _save_model(self, folder: Path, progress: dict[str, Any]) -> None:
        model_state.save(folder, self.call, progress, self._callbacks.logs)

    def _restore_model(self, folder: Path) -> None:
        model_state.restore(folder, self.call, self.feed.first)

    def _evaluate(self) -> dict[str, Any]:
        running = model_state.metric_values(self.call.model)
        found = self.call.original("evaluate")(
            **self.validation_feed.arguments(),
            callbacks=self._callbacks,
            return_dict=True,
            _use_cached_eval_dataset=not self.validation_feed.read_apart,
        )
        # The metrics of training are the same objects.
        model_state.set_metric_values(self.call.model, running)
        return {f"val_{name}": value for name, value in found.items()}

    def _close(self) -> None:
        self.feed.close()
        self.validation_feed.close()

    def _fit(self) -> None:
        arguments = self.call.arguments
        given: dict[str, Any] = {
            **self.validation_feed.queue_arguments(),
            "epochs": self.epochs(),
            "initial_epoch": arguments["initial_epoch"],
            "steps_per_epoch": self.steps,
            "class_weight": arguments["class_weight"],
            "shuffle": False,  # the feed has shuffled
            "validation_data": self.validation_feed.x,
            "validation_steps": self.validation_feed.steps,
            "validation_freq": self._validation_frequency(),
            **self.feed.arguments(self.services.schedule.progress.batches),
            **self.call.extra,
        }
        try:
            with self._evaluations_apart():
                self.call.original("fit")(callbacks=self._callbacks, **given)
        except (tf.errors.OpError, StopIteration) as error:
            for theirs in (self.feed.error, self.validation_feed.error):
                if theirs is not None and not isinstance(theirs, StopIteration):
                    raise theirs from error
            damage = damage_behind(error)
            if damage is not None:
                raise damage from error
            raise

    def _validation_frequency(self) -> Any:
        frequency = self.call.arguments["validation_freq"]
        if isinstance(frequency, DueValidations):
            frequency.ask(self._validation_is_due)
        return frequency

    def _validation_is_due(self) -> bool:
        """Return whether the schedule wants a validation of what is done, at the end of an epoch."""
        return self.call.model.stop_training or self.services.schedule.validates_at(self._callbacks.done)

    @contextmanager
    def _evaluations_apart(self) -> Iterator[None]:
        """Let ``evaluate`` in callbacks leave the running metrics of the epoch as they are."""
        model, mine = self.call.model, vars(self.call.model)
        before = mine.get("evaluate")
        mine["evaluate"] = Interception(model, "evaluate", self._evaluate_apart)
        try:
            yield
        finally:
            del mine["evaluate"]
            if before is not None:
                mine["evaluate"] = before

    def _evaluate_apart(self, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        evaluate = getattr(type(model), method).__get__(model)
        if "_use_cached_eval_dataset" in kwargs:  # Keras's own validation, at the end of an epoch
            if self.validation_feed.read_apart:
                kwargs |= {**self.validation_feed.queue_arguments(), "_use_cached_eval_dataset": False}
            return evaluate(*args, **kwargs)
        running = model_state.metric_values(model)
        try:
            return evaluate(*args, **kwargs)
        finally:
            if len(running) == len(model_state.metric_values(model)):
                model_state.set_metric_values(model, running)
            else:  # the evaluation has made them
                model.reset_metrics()
