"""What a training has done with files is done in the notebook's folder once it has ended; a line says what."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.call import notebook_folder
from det_native.capture.log import current_log
from det_native.client import ended, rendering
from det_native.client.handles import Experiment
from det_native.errors import MasterError, NotFoundError
from det_native.home.placing import Placed, place_files
from det_native.proof.clock_texts import is_same_shape
from det_native.schema import rest
from det_native.schema.outputs import TEMPORARY_MODEL_DIR

_SHOWN = 4


@dataclass(eq=False)
class PendingFiles:
    """Files of a training that are not here yet.

    Attributes
    ----------
    experiment : Experiment
    folder : Path
        The working directory in which the call was made: there plain code would have written them.
    submitted : float
        When, in seconds since 1970: what has changed here since is not replaced.
    model_dir : str
        Of an Estimator, which reads by itself what is in there; empty if none is trained.
    lock : threading.Lock
        Held while files are written: a live view and a wait may see the end at the same time.
    """

    experiment: Experiment
    folder: Path
    submitted: float
    model_dir: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


_pending: list[PendingFiles] = []


def note_files(experiment: Experiment, *, submitted: float, model_dir: str = "") -> None:
    """Note that the files of a training come into the notebook's folder when somebody sees its end.

    Parameters
    ----------
    experiment : Experiment
    submitted : float
        When the call was made, in seconds since 1970.
    model_dir : str
        Of an Estimator that is trained.
    """
    _pending.append(PendingFiles(experiment, _folder(), submitted, os.path.abspath(model_dir) if model_dir else ""))
    if _bring_at_end not in ended.listeners:
        ended.listeners.append(_bring_at_end)


def bring_files(experiment: Experiment) -> None:
    """Do in the notebook's folder what an ended training has done with files; nothing the second time.

    Of a search it is what the best trial did.

    Raises
    ------
    MasterError
        If the master does not answer: the files can come later.
    """
    files = next((files for files in _pending if _is_same(files.experiment, experiment)), None)
    if files is None:
        return
    with files.lock:
        if files not in _pending:  # brought by another thread meanwhile
            return
        try:
            artifacts = experiment.source.artifacts(experiment.best_trial.id)
        except NotFoundError:  # it was deleted, or has ended before its first trial began
            artifacts = []
        places = [(files.folder, "", artifacts)]
        if files.model_dir:
            below = _prefix_of_model_dir(files, artifacts)
            others = [artifact for artifact in artifacts if not artifact.path.startswith(below)]
            own = [artifact for artifact in artifacts if artifact.path.startswith(below)]
            places = [(files.folder, "", others), (Path(files.model_dir), below, own)]
        several = [
            place_files(
                experiment.source,
                artifacts,
                folder,
                submitted=files.submitted,
                title=f"experiment {experiment.id}",
                below=below,
            )
            for folder, below, artifacts in places
        ]
        _pending.remove(files)
    for placed in several:
        _say(placed, files)


def _bring_at_end(experiment: Experiment) -> None:
    try:
        if any(_is_same(files.experiment, experiment) for files in _pending) and experiment.detail().state.terminal:
            bring_files(experiment)
    except MasterError:  # experiment.wait() asks again
        return


def _prefix_of_model_dir(files: PendingFiles, artifacts: Sequence[rest.Artifact]) -> str:
    """Return how the paths of files begin that the Estimator wrote; a worker may have named its folder by a clock."""
    here = os.path.relpath(files.model_dir, files.folder)
    if here.startswith(os.pardir):
        return TEMPORARY_MODEL_DIR + "/"
    for artifact in artifacts:
        there = "/".join(artifact.path.split("/")[: here.count("/") + 1])
        if is_same_shape(there, here):
            return there + "/"
    return here + "/"


def _is_same(experiment: Experiment, other: Experiment) -> bool:
    return experiment.id == other.id and experiment.source.url == other.source.url


def _folder() -> Path:
    """Return the folder for which the worker's working directory stands: there the program begins.

    Cells that go elsewhere by ``os.chdir`` run again there; ``%cd`` is left out of what runs there.
    """
    log = current_log()
    moved = log is not None and any("chdir(" in execution.source for execution in log.executions)
    return notebook_folder() if moved else Path.cwd()


def _say(placed: Placed, files: PendingFiles) -> None:
    number, sentences = files.experiment.id, []
    if placed.brought:
        sentences.append(f"Files of experiment {number} are here: {_names(placed.brought, files.folder)}.")
    if placed.deleted:
        sentences.append(f"Experiment {number} deleted {_names(placed.deleted, files.folder)}.")
    for theirs, path in list(placed.beside.items())[:_SHOWN]:
        sentences.append(
            f"{_name(theirs, files.folder)} has changed here since the submit and stays as it is; experiment "
            f"{number} wrote {_name(path, files.folder)}."
        )
    for name, reason in list(placed.stayed.items())[:_SHOWN]:
        old = " The file of that name here is from before." if (files.folder / name).is_file() else ""
        sentences.append(f"{name} of experiment {number} has not come: {reason.rstrip('.')}.{old}")
    more = max(0, len(placed.beside) - _SHOWN) + max(0, len(placed.stayed) - _SHOWN)
    if more:
        sentences.append(f"The same holds of {more} more.")
    if placed.stayed:
        sentences.append(f"det.experiment({number}).artifacts lists them.")
    if sentences:
        rendering.current().line_in_place().say(" ".join(sentences))


def _names(paths: Sequence[Path], folder: Path) -> str:
    names = [_name(path, folder) for path in paths]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _name(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)
