"""Handles of experiments that were begun elsewhere: by another kernel, the command line, or before a restart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import det_native.display  # noqa: F401 (handles show themselves by what it registers)
from det_native.client.arguments import checked_limit, checked_number
from det_native.client.catalog import Found, find_experiments, listing, source_of
from det_native.client.handles import Experiment
from det_native.client.listing import Listing
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import parse_order


def experiment(experiment_id: int, master_url: str | None = None) -> Experiment:
    """Return the handle of an experiment that exists.

    Parameters
    ----------
    experiment_id : int
        Number on the master, see ``Experiment.id``.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master that runs on this machine.

    Raises
    ------
    NotFoundError
        If there is no such experiment.
    MasterUnreachableError
        If no master answers; none is started.
    """
    number = checked_number(experiment_id, "experiment_id")  # before a master is looked for
    found = Experiment(source_of(master_url), number)
    found.detail()
    return found


#: The older name of :func:`experiment`.
attach = experiment


def experiments(
    limit: int | None = 50,
    master_url: str | None = None,
    *,
    query: str | None = None,
    state: str | None = None,
    name: str | None = None,
    label: str | Sequence[str] | None = None,
    project: str | None = None,
    metric: str | None = None,
    since: str | date | timedelta | None = None,
    archived: bool = False,
    order_by: str | None = None,
) -> Experiments:
    """Return experiments, newest first.

    No master is started. What is left out is told below the table that the list shows itself as.

    Parameters
    ----------
    limit : int, optional
        How many at most; None for all.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master of this machine, if one runs. If it does not answer, a warning
        says so, and the list is empty.
    query : str, optional
        Which ones, such as ``"val_loss < 0.3 and lr > 1e-3 and label:baseline"``; ``docs/finding.md`` has the
        language.
    state : str, optional
        In this state, such as ``"Running"`` or ``"Stopped"``; Determined's names are taken, too.
    name : str, optional
        With this in the name, whatever the case of letters.
    label : str or sequence of str, optional
        With this label, or all of these.
    project : str, optional
        In this project, or a folder of it.
    metric : str, optional
        With a value of this metric.
    since : str, date, datetime or timedelta, optional
        Created then or later: ``"2026-11-01"``, or an age such as ``"7d"``.
    archived : bool
        Whether archived ones are there, too.
    order_by : str, optional
        ``"id"``, ``"name"``, ``"created"``, ``"duration"``, ``"metric:<name>"`` or ``"hp:<name>"``, with ``" asc"`` or
        ``" desc"`` after it.

    Raises
    ------
    ArgumentError
        If the query does not parse (with the place), or there is no such state or order.

    Examples
    --------
    >>> det.experiments(query="val_loss < 0.3 and not label:broken", order_by="metric:val_loss")
    """
    labels = (label,) if isinstance(label, str) else tuple(label or ())
    filters = Filters(query, state, name, labels, project, metric, _since(since), archived)
    order = None if order_by is None else parse_order(order_by)
    found = find_experiments(master_url, None if limit is None else checked_limit(limit), filters, order)
    unseen = "No master runs here: its experiments are not shown. `det up` starts it." if found.unseen else ""
    for problem in ("" if found.missing is None else str(found.missing), unseen, found.notice):
        if problem:
            warnings.warn(problem, stacklevel=2)
    nothing = "There are no experiments yet." if filters.all else "There are no such experiments."
    return Experiments(found, found.rest_text("det.experiments(limit=None)"), nothing)


def _since(since: str | date | timedelta | None) -> str | None:
    if isinstance(since, timedelta):
        return f"{max(since.total_seconds(), 0):.3f}s"
    if isinstance(since, datetime):
        return since.astimezone().isoformat()
    return since.isoformat() if isinstance(since, date) else since


class Experiments(Listing[Experiment]):
    """A list of experiments, which IPython shows as a table.

    Parameters
    ----------
    found : Found
    others : str
        What is said of those that are not in the list.
    nothing : str
        What is said where it is empty.
    """

    def __init__(self, found: Found, others: str = "", nothing: str = "There are no experiments yet.") -> None:
        source = found.source
        super().__init__([] if source is None else (Experiment(source, each.id) for each in found.experiments))
        self._listed = found.experiments
        self._others = others
        self._nothing = nothing

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        if len(self) == len(self._listed):
            table = listing(self._listed) if self._listed else self._nothing
            printer.text("\n".join(filter(None, (table, self._others))))
        else:  # somebody has changed it
            super()._repr_pretty_(printer, cycle)
