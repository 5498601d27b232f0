"""What the exporters of an EvalSpec export: kept with the checkpoints, and gone on with where a training continues."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from det_harness.frameworks.estimator import internals
from det_harness.trial import state_files
from det_native.schema.exports import FOLDER, INDEX, Entry, UnwritableError, entry_of, lies_in_folder, write

logger = logging.getLogger("det_native")

_STATE = "exporters"


class Exports:
    """The exports of one run."""

    def __init__(self, exporters: Sequence[Any], model_dir: Path) -> None:
        self._exporters = exporters
        self._model_dir = model_dir
        self._results = Results(exporters, model_dir)
        self._last: list[Entry] = [None] * len(exporters)

    def __bool__(self) -> bool:
        return bool(self._exporters)

    def export(self, estimator: Any, prefix: str, metrics: Mapping[str, Any], *, last: bool) -> None:
        """Have each exporter see an evaluation.

        Parameters
        ----------
        prefix : str
            The files of the variables that were evaluated.
        """
        for number, exporter in enumerate(self._exporters):
            path = self._model_dir / FOLDER / exporter.name
            made = exporter.export(estimator, str(path), prefix, dict(metrics), last)
            entry = self._results.entry(exporter, made)
            # What it has exported is still there where it finds a later state no better; of any other result, this is.
            if entry is not None or not lies_in_folder(self._last[number]):
                self._last[number] = entry

    def save(self, folder: Path) -> None:
        """Put the exports into the folder of a checkpoint."""
        if not self._exporters:
            return
        if (self._model_dir / FOLDER).is_dir():
            shutil.copytree(self._model_dir / FOLDER, folder / FOLDER)
        write(self._last, folder)
        best = [internals.best_of(each) for each in self._exporters]
        plain = [None if each is None else {name: float(value) for name, value in each.items()} for each in best]
        state_files.dump(folder, _STATE, plain)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        if not self._exporters or not (folder / INDEX).is_file():
            return
        if (folder / FOLDER).is_dir():
            shutil.copytree(folder / FOLDER, self._model_dir / FOLDER)
        self._last = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        for exporter, metrics in zip(self._exporters, state_files.load(folder, _STATE), strict=True):
            if metrics is not None:
                internals.set_best(exporter, str(self._model_dir), metrics)


class Results:
    """What exporters have returned, as a checkpoint keeps it.

    Parameters
    ----------
    model_dir : Path
        Of the estimator that they export.
    """

    def __init__(self, exporters: Sequence[Any], model_dir: Path) -> None:
        self._exporters = exporters
        self._model_dir = model_dir
        self._told: set[str] = set()

    def entries(self, made: Sequence[Any]) -> list[Entry]:
        """Return what is kept of what each of them has returned last."""
        return [self.entry(exporter, value) for exporter, value in zip(self._exporters, made, strict=True)]

    def entry(self, exporter: Any, made: Any) -> Entry:
        """Return what is kept of what one has returned; nothing of what cannot be kept, with a warning."""
        try:
            return entry_of(made, self._model_dir)
        except UnwritableError as error:
            if exporter.name not in self._told:
                self._told.add(exporter.name)
                logger.warning(
                    "The exporter %r has returned %s, which does not leave this process: train_and_evaluate() returns "
                    "None for it. Have it return a path, or plain values (texts, numbers, lists, dictionaries).",
                    exporter.name,
                    error,
                )
            return None
