"""The SavedModels of a checkpoint: exported beside the estimator's files, and loaded back."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_native.errors import CheckpointError

_INDEX = "saved_models.json"


def export(estimator: Any, serving: Mapping[str, Callable[..., Any]], prefix: str, folder: Path) -> None:
    """Export a SavedModel for each serving function into the folder of a checkpoint, as ``<name>/<time>/``."""
    found = {}
    for name, function in serving.items():
        made = estimator.export_saved_model(str(folder / name), function, checkpoint_path=prefix)
        found[name] = f"{name}/{Path(tf.compat.as_str(made)).name}"
    (folder / _INDEX).write_text(json.dumps(found), encoding="utf-8")


def saved_models(folder: Path) -> dict[str, str]:
    """Return the folders of the SavedModels in a checkpoint, relative to its own, by name."""
    path = folder / _INDEX
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def load_saved_model(folder: Path, tags: Sequence[str] | None = None) -> Any:
    """Return a SavedModel of an estimator, without TensorFlow's warnings.

    They tell of variables that a graph of TensorFlow 1 has (one line for each, and each time), which such a model needs
    for its signatures only.
    """
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return tf.saved_model.load(str(folder), tags=tags)
    finally:
        logger.setLevel(level)


def load_saved_models(folder: Path, tags: Sequence[str] | None = None) -> Any:
    """Return the SavedModel in a checkpoint; of several a dictionary, by name.

    Raises
    ------
    CheckpointError
        If it has none, or none with these tags.
    """
    found = _found(folder)
    try:
        loaded = {name: load_saved_model(folder / place, tags) for name, place in found.items()}
    except (RuntimeError, ValueError) as error:
        if tags is None:
            raise
        raise CheckpointError(f"The SavedModel cannot be loaded with the tags {list(tags)}: {error}.") from error
    return next(iter(loaded.values())) if len(loaded) == 1 else loaded


def copy_saved_models(folder: Path, target: Path) -> Path:
    """Copy the SavedModel of a checkpoint into a new folder; of several all of them, by name.

    Raises
    ------
    CheckpointError
        If it has none.
    """
    found = _found(folder)
    for name, place in found.items():
        shutil.copytree(folder / place, target if len(found) == 1 else target / name)
    return target


def _found(folder: Path) -> dict[str, str]:
    found = saved_models(folder)
    if not found:
        raise CheckpointError(
            "The checkpoint has no SavedModel: define build_serving_input_receiver_fns() in the trial class, so that "
            "each checkpoint has one, or use its files (checkpoint.download()) as the model_dir of an estimator."
        )
    return found
