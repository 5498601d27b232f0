"""What a worker reports, in the batches in which it is sent, and what it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, field_validator

from det_native.schema.bodies import Answer, Sent
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.outputs import ArtifactsReport, MediaReport
from det_native.schema.states import ExitReason, MetricKind


class CaptureRow(Sent):
    """A row of the capture report: what travels, how, how large, from which cell, and whether the master has it."""

    what: str
    how: str
    size: int
    cell: str = ""
    status: Literal["new", "already there", "not sent"] = "new"
    note: str = ""


class UserErrorInfo(Answer):
    """What made a run fail: an exception of the user's code, or something else.

    `traceback` is the text to show: the user's frames, with cells by number and line. It is empty for what is not the
    user's: a worker that was killed, say. `rank` is the process in which it was raised, None where there was one only;
    `role` is what that process is, where processes have roles (``worker 1``).
    """

    type: str
    message: str
    traceback: str
    cell: int | None = None
    file: str | None = None
    line: int | None = None
    batch: int = 0
    rank: int | None = None
    role: str | None = None

    @property
    def process(self) -> str:
        """Which process it was raised in: ``"worker 1"``, ``"rank 1"``, or empty where there was one only."""
        return self.role or ("" if self.rank is None else f"rank {self.rank}")


Finite = Annotated[float, Field(allow_inf_nan=False)]


class SystemSample(Answer):
    """What a process of a trial, and all that it has started, used since the sample before; at `time`, seconds since
    1970. `rank` is which process. What could not be measured is not in `metrics`. Their names and units are in
    ``docs/cluster.md``.
    """

    time: Finite = Field(ge=0, lt=1e11)
    rank: int = Field(default=0, ge=0, le=100_000)
    metrics: dict[str, Finite] = Field(max_length=200)


NOTICE_LENGTH = 1_000
# Names of metrics that one report may have, and so one batch.
MOST_METRICS = 1_000
# Characters that the names of one report may have together. Each row repeats them.
LONGEST_NAMES = 256_000
# Characters of JSON that the value of a metric may have which is no number, and all of one report together.
LONGEST_VALUE = 32_768
LONGEST_VALUES = 131_072


class StartedReport(Sent):
    """The harness has unpacked the bundle; training continues after `batch` batches, to `length` if it is known.

    Only where the data is can be told how many batches an epoch of a loader or of ``fit()`` has. `notice` says why it
    does not continue from the checkpoint that it was to.
    """

    type: Literal["started"] = "started"
    seq: int = Field(ge=1)
    batch: int = Field(ge=0)
    length: int | None = Field(default=None, ge=1)
    notice: str = Field(default="", max_length=NOTICE_LENGTH)


class MetricsReport(Sent):
    """Rows of metrics by column: ``metrics[name][i]`` was measured after ``batches[i]`` batches (None: not there).

    What is no number, of metrics that trials are not compared by, is in `values`, in the same way. Not-a-number and
    infinities travel as strings.
    """

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")

    type: Literal["metrics"] = "metrics"
    seq: int = Field(ge=1)
    kind: MetricKind
    batches: list[int] = Field(max_length=10_000)
    metrics: dict[str, list[float | None]] = Field(max_length=MOST_METRICS)
    values: dict[str, list[JsonValue]] = Field(default_factory=dict, max_length=MOST_METRICS)

    @field_validator("metrics")
    @classmethod
    def _names_are_not_too_long(cls, metrics: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
        length = sum(map(len, metrics))
        if length > LONGEST_NAMES:
            raise ValueError(f"the names have {length:,} characters together; at most {LONGEST_NAMES:,} are taken")
        return metrics

    def row(self, index: int) -> dict[str, Any]:
        """Return all that was measured after ``batches[index]`` batches, by name."""
        columns: list[tuple[str, Sequence[Any]]] = [*self.metrics.items(), *self.values.items()]
        return {name: column[index] for name, column in columns if column[index] is not None}


class EpochRow(Answer):
    """What a framework's own history has of one epoch: all that callbacks saw at its end, and what they put there.

    Attributes
    ----------
    batch : int
        Batches done at its end.
    epoch : int
        Its number, as the framework counts them: Keras from 0, or from ``initial_epoch``.
    logs : dict
        Name to number, in the order of the framework; what numpy has is a type with its values, ``{"float32": [1.0]}``.
        Not-a-number and infinities are words.
    params : dict
        What the framework tells its callbacks of the whole training: ``epochs``, ``steps``.
    """

    batch: int = Field(ge=0)
    epoch: int = Field(ge=0)
    logs: dict[str, Any] = Field(max_length=MOST_METRICS)
    params: dict[str, int] = Field(default_factory=dict, max_length=20)


class EpochReport(Sent):
    """An epoch has ended. Its metrics are reported as rows, too; this is the history of whoever called ``fit()``."""

    type: Literal["epoch"] = "epoch"
    seq: int = Field(ge=1)
    row: EpochRow


class CheckpointReport(Sent):
    """A checkpoint is complete at `location`."""

    type: Literal["checkpoint"] = "checkpoint"
    seq: int = Field(ge=1)
    location: str
    manifest: CheckpointManifest


class CheckpointDeletedReport(Sent):
    """The user's code has deleted a checkpoint of its trial; its files are gone."""

    type: Literal["checkpoint_deleted"] = "checkpoint_deleted"
    seq: int = Field(ge=1)
    uuid: str = Field(max_length=64)


class WarningReport(Sent):
    """Something happened in the training that is no failure: the loss became NaN, say."""

    type: Literal["warning"] = "warning"
    seq: int = Field(ge=1)
    text: str = Field(max_length=2_000)


class ComparisonReport(Sent):
    """Trials are compared by this metric: nobody has said by which, and the training has shown its metrics."""

    type: Literal["comparison"] = "comparison"
    seq: int = Field(ge=1)
    name: str = Field(min_length=1, max_length=NOTICE_LENGTH)
    smaller_is_better: bool = True


class NoValidationReport(Sent):
    """Nothing validates: what is reported as validations are metrics of the training, by which trials are compared."""

    type: Literal["no_validation"] = "no_validation"
    seq: int = Field(ge=1)


class RowsReport(Sent):
    """Rows for the experiment's report: inputs that the worker has put right, or that differ there."""

    type: Literal["rows"] = "rows"
    seq: int = Field(ge=1)
    rows: list[CaptureRow] = Field(max_length=300)


class SystemReport(Sent):
    """What the processes of the run have used. It says nothing of how far the training is."""

    type: Literal["system"] = "system"
    seq: int = Field(ge=1)
    samples: list[SystemSample] = Field(max_length=10_000)


class ExitReport(Sent):
    """The last report of a run.

    `early` says that the user's code has ended the training before its length. `last_row` is the batch of the last
    training metrics that this run has reported, -1 if it has reported none, None where that is not known.
    """

    type: Literal["exit"] = "exit"
    seq: int = Field(ge=1)
    reason: ExitReason
    batch: int = Field(ge=0)
    error: UserErrorInfo | None = None
    early: bool = False
    last_row: int | None = None


AnyReport = (
    StartedReport
    | MetricsReport
    | EpochReport
    | CheckpointReport
    | CheckpointDeletedReport
    | WarningReport
    | ComparisonReport
    | NoValidationReport
    | RowsReport
    | SystemReport
    | ArtifactsReport
    | MediaReport
    | ExitReport
)
Report = Annotated[AnyReport, Field(discriminator="type")]


class ReportBatch(Sent):
    """Body of POST /runs/{run_id}/reports.

    `waiting` is what the run waits for now, empty for nothing; it is left out where that is not new.

    `progress` counts the steps that the worker has done, of training, validation and saving; it moves while the reports
    are still being gathered, and for a worker that has none.
    """

    progress: int | None = None
    reports: list[Report] = Field(max_length=1_000)
    waiting: str | None = Field(default=None, max_length=NOTICE_LENGTH)


class ReportsAccepted(Answer):
    """Everything up to `through` is stored. `stop` asks the worker to checkpoint and end.

    For `interval` seconds it may gather rows of training metrics before it sends the next: the more runs there are, the
    longer.
    """

    through: int
    stop: bool = False
    interval: float = 0.0
