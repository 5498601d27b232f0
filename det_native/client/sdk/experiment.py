"""What ``Experiment`` has for code of Determined's SDK."""

from __future__ import annotations

import io
import os
import tarfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from det_native.client.checkpoint import Checkpoint
from det_native.client.experiment_life import ExperimentLife
from det_native.client.listing import Listing
from det_native.client.sdk.absent_names import AbsentNames
from det_native.client.sdk.sorting import CheckpointSortBy, TrialSortBy, sorted_trials
from det_native.client.sdk.trial import listed_checkpoints
from det_native.client.trial import Trial
from det_native.errors import ArgumentError, ExperimentFailedError
from det_native.schema import rest
from det_native.schema.registry import OrderBy


class ExperimentOfSdk(ExperimentLife, AbsentNames):
    """The part of ``Experiment`` that has the names of Determined's SDK."""

    _sdk_class = "Experiment"

    if TYPE_CHECKING:  # the handle has it

        def detail(self) -> rest.ExperimentDetail:
            """Return everything that the source knows of the experiment."""

    def reload(self) -> None:
        """Ask anew for all that is known of it."""
        self._ended = None
        self.detail()

    @property
    def progress(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.detail().progress

    def list_trials(self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING) -> list[Trial]:
        """Return its trials in order.

        Parameters
        ----------
        sort_by : TrialSortBy
        order_by : OrderBy

        Raises
        ------
        ArgumentError
            If they are of another kind.
        """
        found, metric = self._source.trials(self._id), self.detail().metric
        ordered = sorted_trials(self._source, found, sort_by, order_by, metric)
        return Listing(Trial(self._source, trial, metric) for trial in ordered)

    def get_trials(self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING) -> list[Trial]:
        """As ``list_trials``: the older name."""
        return self.list_trials(sort_by, order_by)

    def iter_trials(
        self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING, limit: int | None = None
    ) -> Iterator[Trial]:
        """Return its trials one after the other; see ``list_trials``. In Determined `limit` is that of a request."""
        return iter(self.list_trials(sort_by, order_by))

    def await_first_trial(self, interval: float = 0.1) -> Trial:
        """Wait until the experiment has a trial, and return that which has begun first.

        Parameters
        ----------
        interval : float
            Seconds between two questions.

        Raises
        ------
        ExperimentFailedError
            If the experiment has ended without one.
        """
        while True:
            ended = self.detail().state
            trials = self.list_trials(TrialSortBy.START_TIME)
            if trials:
                return trials[0]
            if ended.terminal:
                raise ExperimentFailedError(f"Experiment {self._id} is {ended}, and no trial of it has begun.")
            time.sleep(max(interval, 0.01))

    def list_checkpoints(
        self,
        sort_by: str | CheckpointSortBy | None = None,
        order_by: OrderBy | None = None,
        max_results: int | None = None,
    ) -> list[Checkpoint]:
        """Return the checkpoints that exist, by default the best by the searcher's metric first.

        Parameters
        ----------
        sort_by : str or CheckpointSortBy, optional
            The name of a validation metric, or a fact; together with `order_by`.
        order_by : OrderBy, optional
        max_results : int, optional
            How many at most.

        Raises
        ------
        ArgumentError
            If only one of the first two is given, or one is of another kind.
        """
        found = self._source.checkpoints(experiment_id=self._id)
        return listed_checkpoints(self._source, self._id, found, sort_by, order_by, max_results)

    def move_to_project(self, workspace_name: str, project_name: str) -> None:
        """As ``move_to(project_name)``; `workspace_name` has no effect, since there are no workspaces."""
        warnings.warn(f"There are no workspaces: {workspace_name!r} has no effect.", UserWarning, stacklevel=2)
        self.move_to(project_name)

    def download_code(self, output_dir: str | os.PathLike[str] | None = None) -> str:
        """Write the files that were submitted into ``exp-<number>_model_def.tar.gz``; ``notebook()`` writes cells.

        Parameters
        ----------
        output_dir : str or path, optional
            Folder for it, made if need be; the working directory by default. A file that is there is replaced.

        Returns
        -------
        str
            Its path.

        Raises
        ------
        ArgumentError
            If nothing can be written there.
        UnsupportedFeatureError
            If the code could not be kept.
        """
        manifest = self._source.bundle(self._id)
        folder = Path(output_dir or "")
        path = folder / f"exp-{self._id}_model_def.tar.gz"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(path, "w:gz") as archive:
                for file in manifest.files:
                    content = self._source.blob(file.sha256)
                    entry = tarfile.TarInfo(file.path)
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
        except OSError as error:
            raise ArgumentError(f"download_code() cannot write {path}: {error.strerror or error}.") from error
        return str(path)
