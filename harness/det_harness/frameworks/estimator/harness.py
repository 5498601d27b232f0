"""What the harness does with Estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import controller_class_of
from det_harness.frameworks.estimator.outside import EstimatorsHarness
from det_native.errors import ArgumentError
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.trial.services import Controller, Services


class EstimatorHarness(EstimatorsHarness):
    """See ``FrameworkHarness``."""

    class_check = "det_harness.frameworks.estimator.definition:check_trial_class"
    class_controller = "det_harness.frameworks.estimator.controller:EstimatorController"

    def warm_up(self, device: str) -> None:
        """Import TensorFlow. Nothing is built: V1 behaviour can only be chosen before that."""
        super().warm_up(device)
        import_module("det_native.estimator")

    def prepare_process(self) -> None:
        """Give TensorFlow the behaviour of its first version, for good."""
        import tensorflow as tf

        tf.compat.v1.disable_v2_behavior()

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what trains an EstimatorTrial, or a captured call of ``train_and_evaluate()``."""
        from det_harness.frameworks.estimator.controller import EstimatorController
        from det_harness.frameworks.estimator.definition import definition_of, definition_of_call

        if isinstance(payload, type):
            made_by = controller_class_of(payload, self)
            controller: Controller = made_by(definition_of(payload, services.environment), services)
            return controller
        self.note_names(payload)
        return EstimatorController(definition_of_call(payload), services)

    def loadable_path(self, directory: Path, load: Callable[[], Any], made: Path) -> Path:
        """Return the folder of the only SavedModel, for ``tf.saved_model.load()``, else that of all files."""
        from det_harness.frameworks.estimator.saved_models import saved_models

        found = saved_models(directory)
        return directory / next(iter(found.values())) if len(found) == 1 else directory

    def load_tagged(self, directory: Path, tags: list[str]) -> Any:
        """Return the SavedModel of a checkpoint by its tags."""
        from det_harness.frameworks.estimator.saved_models import load_saved_models

        return load_saved_models(directory, tags)

    @property
    def export_formats(self) -> tuple[str, ...]:
        """The formats that a loaded model can be exported in."""
        return ("savedmodel",)

    def export(self, loaded: Any, directory: Path, target: Path, format: str, options: Mapping[str, Any]) -> Path:
        """Copy the SavedModel of a checkpoint; of several all of them, by name."""
        from det_harness.frameworks.estimator.saved_models import copy_saved_models

        if options.get("example_inputs") is not None:
            raise ArgumentError("example_inputs= is for PyTorch; a SavedModel knows its inputs. Leave it out.")
        return copy_saved_models(directory, target)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return the SavedModel of a checkpoint; of several a dictionary, by name."""
        from det_harness.frameworks.estimator.saved_models import load_saved_models

        return load_saved_models(directory)
