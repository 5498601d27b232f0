"""What the harness does with Keras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import FrameworkHarness
from det_harness.frameworks.keras.random_streams import TensorFlowStreams
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.trial.services import Controller, Services


class KerasHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    streams = TensorFlowStreams()

    def warm_up(self, device: str) -> None:
        """Import TensorFlow, and what its first training step needs."""
        from det_harness.frameworks.keras.warm_up import warm_up

        warm_up(device)

    def check(self, trial_class: type) -> None:
        """Refuse a trial class that cannot be trained."""
        from det_harness.frameworks.keras.definition import check_trial_class

        check_trial_class(trial_class)

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what trains a TFKerasTrial, or a captured call of ``model.fit()``."""
        if isinstance(payload, type):
            from det_harness.frameworks.keras.definition import call_to_train

            payload = call_to_train(payload, services)
        if sys.modules["tensorflow"].executing_eagerly():
            from det_harness.frameworks.keras.controller import KerasController

            return KerasController(payload, services)
        from det_harness.frameworks.keras.graph.controller import GraphController

        return GraphController(payload, services)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return the model of a trial class or of a captured call, with the weights of a checkpoint."""
        from det_harness.frameworks.keras import model_state

        if isinstance(payload, type):
            from det_harness.frameworks.keras.definition import call_to_load, loaded_without_data

            model = loaded_without_data(payload, environment, directory)
            if model is not None:
                return model
            payload = call_to_load(payload, environment)
        return model_state.load_weights(payload, directory)

    def bring_back(self, call: Any, directory: Path) -> None:
        """Put the weights of a checkpoint into the model of a captured call."""
        from det_harness.frameworks.keras import model_state

        model_state.bring_back(call, directory)
