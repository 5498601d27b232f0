"""What the front end asks of local runs, read from their folders, in the shapes of the master's REST interface.

Experiments are called ``local-<n>`` here, also where trials and checkpoints name theirs, and say more in ``local``::

    {"running": bool, "in_kernel": bool, "kernel_id": str | null, "can_stop": bool}

Nothing is read but what lies in ``DET_HOME/local``, by numbers, and of checkpoints the files that they list.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from det_native.local.curves import GrowingColumns
from pydantic import BaseModel

from det_native.errors import NotFoundError
from det_native.local.artifacts import written_here
from det_native.local.log import read_log
from det_native.local.store import PREFIX, LocalStore
from det_native.schema import rest
from det_native.schema.drawn import drawn
from det_native.schema.outputs import MIME_TYPES
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import CheckpointState, MetricKind
from det_native.schema.system_samples import thin_by_rank

_KEPT_FILES = 100


def experiments() -> list[dict[str, Any]]:
    """Return the runs that are kept, newest first; one that cannot be read is left out."""
    found = []
    for store in LocalStore.all():
        try:
            found.append(experiment(store))
        except (OSError, ValueError):
            continue
    return found


def store_of(number: str) -> LocalStore:
    """Return the store of a run.

    Raises
    ------
    NotFoundError
        If there is none of this number.
    """
    return LocalStore.find(f"{PREFIX}{number}")


def experiment(store: LocalStore, *, report: bool = False) -> dict[str, Any]:
    """Return an experiment."""
    detail = store.experiment()
    runner = store.runner()
    running = not detail.state.terminal
    local = {
        "running": running,
        "in_kernel": runner is not None and runner.in_kernel,
        "kernel_id": runner.kernel_id if runner is not None else None,
        "can_stop": running and runner is not None and runner.interruptible,
    }
    return _json(detail, *(() if report else ("report",))) | {"id": store.id, "local": local}


def trials(store: LocalStore) -> list[dict[str, Any]]:
    """Return the trials, oldest first."""
    return [_of(store, trial) for trial in store.trials()]


def trial(store: LocalStore, number: int) -> dict[str, Any]:
    """Return a trial.

    Raises
    ------
    NotFoundError
        If there is none of this number.
    """
    for found in store.trials():
        if found.id == number:
            return _of(store, found)
    raise NotFoundError(f"Experiment {store.id} has no trial {number}.")


def checkpoints(store: LocalStore, number: int | None = None) -> list[dict[str, Any]]:
    """Return the checkpoints of all trials, or of one, by trial and batch."""
    numbers = [found.id for found in store.trials()] if number is None else [number]
    return [_of(store, each) for trial_id in numbers for each in store.checkpoints(trial_id)]


def rows(store: LocalStore, number: int, kind: MetricKind, after_batch: int, limit: int) -> list[dict[str, Any]]:
    """Return rows of metrics after a batch, in order."""
    found = (row for row in store.rows(number, kind) if row.batch > after_batch)
    return [_json(row) for row in islice(found, limit)]


def samples(store: LocalStore, number: int, points: int) -> list[dict[str, Any]]:
    """Return what the processes of a trial used, by time; of each about so many samples."""
    return [_json(sample) for sample in thin_by_rank(store.samples(number), points)]


def media(store: LocalStore, number: int, after: int, limit: int) -> list[dict[str, Any]]:
    """Return what a trial has logged besides numbers, with an id above `after`, in order."""
    return [_json(medium) for medium in store.media(number) if medium.id > after][:limit]


def artifacts(store: LocalStore, number: int) -> list[dict[str, Any]]:
    """Return the files that a trial has written; they lie where its code put them, as their notes say."""
    written = written_here(store.folder / "trials" / str(number))
    return [_json(each.artifact) | {"sha256": None, "note": f"It is {each.location}."} for each in written]


def content_of_medium(store: LocalStore, number: int, medium_id: int) -> tuple[bytes, str]:
    """Return what was logged, and its mime type.

    Raises
    ------
    NotFoundError
        If it is not there.
    """
    for medium in store.media(number):
        if medium.id == medium_id:
            return store.medium_content(medium), MIME_TYPES.get(medium.format, "application/octet-stream")
    raise NotFoundError(f"Trial {number} of experiment {store.id} has logged nothing by the number {medium_id}.")


def log_lines(
    store: LocalStore, number: int, *, after: int, limit: int, last: int | None, before: int | None
) -> list[dict[str, Any]]:
    """Return log lines, oldest first; the first `limit` ones, or the `last` ones."""
    folder = store.folder / "trials" / str(number)
    if last is None:
        chosen: Sequence[rest.LogLine] = list(islice(read_log(folder, after), limit))
    else:
        chosen = deque(read_log(folder, after, before), maxlen=last)
    return [_json(line) for line in chosen]


def file_of_checkpoint(store: LocalStore, uuid: str, path: str) -> Path:
    """Return where a file of a checkpoint lies.

    Raises
    ------
    NotFoundError
        If the checkpoint, or the file in it, is not there.
    """
    for found in store.trials():
        for checkpoint in store.checkpoints(found.id):
            if checkpoint.uuid != uuid or checkpoint.state is not CheckpointState.COMPLETED:
                continue
            folder = (store.folder / "trials" / str(found.id) / "files" / uuid).resolve()
            target = (folder / path).resolve()
            listed = path in {file.path for file in checkpoint.manifest.files}
            if listed and target.is_relative_to(folder) and target.is_file():
                return target
    raise NotFoundError(f"Experiment {store.id} has no file {path!r} in a checkpoint {uuid!r}.")


class Curves:
    """Curves of trials; files that were read before are read on from there."""

    def __init__(self) -> None:
        self._files: OrderedDict[Path, GrowingColumns] = OrderedDict()
        self._lock = threading.Lock()

    def of_trials(
        self, store: LocalStore, numbers: Sequence[int], kinds: Sequence[MetricKind], buckets: int
    ) -> list[dict[str, Any]]:
        """Return every metric of these trials, each down-sampled to at most `buckets` points."""
        with self._lock:
            found = [
                curve
                for number in numbers
                for kind in kinds
                for curve in self._read(store, number, kind).curves(number, kind, buckets)
            ]
        return [_json(curve) for curve in drawn(found, store.experiment().framework)]

    def of_experiment(
        self, store: LocalStore, kinds: Sequence[MetricKind], newest: int, buckets: int
    ) -> list[dict[str, Any]]:
        """Return the curves of the best trial and the newest ones."""
        found = store.trials()
        detail = store.experiment()
        best = trials_best_first(found, smaller_is_better=detail.smaller_is_better)[:1]
        numbers = {each.id for each in (*found[-newest:], *best)}
        return self.of_trials(store, sorted(numbers), kinds, buckets)

    def _read(self, store: LocalStore, number: int, kind: MetricKind) -> GrowingColumns:
        path = store.folder / "trials" / str(number) / f"{kind}.jsonl"
        columns = self._files.pop(path, None) or GrowingColumns(path)
        self._files[path] = columns
        while len(self._files) > _KEPT_FILES:
            self._files.popitem(last=False)
        columns.read_on()
        return columns


def _of(store: LocalStore, thing: rest.Trial | rest.Checkpoint) -> dict[str, Any]:
    return _json(thing) | {"experiment_id": store.id}


def _json(model: BaseModel, *left_out: str) -> dict[str, Any]:
    """Return a model as JSON has it: what is not a number is null or a word there."""
    found: dict[str, Any] = json.loads(model.model_dump_json(exclude=set(left_out)))
    return found
