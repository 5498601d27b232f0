"""What the harness does with code that reports by the Core API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import FrameworkHarness, untrainable
from det_native.core.command import CommandCall
from det_native.errors import UnsupportedFeatureError
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.program.calls import ProgramSource
    from det_harness.ranks.communicator import Communicator
    from det_harness.trial.services import Controller, Services
    from det_native.schema.job import Gang


class CoreHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""

    def joined(
        self, gang: Gang | None, config: Mapping[str, Any], folder: Path, source: ProgramSource | None
    ) -> AbstractContextManager[Communicator]:
        """Learn of the trial's other machines; what connects the processes of the code is the code's."""
        from det_harness.frameworks.core.machines import on_machines

        return on_machines(gang, config, folder)

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what runs a command."""
        if not isinstance(payload, CommandCall):
            raise untrainable(payload)
        from det_harness.frameworks.core.command import CommandController

        return CommandController(payload, services)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Refuse to load a checkpoint of a command."""
        raise UnsupportedFeatureError(
            "A checkpoint of a command is the files that its code has stored, and only that code can load them: "
            "checkpoint.download() returns their folder."
        )
