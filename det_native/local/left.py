"""What the processes of a trial have reported that nobody took: the process that ran them had died.

They end by themselves with a checkpoint. Their reports stay in ``trials/<n>/run/1/``: those of its first batch and
later ones in one file, and in ``spool/`` those that nobody was there for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from det_native.schema import rest
from det_native.schema.job import REPORTS_NAME
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.sealed import unseal
from det_native.schema.states import MetricKind

_REPORT: TypeAdapter[rest.AnyReport] = TypeAdapter(rest.Report)


@dataclass
class LeftReports:
    """The reports of one trial.

    Attributes
    ----------
    rows : dict of str to list of MetricRow
        By their kind, in order of batches.
    checkpoints : list of (str, CheckpointManifest)
        Location and manifest of each.
    samples : list of SystemSample
        What the processes used.
    epochs : list of EpochRow
        What the framework's own history has.
    media : list of LoggedMedium
        Pictures, tables, texts and histograms.
    """

    rows: dict[str, list[rest.MetricRow]] = field(default_factory=lambda: {kind.value: [] for kind in MetricKind})
    checkpoints: list[tuple[str, CheckpointManifest]] = field(default_factory=list)
    samples: list[rest.SystemSample] = field(default_factory=list)
    epochs: list[rest.EpochRow] = field(default_factory=list)
    media: list[rest.LoggedMedium] = field(default_factory=list)

    @property
    def batches(self) -> int:
        """How many were done, as far as they tell."""
        rows = [kept[-1].batch for kept in self.rows.values() if kept]
        return max([*rows, *(manifest.batch for _, manifest in self.checkpoints)], default=0)

    def metrics_at(self, batch: int) -> dict[str, Any]:
        """Return the metrics of the validation after a batch, empty if there was none."""
        return next((row.metrics for row in self.rows[MetricKind.VALIDATION] if row.batch == batch), {})


def left_reports(trial_folder: Path) -> LeftReports | None:
    """Return what is left in the folder of a trial, None if nothing is."""
    run = trial_folder / "run" / "1"
    if not run.is_dir():
        return None
    left = LeftReports()
    reports = {report.seq: report for path in (run / REPORTS_NAME, *run.glob("spool/*.jsonl")) for report in _in(path)}
    for _, report in sorted(reports.items()):
        if isinstance(report, rest.CheckpointReport):
            if Path(report.location).is_dir():
                left.checkpoints.append((report.location, report.manifest))
        elif isinstance(report, rest.SystemReport):
            left.samples += report.samples
        elif isinstance(report, rest.EpochReport):
            left.epochs.append(report.row)
        elif isinstance(report, rest.MediaReport):
            left.media += report.items
        elif isinstance(report, rest.MetricsReport):
            left.rows[report.kind] += [
                rest.MetricRow(batch=batch, metrics=report.row(i)) for i, batch in enumerate(report.batches)
            ]
    return left


def _in(path: Path) -> Iterator[rest.AnyReport]:
    """Yield the reports of a file, as far as they are complete."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield _REPORT.validate_json(unseal(line))
        except ValueError:  # the machine went down while it was written, or it is damaged
            return
