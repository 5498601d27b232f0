"""The folder of an estimator: where it lies, what of it goes into a checkpoint, and back."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator.model_files import link_or_copy
from det_harness.frameworks.estimator.saved_models import load_saved_model
from det_native.errors import CheckpointCorruptError, CheckpointError, TrialDefinitionError
from det_native.schema.outputs import TEMPORARY_MODEL_DIR

_MODEL = "model.ckpt"
_STATE = ("checkpoint", "graph.pbtxt")
EXPORTS = "export"


def place(named: str, ours: Path, work: Path, *, shared: bool) -> Path:
    """Have the folder that an estimator names be one of the trial's; return where the estimator's files lie.

    A folder that is not there yet, or is empty, becomes a link to `ours`; one of the working directory that has files
    goes there with them. All roles of a trial then have the same one, whatever they call it.

    Parameters
    ----------
    named : str
        The ``model_dir`` of the estimator; a temporary folder where the code names none.
    ours : Path
        Outlives the trial's runs.
    shared : bool
        Whether other trials run the same code.

    Raises
    ------
    TrialDefinitionError
        If it lies elsewhere, where other trials would use it too.
    """
    path = Path(os.path.abspath(named))
    ours.mkdir(parents=True, exist_ok=True)
    inside = work in path.parents or work.resolve() in path.resolve().parents
    temporary = Path(os.environ.get("TMPDIR", "/tmp")) in path.parents
    if path.is_symlink() and path.resolve() == ours.resolve():
        return ours
    if not inside and not temporary:
        if shared:
            raise TrialDefinitionError(
                f"The estimator's model_dir is {named}, which all trials of the experiment would write to: name a "
                "folder without a leading slash, or none."
            )
        path.mkdir(parents=True, exist_ok=True)
        return path
    if path.is_dir():
        for entry in path.iterdir():
            if not (ours / entry.name).exists():
                shutil.move(str(entry), ours / entry.name)
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(ours, target_is_directory=True)
    return ours


def path_of_user(named: str, work: Path) -> str:
    """Return by which path the user knows the folder, relative to the working directory; of a temporary one a name."""
    path = Path(os.path.abspath(named))
    return path.relative_to(work).as_posix() if work in path.parents else TEMPORARY_MODEL_DIR


def clear(folder: Path) -> None:
    """Remove the variables that an earlier attempt has left; event files stay."""
    for path in list(folder.glob(f"{_MODEL}-*")):
        path.unlink()
    with suppress(FileNotFoundError):
        (folder / "checkpoint").unlink()


def restore(checkpoint: Path, folder: Path) -> None:
    """Put the files of a checkpoint where the estimator looks for its last one."""
    if not (checkpoint / "checkpoint").is_file():
        raise CheckpointCorruptError(f"{checkpoint.name} is not a checkpoint of train_and_evaluate().")
    clear(folder)
    for path in checkpoint.iterdir():
        if path.name.startswith(f"{_MODEL}-") or path.name in _STATE:
            shutil.copyfile(path, folder / path.name)
    if (checkpoint / EXPORTS).is_dir():
        shutil.copytree(checkpoint / EXPORTS, folder / EXPORTS, dirs_exist_ok=True)


def keep(folder: Path, step: int, target: Path) -> None:
    """Put the variables of a step, and what was exported before, into a checkpoint."""
    for path in [*folder.glob(f"{_MODEL}-{step}.*"), folder / "graph.pbtxt"]:
        if path.is_file():
            link_or_copy(path, target / path.name)
    name = f"{_MODEL}-{step}"
    tf.compat.v1.train.update_checkpoint_state(str(target), name, all_model_checkpoint_paths=[name])
    if (folder / EXPORTS).is_dir():
        shutil.copytree(folder / EXPORTS, target / EXPORTS, copy_function=link_or_copy, ignore=_unfinished)


def latest(folder: Path) -> str | None:
    """Return the prefix of the last checkpoint that an estimator has saved."""
    found: str | None = tf.train.latest_checkpoint(str(folder))
    return found


def load_export(checkpoint: Path) -> Any:
    """Return the SavedModel that was exported last; of several exporters a dictionary, by name.

    Raises
    ------
    CheckpointError
        If nothing was exported.
    """
    found: dict[str, Any] = {}
    for exporter in sorted((checkpoint / EXPORTS).glob("*")):
        times = sorted((path for path in exporter.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        if times:
            found[exporter.name] = load_saved_model(times[-1])
    if not found:
        raise CheckpointError(
            "The checkpoint has no SavedModel: give the EvalSpec an exporter, or use the checkpoint's files "
            "(checkpoint.download()) as the model_dir of an estimator."
        )
    return next(iter(found.values())) if len(found) == 1 else found


def _unfinished(folder: str, names: list[str]) -> list[str]:
    """Leave out what an exporter is just writing."""
    return [name for name in names if name.startswith("temp-")]
