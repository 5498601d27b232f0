"""What changes in local runs, told as the master tells it: by looking at their files again and again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from det_native.local.curves import GrowingColumns

from det_jupyter import local_runs
from det_native.errors import NotFoundError
from det_native.local.store import PREFIX, LocalStore, kept_numbers
from det_native.schema.states import MetricKind

_INTERVAL = 0.5
_CALM_INTERVAL = 1.0


class LocalWatch:
    """Remembers how runs looked; each look returns server-sent events about what is different.

    Parameters
    ----------
    experiment_id : str, optional
        ``"local-<n>"``; all runs by default.
    """

    def __init__(self, experiment_id: str | None = None) -> None:
        self._only = experiment_id
        self._runs: dict[int, _Run] = {}
        self._next = 1
        self._begun = False

    @property
    def interval(self) -> float:
        """Seconds until the next look: short while something runs."""
        return _INTERVAL if any(run.running for run in self._runs.values()) else _CALM_INTERVAL

    def changes(self) -> list[str]:
        """Return an event for each thing that has changed since the last look; of the first look, none."""
        events: list[str] = []
        for number in reversed(kept_numbers()):
            name = f"{PREFIX}{number}"
            if self._only not in (None, name):
                continue
            try:
                store = LocalStore.find(name)
                found = self._runs.setdefault(number, _Run()).changes(store)
            except (NotFoundError, OSError, ValueError):
                continue  # removed, or being made, at this moment
            events += [self._event(name, *each) for each in found]
        begun, self._begun = self._begun, True
        return events if begun else []

    def _event(self, name: str, kind: str, trial_id: int | None, data: dict[str, Any]) -> str:
        body = {"id": self._next, "type": kind, "experiment_id": name, "trial_id": trial_id, "data": data}
        self._next += 1
        return f"id: {body['id']}\nevent: {kind}\ndata: {json.dumps(body)}\n\n"


Change = tuple[str, int | None, dict[str, Any]]


class _Run:
    """One run as it looked last."""

    def __init__(self) -> None:
        self.running = True
        self._stamp: object = None
        self._known: dict[tuple[str, object], dict[str, Any]] = {}
        self._rows: dict[Path, GrowingColumns] = {}
        self._outputs: dict[tuple[str, int], tuple[str, int, int]] = {}

    def changes(self, store: LocalStore) -> list[Change]:
        """Return what is different: of its rows first, so that a run has told all when it tells its end."""
        running = store.running()
        stamp = (running, _stamp(store.folder))
        if stamp == self._stamp:
            return []
        # Taken before all is read: what is written meanwhile is another stamp.
        found = [*self._rows_of(store), *self._things_of(store)]
        self._stamp, self.running = stamp, running
        return found

    def _rows_of(self, store: LocalStore) -> list[Change]:
        found: list[Change] = []
        for trial in store.trials():
            for kind in MetricKind:
                path = store.folder / "trials" / str(trial.id) / f"{kind}.jsonl"
                rows = self._rows.setdefault(path, GrowingColumns(path))
                if rows.read_on():
                    found.append(("metrics", trial.id, {"kind": kind, "batch": rows.last_batch}))
            found += self._outputs_of(store.folder / "trials" / str(trial.id), trial.id)
        return found

    def _outputs_of(self, folder: Path, trial_id: int) -> list[Change]:
        """Return an event where a trial has logged or written something."""
        found: list[Change] = []
        for kind, name in (("media", "media.jsonl"), ("artifacts", "artifacts.json")):
            stamp = _stamp_of(folder / name)
            if stamp is not None and self._outputs.get((kind, trial_id)) != stamp:
                self._outputs[kind, trial_id] = stamp
                found.append((kind, trial_id, {}))
        return found

    def _things_of(self, store: LocalStore) -> list[Change]:
        things: list[Change] = [("trial", trial["id"], trial) for trial in local_runs.trials(store)]
        things += [("checkpoint", each["trial_id"], each) for each in local_runs.checkpoints(store)]
        things.append(("experiment", None, local_runs.experiment(store)))
        changed = []
        for kind, trial_id, data in things:
            key = (kind, data.get("uuid") or data["id"])
            if self._known.get(key) != data:
                self._known[key] = data
                changed.append((kind, trial_id, data))
        return changed


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what is different when a file of the run has changed."""
    found = []
    for path in (folder / "experiment.json", *sorted(folder.glob("trials/*/*.json*"))):
        if (stamp := _stamp_of(path)) is not None:
            found.append(stamp)
    return tuple(found)


def _stamp_of(path: Path) -> tuple[str, int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return str(path), status.st_mtime_ns, status.st_size
