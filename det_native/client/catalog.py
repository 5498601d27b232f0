"""The list of experiments of a master."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from det_native.client.addresses import named_master
from det_native.client.connect import connect
from det_native.client.http_source import HttpSource
from det_native.client.short_forms import whole_percent
from det_native.client.state_words import state_text
from det_native.client.tables import table
from det_native.errors import ArgumentError, DetError
from det_native.schema import rest
from det_native.schema.home import Home, read_runtime
from det_native.schema.kernel_runs import REQUEST_NAME
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import Order

HEAD = ("id", "name", "state", "progress", "trials", "metric", "best", "created")


class Found(NamedTuple):
    """The list, in order, and why it is empty, if it should not be.

    Attributes
    ----------
    source : Source or None
        Where they are known; None where no master has answered.
    missing : DetError or None
        Why the master did not say them.
    unseen : bool
        Whether there are or were some of a master of this machine, which does not run.
    total : int
        How many there are, those that are not in the list included.
    notice : str
        What else is to be known of it.
    """

    experiments: list[rest.Experiment]
    source: HttpSource | None = None
    missing: DetError | None = None
    unseen: bool = False
    total: int = 0
    notice: str = ""

    def rest_text(self, way: str) -> str:
        """Return ``50 of 123; <way> has all.``; empty where all are in the list."""
        shown = len(self.experiments)
        return "" if self.total <= shown else f"{shown} of {self.total}; {way} has all."


def source_of(master_url: str | None = None) -> HttpSource:
    """Return where the facts of a master's experiments come from.

    Raises
    ------
    MasterUnreachableError
        If no master answers; none is started.
    """
    return HttpSource(connect(master_url, start=False))


def find_experiments(
    master_url: str | None, limit: int | None, filters: Filters | None = None, order: Order | None = None
) -> Found:
    """Return experiments; no master is started.

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
    filters.tree()
    home = Home.default()
    if not named_master(master_url) and read_runtime(home) is None:
        waiting = any((home.path / "runs").glob(f"*/{REQUEST_NAME}"))
        return Found([], unseen=waiting or home.database.is_file())
    try:
        source = source_of(master_url)
        found = source.find(filters, order, limit)
    except ArgumentError:
        raise
    except DetError as error:
        return Found([], missing=error)
    return Found(found.experiments, source, total=found.total, notice=found.notice)


def listing(experiments: Sequence[rest.Experiment]) -> str:
    """Return the list as a table."""
    return table(HEAD, list_rows(experiments))


def list_rows(experiments: Sequence[rest.Experiment], *, exact: bool = False) -> list[tuple[object, ...]]:
    """Return the rows of the list, below :data:`HEAD`; `exact` for programs, which read no percentages."""
    return [
        (
            str(facts.id),
            facts.name,
            state_text(facts),
            facts.progress if exact else f"{whole_percent(facts.progress)}%",
            facts.trials,
            facts.metric,
            "" if facts.best_validation is None else facts.best_validation if exact else f"{facts.best_validation:.6g}",
            facts.created.replace("+00:00", "Z"),  # as runs of earlier versions have it
        )
        for facts in experiments
    ]
