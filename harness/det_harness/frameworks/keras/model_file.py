"""A file, or a folder, of a checkpoint from which Keras's own ``load_model()`` makes the trained model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.trial import after_training
from det_native.errors import CheckpointError
from det_native.keras.generations import NUMBER

_FILE, _SAVED_MODEL = "model.keras", "saved_model"


def loadable(directory: Path, load: Callable[[], Any], made: Path) -> Path:
    """Return what ``load_model()`` takes: of Keras 3 mostly a file of the checkpoint; else the model is made and saved.

    Parameters
    ----------
    load : callable
        Makes the trained model.
    made : Path
        An existing folder for what is saved; what an earlier call saved there is taken.

    Raises
    ------
    CheckpointError
        If Keras cannot save the model.
    """
    known = (after_training.weights_in(directory) / _FILE, made / _FILE, made / _SAVED_MODEL)
    for path in known:
        if path.exists():
            return path
    model = load()
    problem: Exception | None = None
    for name in (_FILE, _SAVED_MODEL) if NUMBER == 2 else (_FILE,):
        arriving = made / f"arriving-{name}"
        try:
            type(model).save(model, arriving)
            if NUMBER == 2 and name == _FILE:  # that may need the class of the model, a SavedModel does not
                tf.keras.models.load_model(arriving, compile=False)
        except Exception as error:  # noqa: BLE001 (a configuration of the user's may raise anything)
            problem = problem or error
            shutil.rmtree(arriving) if arriving.is_dir() else arriving.unlink(missing_ok=True)
        else:
            return arriving.rename(made / name)
    raise CheckpointError(
        f"Keras cannot save a model of the class {type(model).__name__} in a file: {problem}. Give the class a "
        "get_config(), or use checkpoint.load(), which runs your code."
    ) from problem
