"""The life of a local run: described and deleted like an experiment of a master; what needs a master says so."""

from __future__ import annotations

from typing import Never

from det_native.errors import RequestError, UnsupportedFeatureError
from det_native.local import deletion, described
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.descriptions import changed_values
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention


class LocalLife:
    """The part of ``LocalSource`` that changes runs and deletes them."""

    _store: LocalStore

    def change(self, experiment_id: int | str, change: rest.ExperimentChange) -> None:
        """Change what people write of the run.

        Raises
        ------
        RequestError
            If it is to be archived and goes on.
        """
        known = self._store.experiment()
        values = changed_values(change, known)
        if values.get("archived") and not known.state.terminal:
            raise RequestError(
                409, f"Experiment {self._store.id} goes on and cannot be archived: archive it once it has ended."
            )
        described.describe(self._store.folder, values)

    def deletion(self, experiment_id: int | str) -> Deletion:
        """Return what the deletion of the run would free, and what stands in its way."""
        return deletion.preview(self._store)

    def delete(self, experiment_id: int | str) -> Deletion:
        """Delete the run; return what that has freed."""
        return deletion.delete(self._store)

    def fork(self, experiment_id: int | str, wanted: ExperimentFork) -> rest.Experiment:
        """Fork nothing: a local run has no master that would run it.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        self._refuse("forked")

    def continuation(self, experiment_id: int | str, wanted: ExperimentContinuation) -> rest.Experiment:
        """Continue nothing: the checkpoints of a local run are not the cluster's.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        self._refuse("continued")

    def retain(self, experiment_id: int | str, wanted: Retention) -> Retained:
        """Change nothing: a local run keeps its checkpoints until it is deleted.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        raise UnsupportedFeatureError(
            f"Experiment {self._store.id} is a local run, whose checkpoints go with it: delete() deletes it."
        )

    def _refuse(self, asked: str) -> Never:
        raise UnsupportedFeatureError(
            f"Experiment {self._store.id} is a local run, which cannot be {asked}: "
            f'det.attach({self._store.id!r}).move("cluster") trains its program on the cluster; what that makes can be.'
        )
