"""What a training has done with files is done in the notebook's folder once it has ended; a line says what stays."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.call import notebook_folder
from det_native.capture.log import current_log
from det_native.client import rendering
from det_native.client.handles import Experiment
from det_native.errors import NotFoundError
from det_native.home.placing import Placed, place_files
from det_native.schema.outputs import TEMPORARY_MODEL_DIR

_SHOWN = 4


def _folder() -> Path:
    """Return the folder for which the worker's working directory stands: there the program begins.

    Cells that go elsewhere by ``os.chdir`` run again there; ``%cd`` is left out of what runs there.
    """
    log = current_log()
    moved = log is not None and any("chdir(" in execution.source for execution in log.executions)
    return notebook_folder() if moved else Path.cwd()


@dataclass(frozen=True)
class FilesOfCall:
    """Where the files of a training come to.

    Attributes
    ----------
    submitted : float
        When the call was made, in seconds since 1970: what has changed here since is not replaced.
    model_dir : str
        Of an Estimator, which reads by itself what is in there; empty if none is trained.
    folder : Path
        Where plain code would have written them.
    """

    submitted: float
    model_dir: str = ""
    folder: Path = field(default_factory=_folder)

    def bring(self, experiment: Experiment) -> None:
        """Do here what an ended training, of a search its best trial, has done with files.

        Raises
        ------
        MasterError
            If the master does not answer: the files can come later.
        """
        try:
            artifacts = experiment.source.artifacts(experiment.best_trial.id)
        except NotFoundError:  # it was deleted, or has ended before its first trial began
            return
        target, below = os.path.abspath(self.model_dir or self.folder), ""
        if self.model_dir:
            inside = os.path.relpath(target, self.folder)
            below = f"{TEMPORARY_MODEL_DIR if inside.startswith(os.pardir) else inside}/"
        for own, folder, prefix in ((True, Path(target), below), (False, self.folder, "")):
            chosen = [artifact for artifact in artifacts if artifact.path.startswith(below) is own]
            placed = place_files(
                experiment.source.artifact_content,
                chosen,
                folder,
                submitted=self.submitted,
                title=f"experiment {experiment.id}",
                below=prefix,
            )
            self._say(placed, experiment.id)

    def _say(self, placed: Placed, number: int | str) -> None:
        sentences = [
            f"{self._name(theirs)} has changed here since the submit and stays as it is; experiment {number} wrote "
            f"{self._name(path)}."
            for theirs, path in list(placed.beside.items())[:_SHOWN]
        ]
        for name, reason in list(placed.stayed.items())[:_SHOWN]:
            old = " The file of that name here is from before." if (self.folder / name).is_file() else ""
            sentences.append(f"{name} of experiment {number} has not come: {reason.rstrip('.')}.{old}")
        more = max(0, len(placed.beside) - _SHOWN) + max(0, len(placed.stayed) - _SHOWN)
        if more:
            sentences.append(f"The same holds of {more} more.")
        if placed.stayed:
            sentences.append(f"det.experiment({number}).artifacts lists them.")
        if sentences:
            rendering.current().line_in_place().say(" ".join(sentences))

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.folder)
