"""A run in a process of the user's, mostly a notebook's kernel, as its master records it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from det_native.schema.bodies import Answer, Sent
from det_native.schema.manifests import BundleManifest, CheckpointManifest, Framework, Sha256
from det_native.schema.rest import CaptureRow

#: In the folder of a run: the KernelRun, for the next master where none was there to take it in.
REQUEST_NAME = "kernel.json"


class KernelProcess(BaseModel):
    """The process that trains.

    Attributes
    ----------
    start : str
        What tells it from a later one of the same number.
    namespace : str
        Where its number counts: another machine or container has numbers of its own.
    in_kernel : bool
        Whether it is a kernel of Jupyter.
    kernel_id : str or None
        Its id on the Jupyter server that started it.
    interruptible : bool
        Whether an interrupt reaches the training, which ends then with a checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    start: str
    namespace: str = ""
    in_kernel: bool = False
    kernel_id: str | None = None
    interruptible: bool = True


class KernelRun(Sent):
    """Body of POST /kernel-runs: an experiment of one trial, whose only run has begun in a process of the user's.

    Attributes
    ----------
    run_id : str
        Made by the process (a ULID); a repeat with the same one changes nothing.
    token : str
        Made by the process, too: its reports come with it.
    config : dict
        Complete.
    bundle_id : str or None
        The program, where the master has it; None without one, or where `bundle` is sent.
    bundle : BundleManifest or None
        The program, whose blobs the master has, or, of a run that it takes in from its folder, lie beside that.
    no_program : str
        Why the code could not be captured; empty where it was.
    length : int
        Batches of the trial, 0 where the training says by itself how long it is.
    directory : str
        The run's folder on the machine of the process: ``spool/``, ``output.log``, ``exit.json``, as a worker's.
    started : str
        When the training began.
    external : str
        By what the training is known outside: one of the same name that was recorded before goes on with this run.
    """

    protocol: int
    run_id: str
    token: str = Field(repr=False)
    config: dict[str, Any]
    framework: Framework
    hparams: dict[str, Any]
    trial_seed: int
    length: int = 0
    bundle_id: Sha256 | None = None
    bundle: BundleManifest | None = None
    no_program: str = ""
    report: list[CaptureRow] = Field(default_factory=list)
    test: bool = False
    process: KernelProcess
    directory: str
    started: str
    external: str = ""


class KernelRunRecorded(Answer):
    """Under which numbers a kernel's run is recorded, and the checkpoint that it is to continue from."""

    experiment_id: int
    trial_id: int
    resume: CheckpointManifest | None = None
