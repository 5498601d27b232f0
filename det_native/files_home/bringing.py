"""When a training has ended: its files come into the notebook's folder, and a line says which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from det_native.client import ended, rendering
from det_native.client.handles import Experiment
from det_native.errors import DetError, MasterError, NotFoundError
from det_native.files_home import registry
from det_native.files_home.placing import Placed, place_files
from det_native.files_home.registry import PendingFiles

_SHOWN = 4


def bring(files: PendingFiles) -> None:
    """Write the files of a training that has ended into its folder; does nothing the second time.

    Raises
    ------
    MasterError
        If the master does not answer: they can come later.
    """
    with files.lock:
        if files.ended:
            return
        experiment = files.experiment
        trials = experiment.source.trials(experiment.id)
        if files.search or len(trials) != 1:
            files.ended = True
            return
        title = f"experiment {experiment.id}"
        artifacts = experiment.source.artifacts(trials[0].id)
        names = files.names_here([artifact.path for artifact in artifacts])
        placed = place_files(
            experiment.source, artifacts, files.folder, submitted=files.submitted, title=title, names=names
        )
        files.stayed = {str(files.folder / path): why for path, why in placed.stayed.items()}
        files.arrived = frozenset(str(files.folder / names.get(artifact.path, artifact.path)) for artifact in artifacts)
        files.ended = True
    if not (files.stayed or files.owners or files.leaves_old_ones()):
        registry.end(files)
    say(placed, files)


def bring_ended() -> None:
    """Bring the files of all trainings that have ended meanwhile; a master that does not answer is left alone."""
    for files in registry.pending():
        if files.ended:
            continue
        try:
            if files.experiment.detail().state.terminal:
                bring(files)
        except NotFoundError:
            registry.end(files)
        except DetError:
            continue


def on_end(experiment: Experiment) -> None:
    """Bring the files of an experiment whose end somebody has seen."""
    files = registry.of_experiment(experiment)
    if files is None or files.ended:
        return
    try:
        if experiment.detail().state.terminal:
            bring(files)
    except MasterError:  # whoever reads one of them, or runs the next cell, asks again
        return


def say(placed: Placed, files: PendingFiles) -> None:
    """Tell what has come, what lies beside a file, and what has not come."""
    sentences = []
    if placed.brought:
        sentences.append(f"Files of experiment {files.experiment.id} are here: {_names(placed.brought, files.folder)}.")
    for theirs, path in placed.beside.items():
        sentences.append(
            f"{_name(theirs, files.folder)} has changed here since the submit and stays as it is; experiment "
            f"{files.experiment.id} wrote {_name(path, files.folder)}."
        )
    for name, why in list(placed.stayed.items())[:_SHOWN]:
        sentences.append(f"{name} of experiment {files.experiment.id} has not come: {why}.")
    if len(placed.stayed) > _SHOWN:
        sentences.append(f"{len(placed.stayed) - _SHOWN} more have not come either.")
    if placed.stayed:
        sentences.append(f"det.experiment({files.experiment.id}).artifacts has them all.")
    if sentences:
        rendering.current().line_in_place().say(" ".join(sentences))


def _names(paths: Sequence[Path], folder: Path) -> str:
    names = [_name(path, folder) for path in paths]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _name(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)


def watch_ends() -> None:
    """Have files come as soon as anybody sees the end of a training; does nothing the second time."""
    if on_end not in ended.listeners:
        ended.listeners.append(on_end)
