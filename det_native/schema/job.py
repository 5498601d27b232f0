"""The one job that a worker process runs, as the launcher writes it on the worker's pipe (a line of JSON)."""

from __future__ import annotations

import signal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from det_native.schema.manifests import BundleManifest, CheckpointManifest, Sha256

# Exit code of a process that ended because another one of its trial had failed.
EXIT_RANK_FAILED = 4
# Has a worker write the stack of every thread to its output; one that users' code has no use for.
STACKS_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR2


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WarmStartSource(_Model):
    """A checkpoint of another trial, the fsspec URI under which it is published, and options for that.

    With `optimizers`, the states of its optimizers and learning rate schedules are taken over, too.
    """

    checkpoints: str
    manifest: CheckpointManifest
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    optimizers: bool = False


class CheckJob(_Model):
    """Load a bundle in a fresh process without running its cells; the answer is ``result.json`` in `directory`."""

    kind: Literal["check"] = "check"
    protocol: int
    directory: str
    blobs: str
    data: str = ""
    storage_options: dict[str, Any] = Field(default_factory=dict, repr=False)
    marks: dict[str, str] = Field(default_factory=dict)
    cache: str = ""
    bundle: BundleManifest
    variables: dict[str, str] = Field(default_factory=dict)


class Gang(_Model):
    """The place of one process among those that run a trial together, and where they meet.

    Attributes
    ----------
    rank, size : int
        Of all processes of the trial; rank 0 reports to the master.
    local_rank, local_size : int
        Of those on this machine.
    cross_rank, cross_size : int
        This machine among the machines.
    local_sizes : list of int
        How many of the processes each machine has, in the order of machines.
    rendezvous : str
        Path of a file that rank 0 writes atomically: the ``host:port`` of its store. The others wait for it.
    role : str or None
        What the process is (``worker 1``), where processes have roles.
    address : str
        IP address at which the machines of the others reach this one; empty where all processes are on one machine,
        which then meet on loopback. `rendezvous` is then a file of this machine, like all files of the run that
        ``schema.ranks.SHARED_FILES`` names: what a process writes there, the launcher copies to the other machines.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int = 0
    cross_size: int = 1
    local_sizes: list[int] = Field(default_factory=list)
    rendezvous: str
    role: str | None = None
    address: str = ""


class AttachedProcess(_Model):
    """How a process of a command reaches its worker.

    Attributes
    ----------
    socket : str
        Where the worker listens.
    key : str
        What both know, in hexadecimal digits.
    tensorboard : str
        Folder of the trial's event files; empty for none.
    addresses : list of str
        Of the trial's machines, in their order.
    notice : str
        Why ``TrialJob.resume`` is an earlier checkpoint than the last one; empty where it is not.
    """

    socket: str
    key: str = Field(repr=False)
    tensorboard: str = ""
    addresses: list[str] = Field(default_factory=lambda: ["127.0.0.1"])
    notice: str = ""


class TrialJob(_Model):
    """Run one attempt at a trial.

    Attributes
    ----------
    directory : str
        The run's own folder: ``work/`` (the working directory of the user's code), ``spool/`` (reports not yet
        sent), ``output.log`` (stdout and stderr), ``exit.json`` (the last report, for a master that was away).
    blobs : str
        fsspec URI of the blob store.
    outputs : str
        fsspec URI of the blob store for what the code writes; `blobs` where it is empty.
    data : str
        Folder or fsspec URI of the store of data; empty where there is none.
    storage_options : dict
        What fsspec takes beside the URIs of blobs, outputs and data, secrets among it; empty where the machine has its
        own credentials.
    marks : dict of str to str
        Storages that the machine has to reach, where it may be another one than the master's: by their addresses, the
        mark by which a folder is known (see ``storage.reached``).
    cache : str
        Folder of this machine where ``blobs/`` and ``data/`` that come from another one are kept for its next workers.
    checkpoints : str
        fsspec URI under which checkpoints are published, one folder per uuid.
    checkpoint_options : dict
        What fsspec takes beside that URI, secrets among it.
    resume : CheckpointManifest or None
        The checkpoint to continue from, found under `checkpoints`; as the master's database has it.
    manifests : dict of str to str
        SHA-256 of the manifests of the trial's checkpoints, by uuid. What the storage has under these names is used
        only if its manifest has this hash, and nothing else in it is.
    warm_start : WarmStartSource or None
        The checkpoint whose weights the trial begins with where it has none of its own.
    earlier : dict of str to WarmStartSource
        Checkpoints by uuid that earlier training calls of the program have made.
    master_url : str
        Where the reports go.
    home : str
        The master's folder, whose ``runtime.json`` says where the one is that runs now; empty where it is not on this
        machine.
    token : str
        Bearer token of this run; it is good for this run's routes only.
    config, hparams, trial_seed
        See ``TrialEnvironment``.
    stage : dict or None
        See ``TrialEnvironment``.
    gang : Gang or None
        This process among those of the run; None if it is the only one.
    test : bool
        One minimal loop: one batch of validation is enough.
    devices : list of str
        Value of ``CUDA_VISIBLE_DEVICES``; empty on CPU slots, and on a cluster until the launcher fills them in.
    threads : int
        It computes with so many; 0 on a cluster until the launcher fills in the share of the machine where it runs.
    slots : list of int
        How many slots the trial has on each of its machines, in their order.
    attached : AttachedProcess or None
        In the file that the processes of a command are given (``DET_JOB``), which else is the worker's job.
    """

    kind: Literal["trial"] = "trial"
    protocol: int
    directory: str
    blobs: str
    outputs: str = ""
    data: str = ""
    storage_options: dict[str, Any] = Field(default_factory=dict, repr=False)
    marks: dict[str, str] = Field(default_factory=dict)
    cache: str = ""
    bundle: BundleManifest
    bundle_id: str
    checkpoints: str
    checkpoint_options: dict[str, Any] = Field(default_factory=dict, repr=False)
    resume: CheckpointManifest | None = None
    manifests: dict[str, Sha256] = Field(default_factory=dict)
    warm_start: WarmStartSource | None = None
    earlier: dict[str, WarmStartSource] = Field(default_factory=dict)
    master_url: str
    home: str = ""
    token: str = ""
    run_id: str
    experiment_id: int
    trial_id: int
    config: dict[str, Any]
    hparams: dict[str, Any]
    trial_seed: int
    stage: dict[str, int] | None = None
    gang: Gang | None = None
    test: bool = False
    devices: list[str] = Field(default_factory=list)
    threads: int = 1
    slots: list[int] = Field(default_factory=lambda: [1])
    attached: AttachedProcess | None = None
    variables: dict[str, str] = Field(default_factory=dict)

    @property
    def slots_here(self) -> int:
        """How many slots the trial has on this machine; work without slots counts as one."""
        return max(1, self.slots[0 if self.gang is None else self.gang.cross_rank])

    @property
    def machines(self) -> int:
        """On how many machines the trial runs."""
        return 1 if self.gang is None else self.gang.cross_size
