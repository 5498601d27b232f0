"""What the exporters of an EvalSpec export: kept with the checkpoints, and gone on with where a training continues."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator import internals
from det_harness.trial import state_files

_FOLDER, _STATE = "export", "exporters"
#: Which exports are the last, by exporter; ``det_native.experimental.local.native_estimator`` reads it.
_INDEX = "exports.json"


class Exports:
    """The exports of one run.

    Parameters
    ----------
    exporters : sequence of tf.estimator.Exporter
    model_dir : Path
    """

    def __init__(self, exporters: Sequence[Any], model_dir: Path) -> None:
        self._exporters = exporters
        self._model_dir = model_dir
        self._last: list[str | None] = [None] * len(exporters)

    def __bool__(self) -> bool:
        return bool(self._exporters)

    def export(self, estimator: Any, prefix: str, metrics: Mapping[str, Any], *, last: bool) -> None:
        """Have each exporter see an evaluation.

        Parameters
        ----------
        estimator : tf.estimator.Estimator
        prefix : str
            The files of the variables that were evaluated.
        metrics : mapping
        last : bool
            Whether the training ends with it.
        """
        for number, exporter in enumerate(self._exporters):
            path = self._model_dir / _FOLDER / exporter.name
            made = exporter.export(estimator, str(path), prefix, dict(metrics), last)
            if made is not None:
                self._last[number] = f"{_FOLDER}/{exporter.name}/{Path(tf.compat.as_str(made)).name}"

    def save(self, folder: Path) -> None:
        """Put the exports into the folder of a checkpoint."""
        if not self._exporters:
            return
        if (self._model_dir / _FOLDER).is_dir():
            shutil.copytree(self._model_dir / _FOLDER, folder / _FOLDER)
        (folder / _INDEX).write_text(json.dumps(self._last), encoding="utf-8")
        best = [internals.best_of(each) for each in self._exporters]
        plain = [None if each is None else {name: float(value) for name, value in each.items()} for each in best]
        state_files.dump(folder, _STATE, plain)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        if not self._exporters or not (folder / _INDEX).is_file():
            return
        if (folder / _FOLDER).is_dir():
            shutil.copytree(folder / _FOLDER, self._model_dir / _FOLDER)
        self._last = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        for exporter, metrics in zip(self._exporters, state_files.load(folder, _STATE), strict=True):
            if metrics is not None:
                internals.set_best(exporter, str(self._model_dir), metrics)
