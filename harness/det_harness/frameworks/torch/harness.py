"""What the harness does with PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import FrameworkHarness, LoopController, controller_class_of, with_notes
from det_harness.frameworks.torch.random_streams import TorchStreams
from det_native.callsite import asking_frame
from det_native.errors import CheckpointError
from det_native.imports import load_optimizers
from det_native.process.streams import put_back
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.frameworks.gpus import GpuSight
    from det_harness.trial.services import Controller, Services

#: The streams of random numbers that a training moves as its plain loop does.
_STREAMS = ("random", "numpy", "torch")


class TorchHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    streams = TorchStreams()

    def warm_up(self, device: str) -> None:
        """Import PyTorch, and what its first optimizer imports."""
        import torch

        load_optimizers()
        # No backward pass here: it would start a thread for each GPU, and with that fix which GPUs this process sees.
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        for name in ("det_native.pytorch", "det_harness.frameworks.torch.controller"):
            import_module(name)

    def use_threads(self, threads: int) -> None:
        """Set the threads of a PyTorch that has been imported; another takes them from the environment."""
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)

    def gpu_sight(self) -> GpuSight:
        """Return what PyTorch sees."""
        import torch

        from det_harness.frameworks.gpus import GpuSight

        cuda, rocm = torch.version.cuda, getattr(torch.version, "hip", None)
        built_for = f"CUDA {cuda}" if cuda else f"ROCm {rocm}" if rocm else ""
        return GpuSight(torch.cuda.device_count() if torch.cuda.is_available() else 0, torch.__version__, built_for)

    def check(self, trial_class: type) -> None:
        """Refuse a trial class that cannot be trained."""
        from det_harness.frameworks.torch.checks import check_trial_class

        check_trial_class(trial_class)

    def controller_class(self) -> Any:
        """Return what trains a PyTorchTrial."""
        from det_harness.frameworks.torch.controller import PyTorchTrialController

        return PyTorchTrialController

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what trains a PyTorchTrial, or a captured call of ``context.fit()``."""
        from det_harness.frameworks.torch.controller import NativeTorchController

        if isinstance(payload, type):
            controller: Controller = controller_class_of(payload, self)(payload, services)
            return controller
        return NativeTorchController(payload, services)

    def loop(self, call: Any, services: Services) -> LoopController:
        """Return what trains in a loop over ``context.epochs()`` or ``context.train()``."""
        from det_native.pytorch.epochs_call import TorchEpochsCall

        if isinstance(call, TorchEpochsCall):
            from det_harness.frameworks.torch.epochs.controller import EpochsController

            return EpochsController(call, services)
        from det_harness.frameworks.torch.loop import TorchLoopController

        return TorchLoopController(call, services)

    def begin_loop(self, context: Any, frame: FrameType | None) -> None:
        """Take the snapshot of a loop that begins."""
        from det_harness.frameworks.torch.call_snapshot import begin_loop

        begin_loop(context, frame)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return an instance of a PyTorchTrial, or copies of the models of a captured call: one model, or a list."""
        from det_harness.frameworks.torch import loading

        if isinstance(payload, type):
            return loading.load_trial(payload, directory, environment)
        if payload.context.role == "load":  # the training may have added layers, say
            self._bring_changes(payload, directory)
        return loading.load_models(payload, directory)

    def at_home(self, loaded: Any) -> Any:
        """Return models as objects of the classes that this process has; a trial stays what it is."""
        import torch

        from det_harness.frameworks.torch.at_home import at_home

        several = isinstance(loaded, list)
        models = loaded if several else [loaded]
        if not all(isinstance(model, torch.nn.Module) for model in models):
            return loaded
        return at_home(models) if several else at_home(models)[0]

    def moved(self, loaded: Any, map_location: Any) -> Any:
        """Return a loaded model on the device that ``map_location`` of ``torch.load()`` says."""
        from det_harness.frameworks.torch.exports import moved

        return moved(loaded, map_location)

    @property
    def export_formats(self) -> tuple[str, ...]:
        """The formats that a loaded model can be exported in."""
        from det_harness.frameworks.torch.exports import FORMATS

        return FORMATS

    def export(self, loaded: Any, directory: Path, target: Path, format: str, options: Mapping[str, Any]) -> Path:
        """Write a loaded model in one of them; return the file."""
        from det_harness.frameworks.torch.exports import export

        return export(loaded, target, format, options)

    def load_into(self, call: Any, directory: Path) -> list[str]:
        """Put what a training has made of the objects of a captured call into them."""
        from det_harness.frameworks.torch.loading_into import load_into

        sentences = self._bring_changes(call, directory)  # first: the loop may have added layers
        try:
            load_into(call.context, directory)
        except CheckpointError as error:
            raise with_notes(error, sentences) from None
        self.note_end(call, directory)
        return sentences

    def _bring_changes(self, call: Any, directory: Path) -> list[str]:
        """Put in place what a training has changed besides weights; return what stays as it was."""
        from det_harness.trial import heap_file

        if call.context.role in ("worker", "load"):  # its program has run again; a loop has no batches there
            if call.kind == "train":
                self.begin_loop(call.context, asking_frame())
            else:
                self.note_names(call)
        return heap_file.bring_home(directory, call.context.snapshot)

    def note_names(self, call: Any) -> None:
        """Take the snapshot of a call of ``context.fit()``; a loop has taken its own when it began."""
        from det_harness.frameworks.torch.call_snapshot import begin_call

        if call.kind == "fit":
            begin_call(call)

    def note_end(self, call: Any, directory: Path) -> None:
        """Have the process draw on from where a training has come to, as after a plain loop."""
        from det_harness.trial import rng

        put_back(rng.read(directory) or {}, _STREAMS)

    def load_into_objects(self, target: Any, optimizer: Any, directory: Path, environment: TrialEnvironment) -> None:
        """Put what a training has made of modules and optimizers into other ones."""
        from det_harness.frameworks.torch.loading_into import load_into_objects

        load_into_objects(target, optimizer, directory)
