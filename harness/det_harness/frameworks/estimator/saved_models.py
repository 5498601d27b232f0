"""The SavedModels of a checkpoint: exported beside the estimator's files, and loaded back."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_native.errors import CheckpointError

_INDEX = "saved_models.json"


def export(estimator: Any, serving: Mapping[str, Callable[..., Any]], prefix: str, folder: Path) -> None:
    """Export a SavedModel for each serving function into the folder of a checkpoint, as ``<name>/<time>/``.

    Parameters
    ----------
    estimator : tf.estimator.Estimator
    serving : mapping
    prefix : str
        The files of the estimator's variables.
    folder : Path
    """
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


def load_saved_model(folder: Path) -> Any:
    """Return a SavedModel of an estimator, without TensorFlow's warnings.

    They tell of variables that a graph of TensorFlow 1 has (one line for each, and each time), which such a model needs
    for its signatures only.
    """
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return tf.saved_model.load(str(folder))
    finally:
        logger.setLevel(level)


def load_saved_models(folder: Path) -> Any:
    """Return the SavedModel in a checkpoint; of several a dictionary, by name.

    Raises
    ------
    CheckpointError
        If it has none.
    """
    found = saved_models(folder)
    if not found:
        raise CheckpointError(
            "The checkpoint has no SavedModel: define build_serving_input_receiver_fns() in the trial class, so that "
            "each checkpoint has one, or use its files (checkpoint.download()) as the model_dir of an estimator."
        )
    loaded = {name: load_saved_model(folder / place) for name, place in found.items()}
    return next(iter(loaded.values())) if len(loaded) == 1 else loaded
