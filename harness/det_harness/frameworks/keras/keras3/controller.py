"""Trains a model of Keras 3."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from det_harness.frameworks.keras import model_state
from det_harness.frameworks.keras.controller import KerasController
from det_harness.frameworks.keras.keras3.checkpoints import Keras3Checkpoints
from det_harness.frameworks.keras.keras3.data import Keras3ValidationFeed, make_feed
from det_harness.frameworks.keras.keras3.loop import Keras3Callbacks, NothingLeft
from det_harness.frameworks.keras.keras3.refusals import check_step, refuse
from det_harness.frameworks.keras.keras3.state import seed_by_rank
from det_harness.trial.services import Services
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

    def _evaluated(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call.original("evaluate")(
            **self.validation_feed.arguments(), callbacks=self._callbacks, return_dict=True
        )
        return found

    def _fit(self) -> None:
        try:
            super()._fit()
        except NothingLeft:
            self._callbacks.on_train_end()

    def _arguments_of_fit(self) -> dict[str, Any]:
        arguments, done = self.call.arguments, self.services.schedule.progress.batches
        return {
            "epochs": self.epochs(),
            "initial_epoch": int(arguments["initial_epoch"]) + self.lengths.place(done)[0],
            "steps_per_epoch": self.steps,
            "class_weight": arguments["class_weight"],
            "shuffle": False,  # the feed has shuffled
            **self.feed.arguments(done),
            **self.call.extra,
        }
