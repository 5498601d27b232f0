"""Handles of experiments that were begun elsewhere: by another kernel, the command line, or before a restart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import det_native.display  # noqa: F401 (handles show themselves by what it registers)
from det_native.client import models
from det_native.client.arguments import checked_limit, checked_number
from det_native.client.catalog import Listed, find_experiments, is_local, listing, source_of
from det_native.client.connect import connect
from det_native.client.handles import Checkpoint, Experiment, Trial
from det_native.client.http_source import HttpSource
from det_native.client.listing import Listing
from det_native.client.models import Model
from det_native.errors import ArgumentError
from det_native.schema.registry import ModelOrderBy, ModelSortBy


def experiment(experiment_id: int | str, master_url: str | None = None) -> Experiment:
    """Return the handle of an experiment that exists.

    Parameters
    ----------
    experiment_id : int or str
        Number on the master, or ``"local-<n>"`` for a run of this machine's own, see ``Experiment.id``.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master that runs on this machine.

    Raises
    ------
    NotFoundError
        If there is no such experiment.
    MasterUnreachableError
        If no master answers; none is started.
    """
    if is_local(experiment_id):
        return Experiment(source_of(experiment_id), experiment_id)
    return Determined(master_url).get_experiment(experiment_id)


#: The older name of :func:`experiment`.
attach = experiment


def experiments(limit: int = 50, master_url: str | None = None) -> Listing[Experiment]:
    """Return the newest experiments, newest first: those of the master and the runs of this machine's own.

    No master is started, and none is needed: without one the local runs are there.

    Parameters
    ----------
    limit : int
        How many at most.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master of this machine, if one runs. If it does not answer, a warning
        says so, and only local runs are returned.
    """
    found = find_experiments(master_url, checked_limit(limit))
    if found.missing is not None:
        warnings.warn(f"{found.missing} Only runs of this machine's own are listed.", stacklevel=2)
    return Experiments(found.experiments)


class Experiments(Listing[Experiment]):
    """A list of experiments, which IPython shows as a table.

    Parameters
    ----------
    listed : sequence of Listed
    """

    def __init__(self, listed: Sequence[Listed]) -> None:
        super().__init__(Experiment(each.source, each.id) for each in listed)
        self._listed = list(listed)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        if len(self) == len(self._listed):
            printer.text(listing(self._listed) if self._listed else "There are no experiments yet.")
        else:  # somebody has changed it
            super()._repr_pretty_(printer, cycle)


class Determined:
    """What a master has: experiments, trials and checkpoints by their ids.

    Parameters
    ----------
    master : str, optional
        Address of the master. Default: ``DET_MASTER``; without it the master that runs on this machine.
    user : str, optional
        Has no effect: a token says who the user is. It is there for code that was written for Determined.
    """

    def __init__(self, master: str | None = None, user: str | None = None) -> None:
        self._source = HttpSource(connect(master, start=False))

    def get_experiment(self, experiment_id: int | str) -> Experiment:
        """Return an experiment of the master.

        Raises
        ------
        NotFoundError
            If there is no such experiment.
        ArgumentError
            If `experiment_id` is no number.
        """
        if is_local(experiment_id):
            raise ArgumentError(f"{experiment_id!r} is a run of this machine's own: det.experiment({experiment_id!r}).")
        experiment = Experiment(self._source, checked_number(experiment_id, "experiment_id"))
        experiment.detail()
        return experiment

    def get_trial(self, trial_id: int | str) -> Trial:
        """Return a trial.

        Raises
        ------
        NotFoundError
            If there is no such trial.
        ArgumentError
            If `trial_id` is no number.
        """
        return Trial(self._source, self._source.trial(checked_number(trial_id, "trial_id")))

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Return a checkpoint.

        Raises
        ------
        NotFoundError
            If there is no such checkpoint.
        """
        return Checkpoint(self._source, self._source.checkpoint(uuid))

    def create_model(
        self,
        name: str,
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
    ) -> Model:
        """Add a model to the registry; see ``det.create_model``."""
        return models.create(self._source, name, description, metadata, labels)

    def get_model(self, name: str) -> Model:
        """Return a model of the registry; see ``det.model``."""
        return models.get(self._source, name)

    def get_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
        name: str = "",
        description: str = "",
    ) -> list[Model]:
        """Return the models of the registry; see ``det.models``."""
        return models.listing(self._source, sort_by=sort_by, order_by=order_by, name=name, description=description)
