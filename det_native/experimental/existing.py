"""Handles of experiments that were begun elsewhere: by another kernel, the command line, or before a restart."""

from __future__ import annotations

import det_native.display  # noqa: F401 (handles show themselves by what it registers)
from det_native.client.arguments import checked_number
from det_native.client.connect import connect
from det_native.client.handles import Checkpoint, Experiment, Trial
from det_native.client.http_source import HttpSource
from det_native.client.local_source import LocalSource
from det_native.errors import ArgumentError
from det_native.local.store import PREFIX, LocalStore


def attach(experiment_id: int | str, master_url: str | None = None) -> Experiment:
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
    if isinstance(experiment_id, str) and experiment_id.startswith(PREFIX):
        return Experiment(LocalSource(LocalStore.find(experiment_id)), experiment_id)
    return Determined(master_url).get_experiment(experiment_id)


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
        if isinstance(experiment_id, str) and experiment_id.startswith(PREFIX):
            raise ArgumentError(f"{experiment_id!r} is a run of this machine's own: det.attach({experiment_id!r}).")
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
