"""What the harness does with Keras."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import FrameworkHarness, controller_class_of, harness_of, with_notes
from det_harness.frameworks.keras.random_streams import TensorFlowStreams
from det_native.errors import CheckpointError, UnsupportedFeatureError
from det_native.frameworks import find_framework, get_framework
from det_native.past_history import MetricsByEpoch, PastHistory, with_stand_ins
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.frameworks.gpus import GpuSight
    from det_harness.frameworks.keras.controller import KerasController
    from det_harness.trial.services import Controller, Services


class KerasHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    streams = TensorFlowStreams()
    class_check = "det_harness.frameworks.keras.definition:check_trial_class"
    exports = "det_harness.frameworks.keras.exports"

    def warm_up(self, device: str) -> None:
        """Import TensorFlow, and what its first training step needs."""
        from det_harness.frameworks.keras.warm_up import warm_up

        warm_up(device)

    def gpu_sight(self) -> GpuSight | None:
        """Return what the backend of Keras sees; None if it is neither TensorFlow nor a framework of ours."""
        from det_harness.frameworks.gpus import tensorflow_sight
        from det_native.keras.generations import BACKEND

        if find_framework(BACKEND) is not None:
            return harness_of(BACKEND).gpu_sight()
        return tensorflow_sight() if get_framework(self.name).module == BACKEND else None

    def controller_class(self) -> Any:
        """Return what trains a TFKerasTrial in this process."""
        return controller_class()

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what trains a TFKerasTrial, or a captured call of ``model.fit()``."""
        made_by: Any = None
        if isinstance(payload, type):
            from det_harness.frameworks.keras.definition import call_to_train

            trial_class = payload
            payload = call_to_train(trial_class, services)
            made_by = controller_class_of(trial_class, self)  # it goes by what the trial's code has switched off
        controller: Controller = (made_by or controller_class())(payload, services)
        return controller

    def loadable_path(self, directory: Path, load: Callable[[], Any], made: Path) -> Path:
        """Return what ``keras.models.load_model()`` takes."""
        from det_harness.frameworks.keras.model_file import loadable

        return loadable(directory, load, made)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return the model of a trial class or of a captured call, as plain Keras, with a checkpoint's weights."""
        from det_native.keras import precision

        state = _state()
        if isinstance(payload, type):
            from det_harness.frameworks.keras.definition import call_to_load, loaded_without_data

            model = loaded_without_data(payload, environment, directory, state.load_built)
            if model is not None:
                return model
            payload = call_to_load(payload, environment)
        with precision.applied(payload.context.env):
            state.bring_back(payload, directory)
        payload.context.release_model(payload.model)
        return payload.model

    def build(self, call: Any) -> None:
        """Make the weights of a model that waits for its first batch; Keras 3 has drawn their seeds with the layers."""
        from det_native.keras.generations import NUMBER

        if NUMBER == 2:
            _state().build_as_plain(call)

    def load_into(self, call: Any, directory: Path) -> list[str]:
        """Put what a training has made of a call into its model, and into all else that it has changed."""
        if call.context.role in ("worker", "load"):  # an earlier call, which does not train here
            self.note_names(call)
        try:
            _state().load_into(call, directory)
        except CheckpointError as error:
            raise with_notes(error, self._bring_changes(call, directory)) from None
        sentences = self._bring_changes(call, directory)
        self.note_end(call, directory)
        return sentences

    def note_end(self, call: Any, directory: Path) -> None:
        """Have the process draw on from where a training has come to, as after Keras's own ``fit()``."""
        from det_harness.trial import after_training, rng

        ended = rng.read(after_training.weights_in(directory)) or {}
        seeded = rng.capture()  # what has no seed here draws on without
        rng.apply({name: state for name, state in ended.items() if name in seeded})

    def _bring_changes(self, call: Any, directory: Path) -> list[str]:
        """Put in place what has changed outside of the model's weights; return what stays as it was."""
        from det_harness.frameworks.keras import outside, shuffled_data

        shuffled_data.restore(directory, call)
        return outside.bring_home(directory, call)

    def note_names(self, call: Any) -> None:
        """Look at all that a call can reach in the program, before it trains."""
        from det_harness.frameworks.keras.outside import snapshot_of

        call.snapshot = snapshot_of(call)

    def past_result(self, call: Any, history: PastHistory, experiment: Any) -> Any:
        """Return Keras's ``History``, which the model has then, too."""
        past = with_stand_ins(call.history_kind, experiment)()
        past.set_params(dict(history.params))
        past.set_model(call.model)
        past.history, past.epoch = MetricsByEpoch(history.metrics), list(history.epoch)
        call.model.history = past
        return past

    def load_into_objects(self, target: Any, optimizer: Any, directory: Path, environment: TrialEnvironment) -> None:
        """Put what a training has made of a model into another one."""
        from det_harness.frameworks.keras.fitting import checked_target

        model = checked_target(target, optimizer)
        _state().load_into_model(model, directory, environment.trial_seed)


def controller_class() -> type[KerasController]:
    """Return what trains with the generation of Keras, and the mode of TensorFlow, that this process has."""
    from det_native.keras.generations import NUMBER

    if not sys.modules["tensorflow"].executing_eagerly():
        if NUMBER > 2:
            raise UnsupportedFeatureError(
                "Keras 3 does not train in graph mode: leave eager execution switched on, or use tf.keras 2."
            )
        from det_harness.frameworks.keras.graph.controller import GraphController

        return GraphController
    if NUMBER > 2:
        from det_harness.frameworks.keras.keras3.controller import Keras3Controller

        return Keras3Controller
    from det_harness.frameworks.keras.controller import KerasController

    return KerasController


def _state() -> Any:
    """Return the module that reads the checkpoints of the generation of Keras that this process has."""
    from det_native.keras.generations import NUMBER

    if NUMBER > 2:
        from det_harness.frameworks.keras.keras3 import state

        return state
    from det_harness.frameworks.keras import model_state

    return model_state
