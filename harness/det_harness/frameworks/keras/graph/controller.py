"""Trains a Keras model where eager execution is switched off."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from det_harness.frameworks.keras.controller import KerasController
from det_harness.frameworks.keras.graph.checkpoints import GraphCheckpoints
from det_harness.frameworks.keras.graph.data import GraphValidationFeed, make_feed
from det_harness.frameworks.keras.graph.loop import GraphCallbacks, GraphLoop
from det_harness.frameworks.keras.graph.running_loss import RunningLoss
from det_harness.frameworks.keras.graph.state import GraphState
from det_harness.frameworks.keras.switches import refuse_in_graph_mode
from det_harness.trial.services import Services
from det_native.keras.native import FitCall


class GraphController(KerasController):
    """See ``KerasController``; the loop is ours here, since Keras's for graphs begins only at epochs.

    Raises
    ------
    UnsupportedFeatureError
        If the configuration asks for several slots, or for an optimization that graph mode has not.
    """

    def __init__(self, call: FitCall, services: Services) -> None:
        refuse_in_graph_mode(services.environment)
        self._loss = RunningLoss()
        self._state = GraphState(call.model)
        super().__init__(call, services)

    def _make_feed(self) -> Any:
        return make_feed(self.call, self.services.environment, self.lengths)

    def _follows_data(self) -> bool:
        return False  # as Keras, which asks for the length once there

    def _make_validation_feed(self) -> Any:
        return GraphValidationFeed(self.call, self.services.environment, self.services.validation_batches)

    def _make_checkpoints(self) -> GraphCheckpoints:
        of_all = (self.services, self.call, self.feed, self.validation_feed, self._gradients)
        return GraphCheckpoints(*of_all, state=self._state, loss=self._loss)

    def _make_callbacks(self, restored: ExitStack) -> GraphCallbacks:
        return GraphCallbacks(self, restored, self._loss)

    def _prepare_model(self) -> None:
        self._state.build(self.feed.first())

    def _evaluated(self) -> dict[str, Any]:
        model, callbacks = self.call.model, self._callbacks
        model.reset_metrics()
        loss, logs = RunningLoss(), dict[str, Any]()
        callbacks.on_test_begin()
        for step, batch in enumerate(self.validation_feed.batches()):
            x, y, weight = batch
            callbacks.on_test_batch_begin(step)
            logs = loss.logs(model, model.test_on_batch(x, y, weight, reset_metrics=False), batch)
            callbacks.on_test_batch_end(step, logs)
        callbacks.on_test_end(logs)
        return logs

    def _fit(self) -> None:
        assert isinstance(self._callbacks, GraphCallbacks)
        loop = GraphLoop(
            self.call.model,
            self._callbacks,
            self.feed.arguments(self.services.schedule.progress.batches)["x"],
            self.steps,
            self._loss,
            self.call.arguments["class_weight"],
            self.validate_epoch,
        )
        with self._evaluations_apart():
            loop.run(int(self.call.arguments["initial_epoch"]), self.epochs())
