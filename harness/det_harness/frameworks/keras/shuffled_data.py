"""The order of the next passes over the Datasets of a call: in checkpoints, and where its result is put in place."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from det_harness.trial import state_files
from det_native.keras import shuffles
from det_native.keras.data import Kind
from det_native.keras.native import FitCall
from det_native.runtime import active_host

_FILE = "shuffles"


def save(folder: Path, call: FitCall) -> None:
    """Write how many seeds the shuffles of the call's Datasets have drawn."""
    if tf.executing_eagerly() and (datasets := _datasets(call)):
        state_files.dump(folder, _FILE, {name: shuffles.places(dataset) for name, dataset in datasets.items()})


def restore(folder: Path, call: FitCall) -> None:
    """Have the shuffles go on as the training has left them; nothing happens if the checkpoint does not tell."""
    if not tf.executing_eagerly() or not (folder / f"{_FILE}.json").exists():
        return
    drawn = state_files.load(folder, _FILE)
    for name, dataset in _datasets(call).items():
        if len(drawn.get(name, ())) == len(shuffles.places(dataset)):
            # A notebook need not read its data once the training has ended.
            shuffles.put_places(dataset, drawn[name], fill=active_host() is not None)


def _datasets(call: FitCall) -> dict[str, tf.data.Dataset]:
    given = {"training": call.training, "validation": call.validation}
    return {name: data.x for name, data in given.items() if data is not None and data.kind is Kind.DATASET}
