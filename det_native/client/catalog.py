"""All experiments in one list: those of the master, if one runs, and the runs of this machine's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from det_native.client.connect import connect, named_master
from det_native.client.http_source import HttpSource
from det_native.client.local_source import LocalSource
from det_native.client.short_forms import whole_percent
from det_native.client.source import Source
from det_native.client.state_words import state_text
from det_native.client.tables import table
from det_native.errors import DetError, NotFoundError
from det_native.local.store import PREFIX, LocalStore
from det_native.schema import rest
from det_native.schema.home import Home, read_runtime
from det_native.schema.states import ExperimentState

LIST_HEAD = ("id", "name", "state", "progress", "trials", "metric", "best", "created")


class Listed(NamedTuple):
    """An experiment of the list.

    Attributes
    ----------
    id : int or str
        Number on the master, or ``"local-<n>"``.
    facts : rest.Experiment
    source : Source
    """

    id: int | str
    facts: rest.Experiment
    source: Source


class Found(NamedTuple):
    """The list, newest first, and why the master's experiments are not in it, if they are not but should be.

    Attributes
    ----------
    experiments : list of Listed
    missing : DetError or None
        Why the master did not say them.
    unseen : bool
        Whether there are or were some of a master of this machine, which does not run.
    """

    experiments: list[Listed]
    missing: DetError | None
    unseen: bool = False


def is_local(experiment_id: object) -> bool:
    """Return whether an id is that of a run of this machine's own."""
    return isinstance(experiment_id, str) and experiment_id.startswith(PREFIX)


def source_of(experiment_id: int | str, master_url: str | None = None) -> Source:
    """Return where the facts of an experiment come from; no master is asked or needed for a local run.

    Raises
    ------
    NotFoundError
        If there is no such local run.
    MasterUnreachableError
        If no master answers; none is started.
    """
    if is_local(experiment_id):
        return LocalSource(LocalStore.find(str(experiment_id)))
    return HttpSource(connect(master_url, start=False))


def find_experiments(master_url: str | None, limit: int, state: ExperimentState | None = None) -> Found:
    """Return the newest experiments; no master is started, and none is needed where none is named.

    Parameters
    ----------
    master_url : str or None
        Default: ``DET_MASTER``; without it the master of this machine, if it runs.
    limit : int
    state : ExperimentState, optional
        Only those in this state.
    """
    missing: DetError | None = None
    unseen = False
    home = Home.default()
    found = [listed for listed in _local() if state in (None, listed.facts.state)]
    if named_master(master_url) or read_runtime(home) is not None:
        try:
            source = HttpSource(connect(master_url, start=False))
            found += [Listed(each.id, each, source) for each in source.experiments(limit, state)]
        except DetError as error:
            missing = error
    else:
        unseen = home.database.is_file()
    newest = sorted(found, key=lambda listed: _moment(listed.facts.created), reverse=True)
    return Found(newest[:limit], missing, unseen)


def local_source_with(uuid: str) -> tuple[Source, rest.Checkpoint] | None:
    """Return a checkpoint of a run of this machine's own, with its source; None if no such run has it."""
    for listed in _local():
        for checkpoint in listed.source.checkpoints(experiment_id=listed.id):
            if checkpoint.uuid == uuid:
                return listed.source, checkpoint
    return None


def listing(experiments: Sequence[Listed], draw: Callable[..., str] = table) -> str:
    """Return the list as a table."""
    return draw(LIST_HEAD, list_rows(experiments))


def list_rows(experiments: Sequence[Listed], *, exact: bool = False) -> list[tuple[object, ...]]:
    """Return the cells of the list; `exact` for programs, which read no percentages."""
    return [
        (
            str(shown_id),
            facts.name,
            state_text(facts),
            facts.progress if exact else f"{whole_percent(facts.progress)}%",
            facts.trials,
            facts.metric,
            "" if facts.best_validation is None else facts.best_validation if exact else f"{facts.best_validation:.6g}",
            facts.created.replace("+00:00", "Z"),  # as runs of earlier versions have it
        )
        for shown_id, facts, _ in experiments
    ]


def _local() -> list[Listed]:
    found = []
    for store in LocalStore.all():
        try:
            found.append(Listed(store.id, store.experiment(), LocalSource(store)))
        except (OSError, ValueError, NotFoundError):  # damaged, or removed at this moment
            continue
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
