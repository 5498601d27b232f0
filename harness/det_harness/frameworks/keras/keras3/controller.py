"""Trains a model of Keras 3."""

from __future__ import annotations

from collections.abc import Container
from contextlib import ExitStack
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import model_state
from det_harness.frameworks.keras.controller import KerasController
from det_harness.frameworks.keras.keras3.checkpoints import Keras3Checkpoints
from det_harness.frameworks.keras.keras3.data import Keras3ValidationFeed, make_feed
from det_harness.frameworks.keras.keras3.loop import Keras3Callbacks, NothingLeft
from det_harness.frameworks.keras.keras3.refusals import check_step, refuse
from det_harness.frameworks.keras.keras3.state import seed_by_rank
from det_harness.trial.services import Services
from det_native.keras.caches.reading import damage_behind
from det_native.keras.generations import internals
from det_native.keras.native import FitCall


class Keras3Controller(KerasController):
    """See ``KerasController``: the loop is Keras's own here too, of whatever backend.

    Raises
    ------
    UnsupportedFeatureError
        If the configuration asks for the aggregation of gradients, or for several slots of another backend than
        TensorFlow.
    """

    def __init__(self, call: FitCall, services: Services) -> None:
        refuse(services.environment)
        super().__init__(call, services)
        check_step(call.model, self.steps)
        self.lengths.as_first = call.follows_data and self.steps == len(call.training.x)

    def validate_epoch(self, epoch: int) -> dict[str, Any]:
        """Return the metrics of the validation at the end of an epoch, none where none is due."""
        if self.validation_feed.x is None:
            return {}
        frequency = self._validation_frequency()
        due = epoch + 1 in frequency if isinstance(frequency, Container) else (epoch + 1) % frequency == 0
        return self._evaluate() if due else {}

    def _make_feed(self) -> Any:
        return make_feed(self.call, self.services.environment, self.lengths)

    def _follows_data(self) -> bool:
        # What is read ahead asks for the length of an epoch at another time than the training.
        return False

    def _make_validation_feed(self) -> Any:
        return Keras3ValidationFeed(self.call, self.services.environment, self.services.validation_batches)

    def _make_checkpoints(self) -> Keras3Checkpoints:
        return Keras3Checkpoints(self.services, self.call, self.feed, self.validation_feed, self._gradients)

    def _make_callbacks(self, restored: ExitStack) -> Keras3Callbacks:
        return Keras3Callbacks(self, restored)

    def _prepare_model(self) -> None:
        model_state.build(self.call, self.feed.first)
        seed_by_rank(self.call.model, self.services.environment.ranks.rank)
        self.ranks.broadcast_model(self.call.model)

    def _evaluate(self) -> dict[str, Any]:
        model = self.call.model
        running = model_state.metric_values(model)
        found = self.call.original("evaluate")(
            **self.validation_feed.arguments(), callbacks=self._callbacks, return_dict=True
        )
        self._put_back(running)
        return {f"val_{name}": value for name, value in found.items()}

    def _evaluate_apart(self, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        running = model_state.metric_values(model)
        try:
            return getattr(type(model), method).__get__(model)(*args, **kwargs)
        finally:
            self._put_back(running)

    def _put_back(self, running: list[Any]) -> None:
        """Give the running metrics their values: those of training and evaluation are the same objects."""
        model = self.call.model
        if len(running) == len(internals.metric_variables(model)):
            model_state.set_metric_values(model, running)
        else:  # the evaluation has made them
            model.reset_metrics()

    def _fit(self) -> None:
        arguments, done = self.call.arguments, self.services.schedule.progress.batches
        given: dict[str, Any] = {
            "epochs": self.epochs(),
            "initial_epoch": int(arguments["initial_epoch"]) + self.lengths.place(done)[0],
            "steps_per_epoch": self.steps,
            "class_weight": arguments["class_weight"],
            "shuffle": False,  # the feed has shuffled
            **self.feed.arguments(done),
            **self.call.extra,
        }
        try:
            with self._evaluations_apart():
                self.call.original("fit")(callbacks=self._callbacks, **given)
        except NothingLeft:
            self._callbacks.on_train_end()
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
