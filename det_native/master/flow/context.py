"""What the parts of the master's flow share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from det_native.master.flow.kernels import Kernels
from det_native.master.flow.places import Places
from det_native.master.flow.slots import Slots
from det_native.master.launch.base import Launcher
from det_native.master.store import events, experiments, trials
from det_native.master.store.database import Database, Transaction
from det_native.schema import rest
from det_native.schema.states import ExperimentState
from det_native.storage.blobs import BlobStore

# Their searchers decide; in every other state an experiment is on its way to its end, or there.
OPEN_STATES = frozenset({ExperimentState.ACTIVE, ExperimentState.PAUSED})

Post = Callable[[Callable[[], None]], None]


@dataclass(frozen=True)
class Context:
    """The master's surroundings; `post` has a step run by the decision thread."""

    database: Database
    launcher: Launcher
    places: Places
    post: Post
    blobs: BlobStore

    @cached_property
    def slots(self) -> Slots:
        """The slots that exist now."""
        return Slots(self.launcher, self.places.slots)

    @cached_property
    def kernels(self) -> Kernels:
        """The runs in processes of the user's."""
        return Kernels()

    def runner_of(self, run_id: str) -> Launcher | Kernels:
        """Return what knows the processes of a run."""
        return self.kernels if self.kernels.has(run_id) else self.launcher

    def folder_of(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.kernels.folder_of(run_id) or self.places.run(run_id)


def tell_experiment(transaction: Transaction, experiment_id: int) -> rest.Experiment:
    """Emit the experiment as it now is, and return it."""
    experiment = experiments.get(transaction.connection, experiment_id)
    owner = experiments.owner_of(transaction.connection, experiment_id)
    events.experiment_changed(transaction, experiment, owner)
    return experiment


def tell_trial(transaction: Transaction, trial_id: int) -> rest.Trial:
    """Emit the trial as it now is, and return it."""
    trial = trials.get(transaction.connection, trial_id)
    events.trial_changed(transaction, trial)
    return trial
