"""What the harness does with code that reports by the Core API: loops of a program, and commands."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from det_harness.frameworks.base import FrameworkHarness, LoopController, RandomStreams, untrainable
from det_harness.trial import heap_file, rng
from det_native.callsite import asking_frame
from det_native.errors import UnsupportedFeatureError
from det_native.process.streams import put_back
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.program.calls import ProgramSource
    from det_harness.ranks.communicator import Communicator
    from det_harness.trial.services import Controller, Services
    from det_native.schema.job import Gang

#: The streams of random numbers that a training moves as its plain loop does, as far as they are loaded.
_STREAMS = ("random", "numpy", "torch", "tensorflow", "keras")


class CoreStreams(RandomStreams):
    """It has none of its own: those of all libraries go on where the program has come to."""

    travel: ClassVar[bool] = True


class CoreHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    streams = CoreStreams()

    def joined(
        self, gang: Gang | None, config: Mapping[str, Any], folder: Path, source: ProgramSource | None
    ) -> AbstractContextManager[Communicator]:
        """Learn of the trial's other machines; what connects the processes of the code is the code's."""
        from det_harness.frameworks.core.machines import on_machines

        return on_machines(gang, config, folder)

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what runs a command."""
        from det_native.core.command import CommandCall

        if not isinstance(payload, CommandCall):
            raise untrainable(payload)
        from det_harness.frameworks.core.command import CommandController

        return CommandController(payload, services)

    def loop(self, call: Any, services: Services) -> LoopController:
        """Return what trains in a loop of a notebook or script."""
        from det_harness.frameworks.core.loop import CoreLoopController

        return CoreLoopController(call, services)

    def begin_loop(self, context: Any, frame: FrameType | None) -> None:
        """Take the snapshot of a loop that begins: all that has changed since is in its checkpoints."""
        context.snapshot = heap_file.snapshot_of({}, context.env, frame=frame)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Refuse: only the code knows which of its files or objects is the model."""
        raise UnsupportedFeatureError(
            "checkpoint.load() makes models of PyTorch, Keras and Estimator. A checkpoint of the Core API is the files "
            "that its code has stored: checkpoint.download() returns their folder. What a loop has changed comes into "
            "the notebook's own objects at its end."
        )

    def load_into(self, call: Any, directory: Path) -> list[str]:
        """Put what a training has made of the program's objects in place."""
        if call.context.role in ("worker", "load"):  # its program has run again; a loop has no passes there
            self.begin_loop(call.context, asking_frame())
        sentences = heap_file.bring_home(directory, call.context.snapshot)
        self.note_end(call, directory)
        return sentences

    def note_end(self, call: Any, directory: Path) -> None:
        """Have the process draw on from where a training has come to, as after a plain loop."""
        put_back(rng.read(directory) or {}, _STREAMS)
