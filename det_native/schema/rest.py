"""Bodies of the master's REST interface, version 1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from det_native.schema.bodies import Answer, NumericAnswer, Sent
from det_native.schema.cluster import NodeInfo
from det_native.schema.manifests import CheckpointManifest, Framework, Sha256
from det_native.schema.outputs import Artifact as Artifact
from det_native.schema.outputs import ArtifactsReport as ArtifactsReport
from det_native.schema.outputs import LoggedMedium as LoggedMedium
from det_native.schema.outputs import MediaReport as MediaReport
from det_native.schema.outputs import Medium as Medium
from det_native.schema.reports import LONGEST_VALUE as LONGEST_VALUE
from det_native.schema.reports import LONGEST_VALUES as LONGEST_VALUES
from det_native.schema.reports import MOST_METRICS as MOST_METRICS
from det_native.schema.reports import AnyReport as AnyReport
from det_native.schema.reports import CaptureRow as CaptureRow
from det_native.schema.reports import CheckpointDeletedReport as CheckpointDeletedReport
from det_native.schema.reports import CheckpointReport as CheckpointReport
from det_native.schema.reports import ComparisonReport as ComparisonReport
from det_native.schema.reports import EpochReport as EpochReport
from det_native.schema.reports import EpochRow as EpochRow
from det_native.schema.reports import ExitReport as ExitReport
from det_native.schema.reports import MetricsReport as MetricsReport
from det_native.schema.reports import NoValidationReport as NoValidationReport
from det_native.schema.reports import Report as Report
from det_native.schema.reports import ReportBatch as ReportBatch
from det_native.schema.reports import ReportsAccepted as ReportsAccepted
from det_native.schema.reports import RowsReport as RowsReport
from det_native.schema.reports import StartedReport as StartedReport
from det_native.schema.reports import SystemReport as SystemReport
from det_native.schema.reports import SystemSample as SystemSample
from det_native.schema.reports import UserErrorInfo as UserErrorInfo
from det_native.schema.reports import WarningReport as WarningReport
from det_native.schema.states import CheckpointState, ExperimentState, MetricKind, TrialState
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


# What a worker reports. Every report of a run has the next sequence number, from 1.


class BestMetric(Answer):
    """Best value of the searcher's metric over the whole experiment so far, None before the first validation."""

    value: float | None


class ErrorBody(Answer):
    """Body of every refusal."""

    error: str
    problems: list[ProblemInfo] = Field(default_factory=list)
    missing: list[Sha256] = Field(default_factory=list)
