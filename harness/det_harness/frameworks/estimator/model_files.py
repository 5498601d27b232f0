"""TensorFlow's own files of a training: its variables where they are needed in files, and its events."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator import internals
from det_harness.frameworks.estimator.ranks import Ranks

_MODEL, _GRAPH, _INDEX = "model.ckpt", "graph.pbtxt", "checkpoint"


class ModelFiles:
    """The folder that an estimator has as its ``model_dir``, this rank's own; the variables are those of the first.

    Attributes
    ----------
    written : int
        The batch whose variables are in the files; -1 before there are any.
    """

    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self.folder = folder
        self.written = -1
        self._ranks = ranks
        self._prefix = folder / _MODEL

    def restore(self, checkpoint: Path, batch: int) -> None:
        """Begin with the files of a checkpoint."""
        for path in checkpoint.iterdir():
            if path.name.startswith(f"{_MODEL}-") or path.name in (_INDEX, _GRAPH):
                shutil.copyfile(path, self.folder / path.name)
        self._prefix, self.written = self.folder / f"{_MODEL}-{batch}", batch

    def variables(self, session: Any, saver: Callable[[], Any], batch: int) -> str:
        """Return where the variables after `batch` batches lie, which are written first if they do not.

        A collective call.
        """
        if self.written != batch:
            self._prefix = self.folder / f"{_MODEL}-{batch}"
            if self._ranks.first:
                if not (self.folder / _GRAPH).exists():
                    tf.io.write_graph(session.graph, str(self.folder), _GRAPH)
                saver().save(session, str(self.folder / _MODEL), global_step=batch)
            self._prefix = self._ranks.files_of_first(self._prefix)
            self.written = batch
        return str(self._prefix)

    def save(self, folder: Path) -> None:
        """Put them into the folder of a checkpoint."""
        prefix = self._prefix
        for path in [*prefix.parent.glob(f"{prefix.name}.*"), self.folder / _GRAPH]:
            link_or_copy(path, folder / path.name)
        tf.compat.v1.train.update_checkpoint_state(str(folder), prefix.name)

    def copy_to(self, folder: Path) -> None:
        """Have all files in another folder, too, and `folder` name the last variables."""
        shutil.copytree(self.folder, folder, copy_function=link_or_copy, dirs_exist_ok=True)
        if self.written >= 0:
            tf.compat.v1.train.update_checkpoint_state(str(folder), f"{_MODEL}-{self.written}")


class Events:
    """The event files of an estimator: they go to those of the trial, and do not end with the run.

    Parameters
    ----------
    model_dir : Path
        Where Estimator would write them.
    """

    def __init__(self, folder: Path, model_dir: Path) -> None:
        self._folder = folder
        self._model_dir = model_dir
        self._writers: list[Any] = []

    def open(self, evaluation: str | None) -> None:
        """Have Estimator write them there from now on, those of an `evaluation` of this name, too."""
        for part in ("", f"eval_{evaluation}" if evaluation else "eval"):
            with tf.Graph().as_default():  # there are none of eager code
                self._writers.append(tf.compat.v1.summary.FileWriter(str(self._folder / part)))
            internals.write_events_to(str(self._model_dir / part), self._writers[-1])

    def add_graph(self, graph: Any) -> None:
        """Write the graph of the training."""
        self._writers[0].add_graph(graph)

    def flush(self) -> None:
        """Write out what is buffered."""
        for writer in self._writers:
            writer.flush()


def link_or_copy(source: str | Path, target: str | Path) -> str:
    """Have a file in a second place, instead of what is there."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # on another disk, or a file system without links
        shutil.copyfile(source, target)
    return str(target)
