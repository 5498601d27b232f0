"""Bodies of the REST interface that tell of the life of an experiment: what stays of it, and what is made of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from det_native.schema.bodies import Answer, Sent

Count = Annotated[int, Field(ge=0, le=1_000_000)]


class Deletion(Answer):
    """What the deletion of an experiment frees, or has freed; sizes are bytes on disk.

    `blobs` are contents of its program, of what it has logged and of files that it has written, which nothing else
    needs. `event_files` are those of TensorBoard, `output` is what its runs have left in their folders. `obstacles`
    say why it cannot be deleted, a sentence each. `deleted` is when it was, None before. `pending` says why its
    files are not removed yet, as the end of a sentence; empty if they are. The master tries again by itself.
    """

    experiment_id: int | str
    name: str = ""
    trials: int = 0
    checkpoints: int = 0
    checkpoint_bytes: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    artifacts: int = 0
    media: int = 0
    log_lines: int = 0
    event_file_bytes: int = 0
    output_bytes: int = 0
    obstacles: list[str] = Field(default_factory=list)
    deleted: str | None = None
    pending: str = ""

    @property
    def bytes(self) -> int:
        """All that it frees."""
        return self.checkpoint_bytes + self.blob_bytes + self.event_file_bytes + self.output_bytes


class ExperimentFork(Sent):
    """Body of POST /experiments/{id}/fork: the same program and data with another configuration.

    `config` is merged into the configuration of the experiment, section by section. `hyperparameters` replaces those
    of these names, by values or by ranges that a search draws from.
    """

    name: str | None = Field(default=None, min_length=1, max_length=1_000)
    config: dict[str, Any] = Field(default_factory=dict)
    hyperparameters: dict[str, Any] = Field(default_factory=dict)


class ExperimentContinuation(Sent):
    """Body of POST /experiments/{id}/continue: a new experiment that trains `length` of `unit` more.

    It begins with a checkpoint: that of the uuid, or the last one of a trial; by default the last one of the best
    trial.
    """

    unit: Literal["epochs", "batches", "records"]
    length: int = Field(ge=1, le=2**40)
    checkpoint: str | None = Field(default=None, pattern=r"^[0-9A-Za-z-]{1,64}$")
    trial: int | None = Field(default=None, ge=1, le=2**53 - 1)
    name: str | None = Field(default=None, min_length=1, max_length=1_000)


class Retention(Sent):
    """Body of PUT /experiments/{id}/gc-policy: how many checkpoints stay."""

    save_experiment_best: Count
    save_trial_best: Count
    save_trial_latest: Count


class Retained(Answer):
    """What a change of how many checkpoints stay has freed: how many are deleted, with so many bytes; `stay` remain.

    Of an experiment that goes on it is what is superfluous now; more may follow at its end.
    """

    deleted: int
    bytes: int
    stay: int
    going_on: bool = False
