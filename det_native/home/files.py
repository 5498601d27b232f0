"""Files of a training: noted at the submit, and written into the notebook's folder at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from det_native.capture.call import notebook_folder
from det_native.capture.log import current_log
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.files_home import registry
from det_native.files_home.bringing import bring, watch_ends
from det_native.files_home.registry import PendingFiles


def note_files(experiment: Experiment, payload: Any, *, search: bool, submitted: float, show: Show) -> None:
    """Note that the files of a training which is being submitted are to come home."""
    files = PendingFiles(experiment, _folder(), submitted, (), search, show)
    files.owners = tuple((owner, path) for owner, path in getattr(payload, "owners", ()) if path)
    registry.add(files)
    watch_ends()


def bring_files(experiment: Experiment) -> None:
    """Write the files of a training that has ended into its folder; does nothing the second time."""
    files = registry.of_experiment(experiment)
    if files is not None:
        bring(files)


def _folder() -> Path:
    """Return the folder for which the worker's working directory stands: there the program begins."""
    log = current_log()
    moved = log is not None and any("chdir(" in execution.source for execution in log.executions)
    return notebook_folder() if moved else Path.cwd()
