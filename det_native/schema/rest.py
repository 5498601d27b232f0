"""Bodies of the master's REST interface, version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, field_validator

from det_native.schema.bodies import Answer, NumericAnswer, Sent
from det_native.schema.cluster import NodeInfo
from det_native.schema.manifests import CheckpointManifest, Framework, Sha256
from det_native.schema.outputs import Artifact as Artifact
from det_native.schema.outputs import ArtifactsReport as ArtifactsReport
from det_native.schema.outputs import LoggedMedium as LoggedMedium
from det_native.schema.outputs import MediaReport as MediaReport
from det_native.schema.outputs import Medium as Medium
from det_native.schema.states import CheckpointState, ExitReason, ExperimentState, MetricKind, TrialState
from det_native.schema.trial_names import trial_name


class Health(Answer):
    """Who the master is, which everybody may know."""

    status: Literal["ok"] = "ok"
    version: str
    protocol: int


class Introduction(Answer):
    """The master's half of an introduction (``schema.introduction``): its number, where it was called, its proof."""

    nonce: str
    address: str
    proof: str


class ClientProof(Sent):
    """The client's half of it."""

    proof: str = Field(max_length=64)


class SlotInfo(Answer):
    """A slot of the cluster: a GPU, of which model and memory (bytes) may be known, or a share of the CPU.

    `trial_number` is the number of the trial that holds it, inside the experiment `experiment_id`. Of a cluster of
    several machines, `node` is the name of the machine, `accelerator` the type of its GPUs as the engine calls it.
    """

    id: str
    device: Literal["cuda", "cpu"]
    node: str = ""
    accelerator: str = ""
    trial_id: int | None = None
    experiment_id: int | None = None
    trial_number: int | None = None
    name: str = ""
    memory: int | None = None

    @property
    def held_by(self) -> str:
        """The trial that holds it, ``7.2``; empty where none does."""
        if self.trial_id is None:
            return ""
        if self.experiment_id is None or self.trial_number is None:  # from a version that does not tell them
            return str(self.trial_id)
        return trial_name(self.experiment_id, self.trial_number)

    @property
    def model(self) -> str:
        """The GPU's model with its memory, ``NVIDIA H100 (80.0 GB)``; empty where the driver tells nothing."""
        if not self.name or self.memory is None:
            return self.name
        return f"{self.name} ({self.memory / 1e9:.1f} GB)"


class MasterInfo(Answer):
    """Who the master is and what it has; `outage` says why it can store nothing, and since when, if that is so.

    `experiments` are all that are not archived. Of a master with another `launcher` than ``local`` its `slots` are of
    several machines, `nodes`; `outage` also says why its cluster cannot be used, `remarks` who else uses it, and
    `dashboard` is the address of the cluster's own page, if it has one.
    """

    version: str
    protocol: int
    pid: int
    python: str
    started: str
    home: str
    slots: list[SlotInfo]
    standbys: dict[str, int] = Field(default_factory=dict)
    active_experiments: int = 0
    experiments: int = 0
    outage: str = ""
    launcher: str = "local"
    nodes: list[NodeInfo] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    dashboard: str = ""


class Cleaned(Answer):
    """Bytes that the files of the database took and take, and how many lines of output were deleted."""

    before: int
    after: int
    lines: int = 0


class HashList(Sent):
    """Hashes of blobs."""

    hashes: list[Sha256] = Field(max_length=200_000)


class BundleCreated(Answer):
    """A bundle's id and whether it has already passed the check in a fresh process."""

    id: Sha256
    checked: bool


class ProblemInfo(Sent):
    """One thing that is wrong, where, and what would be right."""

    where: str
    what: str
    remedy: str = ""


class BundleChecked(Answer):
    """Result of loading a bundle in a fresh process without running its cells."""

    ok: bool
    problems: list[ProblemInfo] = Field(default_factory=list)
    notices: list[str] = Field(default_factory=list)


class CaptureRow(Sent):
    """A row of the capture report: what travels, how, how large, from which cell, and whether the master has it."""

    what: str
    how: str
    size: int
    cell: str = ""
    status: Literal["new", "already there", "not sent"] = "new"
    note: str = ""


class ExperimentCreate(Sent):
    """Body of POST /experiments. The ``Idempotency-Key`` header makes a repeat return the first experiment."""

    protocol: int
    config: dict[str, Any]
    bundle_id: Sha256
    report: list[CaptureRow] = Field(default_factory=list)
    test: bool = False


class ResourcesChange(Sent):
    """What may change of the resources of an experiment while it goes on; what is left out stays as it is.

    A `max_slots` of None takes the limit away.
    """

    priority: int | None = Field(default=None, ge=1, le=99)
    weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_slots: int | None = Field(default=None, ge=1)


Label = Annotated[str, Field(min_length=1, max_length=200)]


class ExperimentChange(Sent):
    """Body of PATCH /experiments/{id}; what is left out stays as it is.

    Everything but `resources` may change at any time, also once the experiment has ended. `labels` are all that it has
    then; `add_labels` and `remove_labels` change single ones, so that two people who label do not undo each other.
    With `notes_before`, `notes` are taken only in place of those: 409 if somebody has written others meanwhile.
    """

    resources: ResourcesChange | None = None
    name: str | None = Field(default=None, min_length=1, max_length=1_000)
    description: str | None = Field(default=None, max_length=10_000)
    notes: str | None = Field(default=None, max_length=1_000_000)
    notes_before: str | None = Field(default=None, max_length=1_000_000)
    project: str | None = Field(default=None, max_length=1_000)
    labels: list[Label] | None = Field(default=None, max_length=1_000)
    add_labels: list[Label] = Field(default_factory=list, max_length=1_000)
    remove_labels: list[Label] = Field(default_factory=list, max_length=1_000)
    archived: bool | None = None


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


class Experiment(Answer):
    """An experiment. `test` says that it is one minimal loop only.

    `started` is when its first trial got slots, None before. `seconds_left` is how long it will take from here if it
    goes on as it does, None where that is not known: before the first progress, while it is paused, once it has ended.
    `failed_trials` are among `trials`: a search goes on without them. `waits_for` says which slots an active experiment
    that has none waits for, and who has them; it is empty else. `notice` says what else trials of it wait for.
    `warning` is that of the first trial that has one. `validates` is False where nothing validates: trials are compared
    by metrics of the training then, and the rows that stand for validations have these. `archived` experiments are
    not listed unless that is asked for. `project` is a path of folders, ``vision/digits``, or empty. `forked_from` is
    the experiment whose program it runs with another configuration. `in_kernel` says that it trains in a process of the
    user's, mostly a notebook's kernel, and not on the slots of the master.
    """

    id: int
    name: str
    state: ExperimentState
    config: dict[str, Any]
    bundle_id: Sha256 | None
    framework: Framework
    metric: str
    smaller_is_better: bool
    progress: float = Field(ge=0, le=1)
    test: bool = False
    trials: int
    failed_trials: int = 0
    notice: str = ""
    best_validation: float | None
    error: UserErrorInfo | None
    created: str
    started: str | None = None
    ended: str | None
    seconds_left: float | None = None
    waits_for: str = ""
    warning: str | None = None
    validates: bool = True
    archived: bool = False
    description: str = ""
    labels: list[str] = Field(default_factory=list)
    project: str = ""
    forked_from: int | None = None
    in_kernel: bool = False

    @property
    def main_kind(self) -> MetricKind:
        """The kind of metrics that says most: of validations, or without any of the training."""
        return MetricKind.VALIDATION if self.validates else MetricKind.TRAINING


class ExperimentDetail(Experiment):
    """An experiment with its capture report. `devices` has the model and memory of the GPUs of its master, by slot.

    `notes` are Markdown that people have written of it. `notebook` is the hash of the executed notebook whose
    cell began it; None where a cell of an open kernel or a script did. `no_program` says why its code was not kept,
    where it was not.
    """

    report: list[CaptureRow] = Field(default_factory=list)
    notes: str = ""
    notebook: str | None = None
    no_program: str = ""
    devices: dict[str, str] = Field(default_factory=dict)


class Trial(Answer):
    """A trial of an experiment.

    `slots` are those that it holds at the moment: it runs as one process on each. `notice` is what is to be known of it
    beside its state: what it waits for, or that it has continued from an earlier checkpoint than its last one.
    `warning` is what has happened in its training and is no failure, such as a loss that became NaN. `warm_start` is
    the checkpoint of another trial whose weights it begins with. `stages` are the lengths to which a search that
    decides in stages has had it trained, in the unit of the search, the last being that of now; empty for others.
    `best_at` is when `best_validation` was reported; None where that is not known. `number` is its place in its
    experiment, from 1, which is what people read; 0 from a version that does not tell it. `stopped_early` says that it
    has completed less than the whole length, since its search went on with others.
    """

    id: int
    number: int = 0
    experiment_id: int
    state: TrialState
    hparams: dict[str, Any]
    seed: int
    restarts: int
    run_id: str | None
    batches: int
    target_batches: int
    best_validation: float | None
    error: UserErrorInfo | None
    created: str
    started: str | None
    ended: str | None
    slots: list[str] = Field(default_factory=list)
    notice: str = ""
    warning: str | None = None
    warm_start: str | None = None
    stages: list[int] = Field(default_factory=list)
    stopped_early: bool = False
    best_at: str | None = None

    @property
    def shown_number(self) -> int:
        """Its number inside the experiment, which is what people read; its id where that is not told."""
        return self.number or self.id


class MetricRow(NumericAnswer):
    """Metrics after `batch` batches, counted from 1. Not-a-number and infinities travel as strings."""

    batch: int
    metrics: dict[str, Any]


class MetricSeries(NumericAnswer):
    """A down-sampled series: per bucket the middle batch, and minimum, maximum and mean of the values."""

    name: str
    batch: list[int]
    minimum: list[float | None]
    maximum: list[float | None]
    mean: list[float | None]


class MetricCurve(NumericAnswer):
    """A metric of one trial, down-sampled: per bucket the middle batch, and minimum, maximum and mean of the values.

    Of at most as many rows as buckets were asked for, each is a bucket of its own. `last` is the newest value as it was
    reported, None where the last row has none; of a metric that is a mean over its epoch, that mean, while the curve is
    of what single batches, or else whole epochs, have contributed.
    """

    trial_id: int
    kind: MetricKind
    name: str
    batch: list[int]
    minimum: list[float | None]
    maximum: list[float | None]
    mean: list[float | None]
    last: float | None = None


Finite = Annotated[float, Field(allow_inf_nan=False)]


class SystemSample(Answer):
    """What a process of a trial, and all that it has started, used since the sample before; at `time`, seconds since
    1970. `rank` is which process. What could not be measured is not in `metrics`. Their names and units are in
    ``docs/cluster.md``.
    """

    time: Finite = Field(ge=0, lt=1e11)
    rank: int = Field(default=0, ge=0, le=100_000)
    metrics: dict[str, Finite] = Field(max_length=200)


class Checkpoint(NumericAnswer):
    """A checkpoint; `metrics` are the validation metrics of its weights, empty if these were not validated.

    They are those at its batch, unless the end of the training has changed the weights. Not-a-number and infinities in
    them travel as strings. `metadata` is what people have noted of it. A `pinned` one stays, whatever the configuration
    says of how many are kept. `trial_number` is the number of its trial inside the experiment; 0 from a version that
    does not tell it.
    """

    uuid: str
    trial_id: int
    experiment_id: int
    batch: int
    state: CheckpointState
    size: int
    metrics: dict[str, Any]
    location: str
    created: str
    manifest: CheckpointManifest
    metadata: dict[str, Any] = Field(default_factory=dict)
    pinned: bool = False
    trial_number: int = 0

    @property
    def shown_trial(self) -> int:
        """Number of its trial inside the experiment, which is what people read."""
        return self.trial_number or self.trial_id


class LogLine(Answer):
    """A line of a trial's log; `id` increases over the whole master.

    `rank` is the process that has written it, None where there was one only, and for the master's own lines;
    `role` is what that process is, where processes have roles (``worker 1``).
    """

    id: int
    trial_id: int
    run_id: str
    time: str
    stream: Literal["stdout", "stderr", "system"]
    text: str
    rank: int | None = None
    role: str | None = None

    def __str__(self) -> str:
        return self.text


class Event(Answer):
    """Something that happened; `id` increases over the whole master and is the SSE event id. It is 0, and the SSE event
    has none, where nothing can be stored: then the event is for those who listen at the moment.

    Types: ``experiment`` (data: the Experiment), ``trial`` (data: the Trial), ``metrics`` (data: kind, last batch, last
    row), ``checkpoint`` (data: the Checkpoint, also when it is deleted), ``artifacts`` (data: paths), ``media`` (data:
    how many, the last id and batch, names), ``error`` (data: UserErrorInfo, shown at once even if a retry follows).
    """

    id: int
    type: Literal["experiment", "trial", "metrics", "checkpoint", "artifacts", "media", "error"]
    experiment_id: int
    trial_id: int | None
    data: dict[str, Any]


NOTICE_LENGTH = 1_000
# Names of metrics that one report may have, and so one batch.
MOST_METRICS = 1_000
# Characters that the names of one report may have together. Each row repeats them.
LONGEST_NAMES = 256_000
# Characters of JSON that the value of a metric may have which is no number, and all of one report together.
LONGEST_VALUE = 32_768
LONGEST_VALUES = 131_072

# What a worker reports. Every report of a run has the next sequence number, from 1.


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


class BestMetric(Answer):
    """Best value of the searcher's metric over the whole experiment so far, None before the first validation."""

    value: float | None


class ErrorBody(Answer):
    """Body of every refusal."""

    error: str
    problems: list[ProblemInfo] = Field(default_factory=list)
    missing: list[Sha256] = Field(default_factory=list)
