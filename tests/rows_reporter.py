"""What a trial reports, kept in memory in the shape in which a master would return it, and a run of one for tests."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from det_harness.local.run import LocalRun, local_run
from det_harness.trial.checkpoint import CheckpointOwner
from det_harness.trial.services import Controller, Reporter, Services

from det_native.schema.manifests import CheckpointManifest
from det_native.schema.outputs import WrittenFile
from det_native.schema.rest import EpochRow, LoggedMedium, Medium, MetricRow, SystemSample
from det_native.schema.system_samples import MOST_SAMPLES, only_new, thin_by_rank
from det_native.storage.checkpoints import CheckpointStorage


class RowsReporter(Reporter):
    """Keeps a local trial's reports in memory, in the shape in which a master would return them.

    Parameters
    ----------
    metric : str or None
        The searcher's metric.
    smaller_is_better : bool

    Attributes
    ----------
    training_rows, validation_rows, logged_rows : list of MetricRow
        In order of batches.
    logged_media : list of Medium
        In the order in which they were logged.
    epochs : list of EpochRow
        What the framework's own history has.
    checkpoints : list of (str, CheckpointManifest)
        Location and manifest of each, in the order in which they were completed.
    samples : list of SystemSample
        By time; a new list each time that there are more.
    written : dict of str to WrittenFile
        Files that its processes have written, by path.
    told : str or None
        The last notice.
    metric : str or None
        By which trials are compared.
    smaller_is_better : bool
        Which of its values are better.
    validates : bool
        False where rows of training metrics stand for those of validations.
    length : int or None
        Batches of the trial, as its process has told; None if it has not.
    stop_requested : bool
        Whether the training is to end.
    """

    #: As a worker's reporter, it belongs to its process: no checkpoint of a loop that holds it has its rows.
    __module__ = "det_harness.rows_reporter"

    def __init__(self, metric: str | None = None, *, smaller_is_better: bool = True) -> None:
        self.metric = metric
        self.smaller_is_better = smaller_is_better
        # As they were reported: making rows of them would cost the loop more than all else that is kept of a batch.
        self._reported: deque[tuple[list[int], Mapping[str, list[float | None]]]] = deque()
        self._training_rows: list[MetricRow] = []
        self._making_rows = threading.Lock()
        self.validation_rows: list[MetricRow] = []
        self.logged_rows: list[MetricRow] = []
        self.logged_media: list[Medium] = []
        self.epochs: list[EpochRow] = []
        self.checkpoints: list[tuple[str, CheckpointManifest]] = []
        self.told: str | None = None
        self.validates = True
        self.length: int | None = None
        self.stop_requested = False
        self._last_samples: dict[int, float] = {}
        self.samples: list[SystemSample] = []
        self.written: dict[str, WrittenFile] = {}

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Keep rows of training metrics."""
        self._reported.append((batches, metrics))

    @property
    def training_rows(self) -> list[MetricRow]:
        """The rows of training metrics; a thread may ask while others are reported."""
        with self._making_rows:
            while self._reported:
                batches, metrics = self._reported.popleft()
                self._training_rows += [
                    MetricRow(batch=batch, metrics=_row(metrics, index)) for index, batch in enumerate(batches)
                ]
            return self._training_rows

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Keep the metrics of one validation."""
        row = {name: value for name, value in metrics.items() if value is not None}
        self.validation_rows.append(MetricRow(batch=batch, metrics=row))

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers that the user's code has logged after so many batches; of a name the last one counts."""
        rows = self.logged_rows
        if rows and rows[-1].batch >= batch:
            rows[-1].metrics.update(metrics)
        else:
            rows.append(MetricRow(batch=batch, metrics=dict(metrics)))

    def media(self, items: list[LoggedMedium]) -> None:
        """Keep what the user's code has logged."""
        first = len(self.logged_media) + 1
        self.logged_media += [Medium.of(item, number) for number, item in enumerate(items, first)]

    def epoch(self, row: EpochRow) -> None:
        """Keep what the framework's own history has of an epoch."""
        self.epochs.append(row)

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Keep what is known of a checkpoint."""
        self.checkpoints.append((location, manifest))

    def waiting(self, text: str) -> None:
        """Print what the training waits for."""
        print(f"The training {text or 'goes on'}.")

    def warning(self, text: str) -> None:
        """Keep what has happened in the training and is no failure."""
        self.told = text

    def compare_by(self, metric: str, *, smaller_is_better: bool) -> None:
        """Keep by which metric trials are compared."""
        self.metric, self.smaller_is_better = metric, smaller_is_better

    def no_validation(self) -> None:
        """Keep that nothing validates."""
        self.validates = False

    def started(self, batch: int, length: int | None = None, notice: str = "") -> None:
        """Keep how long the trial is."""
        self.length = length

    def system(self, samples: list[SystemSample]) -> None:
        """Keep what processes of the trial use; of very many samples neighbours are merged."""
        kept = [*self.samples, *only_new(samples, self._last_samples)]
        if len(kept) > MOST_SAMPLES * len(self._last_samples):
            kept = thin_by_rank(kept, MOST_SAMPLES // 2)
        self.samples = kept

    def artifacts(self, files: list[WrittenFile], removed: list[str]) -> None:
        """Keep which files its processes have written."""
        self.written.update({file.path: file for file in files})
        for path in removed:
            self.written.pop(path, None)

    def best_metric(self) -> float | None:
        """Return the best value of the searcher's metric so far."""
        found = (row.metrics[self.metric] for row in self.validation_rows if self.metric in row.metrics)
        values = [value for value in found if math.isfinite(value)]
        if not values:
            return None
        best: float = min(values) if self.smaller_is_better else max(values)
        return best


def _row(metrics: Mapping[str, list[float | None]], index: int) -> dict[str, float]:
    return {name: value for name, column in metrics.items() if (value := column[index]) is not None}


def train_here(
    build: Callable[[Services], Controller],
    *,
    config: dict[str, Any],
    hparams: dict[str, Any],
    trial_seed: int,
    directory: Path,
    framework: str,
    test: bool = False,
) -> LocalRun:
    """Train one trial in this process, to the end, with its checkpoints in a folder; its reporter has the rows."""
    searcher = config.get("searcher") or {}
    reporter = RowsReporter(searcher.get("metric"), smaller_is_better=searcher.get("smaller_is_better", True))
    with local_run(
        config=config,
        hparams=hparams,
        trial_seed=trial_seed,
        owner=CheckpointOwner(framework, hparams),
        checkpoints=CheckpointStorage(str(directory)),
        blobs=str(directory.parent / "outputs"),
        tensorboard=directory.parent / "tensorboard",
        reporter=reporter,
        test=test,
    ) as run:
        run.outcome = build(run.services).run()
    return run
