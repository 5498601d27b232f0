"""The life of an experiment, asked of a master."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from det_native.schema import rest, routes
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention

if TYPE_CHECKING:
    from det_native.client.session import Session


class HttpLife:
    """The part of ``HttpSource`` that changes experiments, deletes them, and makes others of them."""

    _session: Session

    def change(self, experiment_id: int | str, change: rest.ExperimentChange) -> None:
        """Change what people write of the experiment."""
        self._session.call(routes.CHANGE_EXPERIMENT, change, experiment_id=experiment_id)

    def deletion(self, experiment_id: int | str) -> Deletion:
        """Return what the deletion of the experiment would free, and what stands in its way."""
        return self._session.call(routes.GET_DELETION, experiment_id=experiment_id)

    def delete(self, experiment_id: int | str) -> Deletion:
        """Delete the experiment; return what that has freed."""
        return self._session.call(routes.DELETE_EXPERIMENT, experiment_id=experiment_id)

    def fork(self, experiment_id: int | str, wanted: ExperimentFork) -> rest.Experiment:
        """Submit the program of the experiment with another configuration."""
        return self._session.call(routes.FORK_EXPERIMENT, wanted, experiment_id=experiment_id, key=uuid4().hex)

    def continuation(self, experiment_id: int | str, wanted: ExperimentContinuation) -> rest.Experiment:
        """Submit an experiment that goes on from a checkpoint of this one."""
        return self._session.call(routes.CONTINUE_EXPERIMENT, wanted, experiment_id=experiment_id, key=uuid4().hex)

    def retain(self, experiment_id: int | str, wanted: Retention) -> Retained:
        """Change how many checkpoints of the experiment stay."""
        return self._session.call(routes.SET_GC_POLICY, wanted, experiment_id=experiment_id)
