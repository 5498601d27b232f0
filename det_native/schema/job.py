"""The one job that a worker process runs, as the launcher writes it on the worker's pipe (a line of JSON)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from det_native.schema.manifests import BundleManifest, CheckpointManifest


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CheckJob(_Model):
    """Load a bundle in a fresh process without running its cells; the answer is ``result.json`` in `directory`."""

    kind: Literal["check"] = "check"
    protocol: int
    directory: str
    blobs: str
    bundle: BundleManifest


class TrialJob(_Model):
    """Run one attempt at a trial.

    Attributes
    ----------
    directory : str
        The run's own folder: ``work/`` (the working directory of the user's code), ``spool/`` (reports not yet
        sent), ``output.log`` (stdout and stderr), ``exit.json`` (the last report, for a master that was away).
    blobs : str
        fsspec URI of the blob store.
    checkpoints : str
        fsspec URI under which checkpoints are published, one folder per uuid.
    resume : CheckpointManifest or None
        The checkpoint to continue from, found under `checkpoints`.
    token : str
        Bearer token of this run; it is good for this run's routes only.
    config, hparams, trial_seed
        See ``TrialEnvironment``.
    test : bool
        One minimal loop: one batch of validation is enough.
    devices : list of str
        Value of ``CUDA_VISIBLE_DEVICES``; empty on CPU slots.
    """

    kind: Literal["trial"] = "trial"
    protocol: int
    directory: str
    blobs: str
    bundle: BundleManifest
    bundle_id: str
    checkpoints: str
    resume: CheckpointManifest | None = None
    master_url: str
    token: str
    run_id: str
    experiment_id: int
    trial_id: int
    config: dict[str, Any]
    hparams: dict[str, Any]
    trial_seed: int
    rank: int = 0
    size: int = 1
    test: bool = False
    devices: list[str] = Field(default_factory=list)
    threads: int = 1
    variables: dict[str, str] = Field(default_factory=dict)
