"""The life of an experiment, asked of a master."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from det_native.schema import rest
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention

if TYPE_CHECKING:
    from det_native.client.session import Session


class HttpLife:
    """The part of ``HttpSource`` that changes experiments, deletes them, and makes others of them."""

    _session: Session

    def change(self, experiment_id: int | str, change: rest.ExperimentChange) -> None:
        """Change what people write of the experiment."""
        self._session.patch(f"/experiments/{experiment_id}", change.model_dump(mode="json", exclude_unset=True))

    def deletion(self, experiment_id: int | str) -> Deletion:
        """Return what the deletion of the experiment would free, and what stands in its way."""
        return Deletion.model_validate(self._session.get(f"/experiments/{experiment_id}/deletion"))

    def delete(self, experiment_id: int | str) -> Deletion:
        """Delete the experiment; return what that has freed."""
        return Deletion.model_validate(self._session.delete(f"/experiments/{experiment_id}"))

    def fork(self, experiment_id: int | str, wanted: ExperimentFork) -> rest.Experiment:
        """Submit the program of the experiment with another configuration."""
        return self._made(f"/experiments/{experiment_id}/fork", wanted)

    def continuation(self, experiment_id: int | str, wanted: ExperimentContinuation) -> rest.Experiment:
        """Submit an experiment that goes on from a checkpoint of this one."""
        return self._made(f"/experiments/{experiment_id}/continue", wanted)

    def retain(self, experiment_id: int | str, wanted: Retention) -> Retained:
        """Change how many checkpoints of the experiment stay."""
        path = f"/experiments/{experiment_id}/gc-policy"
        return Retained.model_validate(self._session.put(path, wanted.model_dump(mode="json")))

    def _made(self, path: str, wanted: ExperimentFork | ExperimentContinuation) -> rest.Experiment:
        from det_native.client.session import IDEMPOTENCY_HEADER

        body = wanted.model_dump(mode="json", exclude_unset=True)
        headers = {IDEMPOTENCY_HEADER: uuid4().hex}
        return rest.Experiment.model_validate(self._session.post(path, body, headers=headers))
