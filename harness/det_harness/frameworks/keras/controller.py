"""Trains a Keras model: Keras keeps its own loop, and we ask the schedule from a list of callbacks.

One controller serves native calls of ``fit`` and trial classes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import model_state
from det_harness.frameworks.keras.checkpoints import KerasCheckpoints
from det_harness.frameworks.keras.comparison import Comparison
from det_harness.frameworks.keras.data import is_idle_last, make_feed
from det_harness.frameworks.keras.due import DueValidations
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.gradients import Gradients
from det_harness.frameworks.keras.hooks import name_callback
from det_harness.frameworks.keras.loop import TrainingCallbacks
from det_harness.frameworks.keras.outside import snapshot_of
from det_harness.frameworks.keras.randomness import RandomnessCheck
from det_harness.frameworks.keras.ranks import Ranks
from det_harness.frameworks.keras.shares import Share
from det_harness.frameworks.keras.training_step import TrainingStep
from det_harness.frameworks.keras.validation import ValidationFeed
from det_harness.frameworks.keras.wire import wire_of
from det_harness.trial import rng
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.lengths import epochs_in, in_whole_epochs
from det_harness.trial.metrics import scalar
from det_harness.trial.services import Outcome, Services
from det_native.keras import old_arguments, precision
from det_native.keras.caches.reading import damage_behind
from det_native.keras.context import Interception
from det_native.keras.data import Kind
from det_native.keras.generations import internals
from det_native.keras.native import FitCall
from det_native.tensorboard.place import writing_to


class KerasController(TrainingPort):
    """Runs one trial of a captured call of ``fit``: Keras's loop has the batches, `driver` what is due between them."""

    validated_by = "the validation of model.fit()"

    def __init__(self, call: FitCall, services: Services) -> None:
        self.call = call
        self.services = services
        call.context.use_environment(services.environment)
        if call.model.built and tf.executing_eagerly():  # before anything reads the data; graphs get another optimizer
            self._look_at_program()
        call.check(services.environment)
        if call.validation is None:
            services.reporter.no_validation()
        warning = old_arguments.warning_of(getattr(call.model, "optimizer", None))
        if warning is not None and not services.users_process:  # there the cell has shown it
            services.reporter.warning(warning)
        self.ranks = ranks = Ranks(services.communicator)
        self.steps = ranks.most(call.steps_per_epoch(services.environment))
        schedule = services.schedule
        self._in_epochs = epochs_in(schedule.periods, services.environment)
        schedule.periods = in_whole_epochs(schedule.periods, services.environment, self.steps)
        self.lengths = EpochLengths(self.steps, follow=self._follows_data())
        self.feed = self._make_feed()
        self._randomness = RandomnessCheck()
        self.validation_feed = self._make_validation_feed()
        self.driver = Driver(services, self)
        self.comparison = Comparison(call, services)
        self._gradients = self._made_gradients()
        self.checkpoints = self._make_checkpoints()
        self.training_step: TrainingStep | None = None

    def run(self) -> Outcome:
        """Train to the end; return Keras's ``History`` as the result."""
        with precision.applied(self.services.environment):  # of what is made while it trains, too
            return self._run()

    def _run(self) -> Outcome:
        call = self.call
        self._prepare_model()
        self._look_at_program()
        with ExitStack() as restored, writing_to(self.services.tensorboard):
            self.checkpoints.open(restored.enter_context(self.services.checkpoints.restore()))
            self.lengths_changed()
            self._prepare_step()
            self._callbacks = callbacks = self._make_callbacks(restored)
            try:
                self._fit()
            except BaseException as error:
                name_callback(error)
                callbacks.broken_off()
                raise
            finally:
                callbacks.leave_model()
                if self.training_step is not None:
                    self.training_step.remove()
                self._close()
        callbacks.finish()
        return self.driver.finish(call.model.history)

    def _look_at_program(self) -> None:
        """Note what the call can reach, once: a local one may be trained several times."""
        if self.call.snapshot is None:
            self.call.snapshot = snapshot_of(self.call)

    def epochs(self) -> int:
        """Return the number of the last epoch, counted as Keras's ``epochs`` does."""
        initial = int(self.call.arguments["initial_epoch"])
        return initial + self.lengths.place(self.services.schedule.periods.length - 1)[0] + 1

    def epochs_of_fit(self) -> int:
        """Return when Keras ends at the latest: a length in batches may be more epochs, where data become shorter."""
        if not self.lengths.follow or "length" in self._in_epochs:
            return self.epochs()
        return int(self.call.arguments["initial_epoch"]) + self.services.schedule.periods.length

    def lengths_changed(self) -> None:
        """Make the periods that are given in epochs those of epochs as long as they are now."""
        schedule, lengths = self.services.schedule, self.lengths
        if not lengths.follow:
            return
        progress = schedule.progress
        last = {"validation_period": progress.last_validated, "checkpoint_period": progress.last_checkpointed}
        changed: dict[str, Any] = {}
        for field, epochs in self._in_epochs.items():
            since = max(last.get(field, 0), 0)
            changed[field] = max(lengths.after(since, epochs) - since, 1)
        schedule.periods = replace(schedule.periods, **changed)

    def verbosity(self) -> int:
        """Return what to print: as asked for in the user's process, a line per epoch on workers, on the first rank.

        Of a minimal loop nothing: Keras would count the batches of a whole epoch, of which one is trained.
        """
        if self.services.validation_batches is not None or self.services.communicator.rank:
            return 0
        asked = self.call.arguments["verbose"]
        asked = 1 if asked == "auto" else int(asked)
        return min(asked, 1) * 2 if self.call.context.role == "worker" else asked

    def validate_epoch(self, epoch: int) -> dict[str, Any]:
        """Return the metrics of the validation at the end of an epoch, none where none is due."""
        if self.validation_feed.x is None:
            return {}
        frequency = self._validation_frequency()
        due = epoch + 1 in frequency if isinstance(frequency, Container) else (epoch + 1) % frequency == 0
        return self._evaluate() if due else {}

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""
        return self.services.stop_requested() or self.call.context.get_stop_requested()

    @property
    def validates_own(self) -> bool:
        """Whether the data that this rank validates on are its own part."""
        return bool(self.validation_feed.counts)

    @property
    def averages(self) -> bool:
        """Whether training metrics are reported as means over the ranks."""
        return self.ranks.several and bool(self._optimizations.get("average_training_metrics"))

    # -- for the driver

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""
        self._callbacks.report()

    @contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Validate the model as it is, in the middle of an epoch or after it."""
        if self.validation_feed.x is not None:
            found = self._evaluate()
        elif self.services.schedule.progress.batches:  # the metrics of training stand in
            found = dict(self._callbacks.logs)
            found = self.ranks.merged(self.call.model, found) if self.ranks.several else found
        else:
            found = {}
        found = self.comparison.validated(found)
        self.comparison.check_within_epoch(found)
        yield found or None

    def save(self) -> None:
        """Take a checkpoint of the present state."""
        self._randomness.look(self.call.model)
        callbacks = self._callbacks
        metrics = self._validated_again() if callbacks.weights_changed() else None
        self.checkpoints.save(callbacks.callbacks, callbacks.logs, callbacks.hooks, metrics)

    def save_end(self, logs: dict[str, float]) -> None:
        """Save what the end of the training has made of the model, with its validation metrics; a collective call."""
        found = self._validated_again()
        # Keras has ended with its own validations: a later fit() would read the data of this one.
        vars(self.call.model).pop("_eval_data_handler", None)
        self.checkpoints.save_end(self._callbacks.callbacks, logs, found)

    def _validated_again(self) -> dict[str, float]:
        """Return the validation metrics of weights that callbacks have changed; none without data; collective.

        A generator is not read any further: Keras would not do it either.
        """
        validation = self.call.validation
        if validation is None or validation.kind is Kind.GENERATOR or self.validation_feed.x is None:
            return {}
        feed, callbacks = self.validation_feed, self._callbacks
        with feed.preserved(), self.ranks.first_weights(self.call.model), callbacks.without_users(), rng.preserved():
            found = self._evaluate()
        numbers = {name: scalar(value) for name, value in found.items()}
        return {name: number for name, number in numbers.items() if number is not None}

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self.services.checkpoints.wait()

    # -- what a model of graphs does in another way

    def _make_feed(self) -> Any:
        return make_feed(self.call, self.services.environment, self.lengths)

    def _follows_data(self) -> bool:
        """Return whether epochs are as long as the data say when they begin."""
        if not self.call.follows_data or self.services.validation_batches is not None:
            return False
        return self.steps == self.ranks.most(Share.of(self.services.environment).batches(len(self.call.training.x)))

    def _make_validation_feed(self) -> Any:
        return ValidationFeed(self.call, self.services.environment, self.services.validation_batches)

    def _make_checkpoints(self) -> KerasCheckpoints:
        return KerasCheckpoints(self.services, self.call, self.feed, self.validation_feed, self._gradients)

    def _make_callbacks(self, restored: ExitStack) -> TrainingCallbacks:
        return TrainingCallbacks(self, restored)

    def _prepare_model(self) -> None:
        environment = self.services.environment
        model_state.build(self.call, self.feed.first)
        as_in_keras = self.call.as_in_keras and not self.ranks.several
        model_state.seed_random_layers(
            self.call.model, environment.trial_seed, environment.ranks.rank, as_in_keras=as_in_keras
        )
        self.ranks.broadcast_model(self.call.model)

    def _evaluate(self) -> dict[str, Any]:
        """Validate the model; the running metrics of training are kept."""
        with _metrics_kept(self.call.model):
            found = self._evaluated()
        return {f"val_{name}": value for name, value in found.items()}

    def _evaluated(self) -> dict[str, Any]:
        self._expect_look()
        found: dict[str, Any] = self.call.original("evaluate")(
            **self.validation_feed.arguments(),
            callbacks=self._callbacks,
            return_dict=True,
            _use_cached_eval_dataset=not self.validation_feed.read_apart,
        )
        self._expect_look()
        return found

    def _expect_look(self) -> None:
        """Tell the validation data if Keras has no pipeline of them: it keeps that of its first own validation."""
        if self.validation_feed.read_apart or getattr(self.call.model, "_eval_data_handler", None) is None:
            self.validation_feed.expect_look()

    @property
    def _optimizations(self) -> dict[str, Any]:
        return self.call.context.env.config.get("optimizations") or {}

    def _made_gradients(self) -> Gradients:
        said = self._optimizations
        return Gradients(
            wire_of(self.services.communicator, compress=bool(said.get("gradient_compression"))),
            frequency=int(said.get("aggregation_frequency", 1)),
            average=bool(said.get("average_aggregated_gradients", True)),
        )

    def _prepare_step(self) -> None:
        """Stand before the training step of the model, where that is needed."""
        if not self.ranks.several and self._gradients.frequency == 1:
            return
        environment = self.services.environment
        self.training_step = TrainingStep(
            self.call.model,
            self._gradients,
            batch_size=self.call.per_slot_batch_size(environment),
            steps=self.steps,
            done=self.services.schedule.progress.batches,
            idle_last=is_idle_last(self.call, environment, self.steps),
        )
        self.training_step.install()

    def _close(self) -> None:
        self.feed.close()
        self.validation_feed.close()

    def _fit(self) -> None:
        given = self._arguments_of_fit()
        try:
            with self._evaluations_apart():
                self.call.original("fit")(callbacks=self._callbacks, **given)
        except (tf.errors.OpError, StopIteration) as error:
            loss = self._gradients.wire.loss_behind(error)
            if loss is not None:
                raise loss from error
            for theirs in (self.feed.error, self.validation_feed.error):
                if theirs is not None and not isinstance(theirs, StopIteration):
                    raise theirs from error
            damage = damage_behind(error)
            if damage is not None:
                raise damage from error
            raise

    def _arguments_of_fit(self) -> dict[str, Any]:
        arguments = self.call.arguments
        return {
            **self.validation_feed.queue_arguments(),
            "epochs": self.epochs_of_fit(),
            "initial_epoch": arguments["initial_epoch"],
            "steps_per_epoch": None if self.lengths.follow else self.steps,
            "class_weight": arguments["class_weight"],
            "shuffle": False,  # the feed has shuffled
            "validation_data": self.validation_feed.x,
            "validation_steps": self.validation_feed.steps,
            "validation_freq": self._validation_frequency(),
            **self.feed.arguments(self.services.schedule.progress.batches),
            **self.call.extra,
        }

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
                self.validation_feed.expect_look()
                kwargs |= {**self.validation_feed.queue_arguments(), "_use_cached_eval_dataset": False}
            return evaluate(*args, **kwargs)
        with _metrics_kept(model):
            return evaluate(*args, **kwargs)


@contextmanager
def _metrics_kept(model: Any) -> Iterator[None]:
    """Give the running metrics their values back: those of training and evaluation are the same objects."""
    running = model_state.metric_values(model)
    try:
        yield
    finally:
        if len(running) == len(internals.metric_variables(model)):
            model_state.set_metric_values(model, running)
        else:  # the evaluation has made them
            model.reset_metrics()
