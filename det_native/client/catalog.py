"""All experiments in one list: those of the master, if one runs, and the runs of this machine's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from det_native.client.connect import connect, named_master
from det_native.client.http_source import HttpSource
from det_native.client.local_source import LocalSource
from det_native.client.short_forms import whole_percent
from det_native.client.source import Source
from det_native.client.state_words import state_text
from det_native.client.tables import table
from det_native.errors import ArgumentError, DetError, NotFoundError
from det_native.local.store import PREFIX, LocalStore
from det_native.local.summaries import facts_of_run
from det_native.schema import rest
from det_native.schema.home import Home, read_runtime
from det_native.schema.query.filters import Filters
from det_native.schema.query.matching import Facts, matches
from det_native.schema.query.ordering import NEWEST, Order, key_of, sorted_by_key
from det_native.schema.query.tree import Node, names_of

HEAD = ("id", "name", "state", "progress", "trials", "metric", "best", "created")


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
    """The list, in order, and why the master's experiments are not in it, if they are not but should be.

    Attributes
    ----------
    experiments : list of Listed
    missing : DetError or None
        Why the master did not say them.
    unseen : bool
        Whether there are or were some of a master of this machine, which does not run.
    total : int
        How many there are, those that are not in the list included.
    notice : str
        What else is to be known of it.
    """

    experiments: list[Listed]
    missing: DetError | None
    unseen: bool = False
    total: int = 0
    notice: str = ""

    def rest_text(self, way: str) -> str:
        """Return ``50 of 123; <way> has all.``; empty where all are in the list."""
        shown = len(self.experiments)
        return "" if self.total <= shown else f"{shown} of {self.total}; {way} has all."


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


def find_experiments(
    master_url: str | None, limit: int | None, filters: Filters | None = None, order: Order | None = None
) -> Found:
    """Return experiments; no master is started, and none is needed where none is named.

    Parameters
    ----------
    master_url : str or None
        Default: ``DET_MASTER``; without it the master of this machine, if it runs.
    limit : int or None
        How many at most; None for all.
    filters : Filters, optional
        Which; all that are not archived by default.
    order : Order, optional
        Newest first by default.

    Raises
    ------
    ArgumentError
        If something in the filters cannot be understood.
    """
    filters = filters or Filters()
    tree, moment = filters.tree(), datetime.now(UTC)
    missing: DetError | None = None
    unseen = False
    home = Home.default()
    with_trials = needs_trials(tree, order)
    known = [facts for facts in _facts_of_runs(with_trials=with_trials) if matches(tree, facts, moment)]
    found = [Listed(facts.shown_id, facts.experiment, _source_of_run(facts)) for facts in known]
    total = len(found)
    notice = ""
    if named_master(master_url) or read_runtime(home) is not None:
        try:
            source = HttpSource(connect(master_url, start=False))
            of_master = source.find(filters, order, limit)
            found = [*(Listed(each.id, each, source) for each in of_master.experiments), *found]
            known += _facts_of_master(source, of_master.experiments, with_trials=with_trials)
            total += of_master.total
            notice = of_master.notice
        except ArgumentError:
            raise
        except DetError as error:
            missing = error
    else:
        unseen = home.database.is_file()
    keys = {facts.shown_id: _key(facts, order or NEWEST, moment) for facts in known}
    pairs = sorted_by_key([(listed, keys[listed.id]) for listed in found], order or NEWEST)
    return Found([listed for listed, _ in pairs][:limit], missing, unseen, total, notice)


def local_source_with(uuid: str) -> tuple[Source, rest.Checkpoint] | None:
    """Return a checkpoint of a run of this machine's own, with its source; None if no such run has it."""
    for facts in _facts_of_runs(with_trials=False):
        source = _source_of_run(facts)
        for checkpoint in source.checkpoints(experiment_id=facts.shown_id):
            if checkpoint.uuid == uuid:
                return source, checkpoint
    return None


def listing(experiments: Sequence[Listed]) -> str:
    """Return the list as a table."""
    return table(HEAD, list_rows(experiments))


def list_rows(experiments: Sequence[Listed], *, exact: bool = False) -> list[tuple[object, ...]]:
    """Return the rows of the list, below :data:`HEAD`; `exact` for programs, which read no percentages."""
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


def needs_trials(tree: Node | None, order: Order | None) -> bool:
    """Return whether a query or an order asks for what trials have."""
    by_trial = order is not None and order.kind in ("metric", "hp")
    return by_trial or any(name.kind in ("metric", "hp", "bare") for name in names_of(tree))


def _facts_of_runs(*, with_trials: bool) -> Iterator[Facts]:
    for store in LocalStore.all():
        with suppress(OSError, ValueError, NotFoundError):  # damaged, or removed at this moment
            yield facts_of_run(store, with_trials=with_trials)


def _source_of_run(facts: Facts) -> Source:
    return LocalSource(LocalStore.find(str(facts.shown_id)))


def _facts_of_master(source: HttpSource, found: Sequence[rest.Experiment], *, with_trials: bool) -> Iterator[Facts]:
    best = {}
    if with_trials and found:
        best = {each.experiment_id: each for each in source.summaries([each.id for each in found], best=True)}
    for experiment in found:
        trial = best.get(experiment.id)
        hyperparameters = {} if trial is None else trial.hparams
        yield Facts(experiment, experiment.id, "", hyperparameters, () if trial is None else trial.metrics)


def _key(facts: Facts, order: Order, now: datetime) -> Any:
    """Return by what an experiment is ordered among those of the master and this machine's own."""
    if order.kind in ("id", "created"):
        return datetime.fromisoformat(facts.experiment.created)
    return key_of(facts, order, now)
