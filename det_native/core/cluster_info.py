"""What a process of a trial knows of it: ``det.get_cluster_info()``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native.errors import shown_shortly

if TYPE_CHECKING:
    from det_native.schema.job import TrialJob

#: For ``logging.basicConfig(format=...)``, with Determined's parts: level, process, logger, message.
LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"
#: Names the file of the job, in the process of a command that trains.
JOB_VARIABLE = "DET_JOB"


@dataclass(frozen=True)
class TrialInfo:
    """The trial.

    Attributes
    ----------
    trial_id, experiment_id : int
        Their numbers; 0 where no master has them.
    trial_seed : int
        Of its random numbers.
    hparams : dict
        One value for each hyperparameter.
    config : dict
        The experiment's configuration, complete.
    steps_completed : int
        Of the checkpoint that the training continues from, 0 without one.
    trial_run_id : str
        The attempt at the trial.
    debug : bool
        False.
    inter_node_network_interface : str or None
        ``distributed.interface`` of the configuration.
    """

    trial_id: int
    experiment_id: int
    trial_seed: int
    hparams: dict[str, Any]
    config: dict[str, Any]
    steps_completed: int = 0
    trial_run_id: str = ""
    debug: bool = False
    inter_node_network_interface: str | None = None

    @property
    def _config(self) -> dict[str, Any]:
        """`config`, as published code for Determined names it."""
        return self.config


@dataclass(frozen=True)
class RendezvousInfo:
    """The machines of a trial: their addresses in order, the place of this one, and the slots of each."""

    container_addrs: list[str]
    container_rank: int
    container_slot_counts: list[int]


@dataclass(frozen=True)
class ResourcesInfo:
    """The GPUs of this machine's part of the trial."""

    gpu_uuids: list[str]


@dataclass
class ClusterInfo:
    """What a process of a trial knows of it, by Determined's names.

    Attributes
    ----------
    master_url : str
        Where the reports go.
    cluster_id : str
        The master's.
    agent_id : str
        This machine's name.
    slot_ids : list of int
        The slots of the trial on this machine.
    task_id, allocation_id : str
        The run.
    session_token : str
        Of the run; it is good for the routes of this run only.
    task_type : str
        ``"TRIAL"``.
    latest_checkpoint : str or None
        The checkpoint that the training is to continue from.
    """

    master_url: str = ""
    cluster_id: str = ""
    agent_id: str = ""
    slot_ids: list[int] = field(default_factory=list)
    task_id: str = ""
    allocation_id: str = ""
    session_token: str = field(default="", repr=False)
    task_type: str = "TRIAL"
    master_cert_name: str | None = None
    master_cert_file: str | None = None
    latest_checkpoint: str | None = None
    trial_info: TrialInfo | None = None
    rendezvous_info: RendezvousInfo | None = None
    resources_info: ResourcesInfo | None = None

    @property
    def trial(self) -> TrialInfo:
        """The trial."""
        if self.trial_info is None:
            raise shown_shortly(RuntimeError("This process belongs to no trial: get_cluster_info().trial is not set."))
        return self.trial_info

    @property
    def user_data(self) -> dict[str, Any]:
        """The section ``data`` of the configuration."""
        return dict(self.trial.config.get("data") or {})

    @property
    def container_addrs(self) -> list[str]:
        """The addresses of the trial's machines."""
        return self._rendezvous.container_addrs

    @property
    def container_rank(self) -> int:
        """The place of this machine among them."""
        return self._rendezvous.container_rank

    @property
    def container_slot_counts(self) -> list[int]:
        """How many slots the trial has on each."""
        return self._rendezvous.container_slot_counts

    @property
    def gpu_uuids(self) -> list[str]:
        """The GPUs of the trial on this machine; empty without any."""
        return [] if self.resources_info is None else self.resources_info.gpu_uuids

    @property
    def _rendezvous(self) -> RendezvousInfo:
        if self.rendezvous_info is None:
            return RendezvousInfo(["127.0.0.1"], 0, [max(1, len(self.slot_ids))])
        return self.rendezvous_info


def info_of(job: TrialJob) -> ClusterInfo:
    """Return what the process of a job knows of its trial."""
    import platform

    gang, resume = job.gang, job.resume
    here = gang.cross_rank if gang is not None else 0
    addresses = ["127.0.0.1"] * len(job.slots) if job.attached is None else job.attached.addresses
    if job.attached is None and gang is not None and gang.address:
        addresses[here] = gang.address
    return ClusterInfo(
        master_url=job.master_url,
        agent_id=platform.node(),
        slot_ids=list(range(job.slots[here])),
        task_id=job.run_id,
        allocation_id=job.run_id,
        session_token=job.token,
        latest_checkpoint=None if resume is None else resume.uuid,
        trial_info=TrialInfo(
            trial_id=job.trial_id,
            experiment_id=job.experiment_id,
            trial_seed=job.trial_seed,
            hparams=dict(job.hparams),
            config=job.config,
            steps_completed=0 if resume is None else resume.batch,
            trial_run_id=job.run_id,
            inter_node_network_interface=(job.config.get("distributed") or {}).get("interface"),
        ),
        rendezvous_info=RendezvousInfo(addresses, here, list(job.slots)),
        resources_info=ResourcesInfo([device for device in job.devices if device]),
    )


_info: Callable[[], ClusterInfo | None] | None = None


def set_info(info: Callable[[], ClusterInfo | None] | None) -> Callable[[], ClusterInfo | None] | None:
    """Say who knows of the trial of this process, None for nobody; returns who did before."""
    global _info
    before, _info = _info, info
    return before


def get_cluster_info() -> ClusterInfo | None:
    """Return what this process knows of the trial that it belongs to; None outside of any.

    Examples
    --------
    >>> info = det.get_cluster_info()
    >>> if info is not None and info.latest_checkpoint is not None:
    ...     with context.checkpoint.restore_path(info.latest_checkpoint) as path:
    ...         load(path)
    """
    if _info is not None:
        return _info()
    place = os.environ.get(JOB_VARIABLE)
    if not place:
        return None
    from det_native.schema.job import TrialJob

    return info_of(TrialJob.model_validate_json(Path(place).read_text(encoding="utf-8")))
