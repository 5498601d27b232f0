"""What was chosen for the run of a notebook that this process belongs to, in place of what its cells say.

A notebook that is run as a whole (``det_native.notebook_runs``) has a folder, which the variable
``DET_NOTEBOOK_RUN`` of its kernel names: with where to train, on how many slots, whether to the end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from det_native.experimental.arguments import Place

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.notebook_runs.folders import RunFolder
    from det_native.schema.notebook_runs import RunRequest

Handle = TypeVar("Handle", bound="Experiment")
ConfigInput = Mapping[str, Any] | str | Path | None

VARIABLE = "DET_NOTEBOOK_RUN"


@dataclass(frozen=True)
class Choice:
    """Where and how the training calls of this process train.

    Attributes
    ----------
    folder : RunFolder or None
        Of the notebook's run; None in every other process.
    request : RunRequest or None
        What the run was begun with.
    """

    folder: RunFolder | None = None
    request: RunRequest | None = None

    def place(self, written: Place) -> Place:
        """Return where to run a call whose arguments say `written`."""
        if self.request is None:
            return written
        local = written.local if not self.request.place else self.request.place == "local"
        return Place(local=local, test=written.test or self.request.test, notice=written.notice)

    def configuration(self, config: ConfigInput) -> ConfigInput:
        """Return the configuration of a call, with the slots that were chosen.

        Raises
        ------
        ConfigurationError
            If it cannot be read.
        """
        if self.request is None or self.request.slots is None:
            return config
        from det_native.schema.reading import read

        raw = read(config).raw
        resources = raw.get("resources")
        if resources is None or isinstance(resources, dict):
            raw["resources"] = {**(resources or {}), "slots_per_trial": self.request.slots}
        return raw

    def note(self, experiment: Handle, master: str) -> Handle:
        """Keep that a training call has begun an experiment, and return its handle.

        Parameters
        ----------
        experiment : Experiment
        master : str
            Address of its master, empty for that of this machine.
        """
        if self.folder is not None and self.request is not None:
            place = "" if master == self.request.master else f" at {master or 'this machine'}"
            line = f"{experiment.id}{place}\n"
            with self.folder.experiments.open("a", encoding="utf-8") as file:
                file.write(line)
        return experiment


def choice() -> Choice:
    """Return what was chosen for this process."""
    return _choice(os.environ.get(VARIABLE, ""))


@cache
def _choice(folder: str) -> Choice:
    if not folder:
        return Choice()
    from det_native.notebook_runs.folders import RunFolder

    run = RunFolder(Path(folder))
    return Choice(run, run.request())
