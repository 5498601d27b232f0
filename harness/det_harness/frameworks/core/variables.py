"""The environment of a command's processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from det_harness.core.connected import SECRET_VARIABLE
from det_harness.frameworks.core.machines import OnMachines
from det_harness.program.search_path import search_path
from det_harness.ranks.network import network_of, torch_variables
from det_native.core.cluster_info import JOB_VARIABLE
from det_native.schema.job import Gang, TrialJob

# A folder on the import path where `determined` is this module: it makes way for det_native's alias.
_DETERMINED = """
import os, sys
sys.path[:] = [each for each in sys.path if each != os.path.dirname(os.path.abspath(__file__))]
sys.path_importer_cache.clear()
del sys.modules["determined"]
import det_native.compat
import determined
"""


def variables_of(job: TrialJob, folder: Path, machines: OnMachines | None = None) -> dict[str, str]:
    """Return the environment variables of a command.

    Parameters
    ----------
    folder : Path
        A folder of the command's, with its ``job.json``.
    machines : OnMachines, optional
        The trial's machines, where there are several.
    """
    alias = folder / "alias"
    alias.mkdir()
    (alias / "determined.py").write_text(_DETERMINED, encoding="utf-8")
    work = str(Path(job.directory) / "work")
    variables = {
        **os.environ,
        JOB_VARIABLE: str(folder / "job.json"),
        "DET_EXPERIMENT_ID": str(job.experiment_id),
        "DET_TRIAL_ID": str(job.trial_id),
        "DET_TRIAL_RUN_ID": job.run_id,
        "DET_TRIAL_SEED": str(job.trial_seed),
        "DET_HPARAMS": json.dumps(job.hparams),
        "DET_EXPERIMENT_CONFIG": json.dumps(job.config),
        "DET_LATEST_CHECKPOINT": job.resume.uuid if job.resume is not None else "",
        "DET_STEPS_COMPLETED": str(job.resume.batch if job.resume is not None else 0),
        "PATH": search_path(),
        "PYTHONPATH": _joined(str(alias), work, os.environ.get("PYTHONPATH", "")),
        "PYTHONUNBUFFERED": "1",
        **_of_torch(job, machines),
    }
    slots = job.slots_here
    if slots > 1 and "OMP_NUM_THREADS" not in job.variables:  # a launcher starts a process for each
        variables["OMP_NUM_THREADS"] = variables["TF_NUM_INTRAOP_THREADS"] = str(max(1, job.threads // slots))
    return variables


def _of_torch(job: TrialJob, machines: OnMachines | None) -> dict[str, str]:
    """Return what ``torchrun`` takes where its arguments do not say it, and where torch's backends connect."""
    gang = job.gang or Gang(rank=0, size=1, local_rank=0, local_size=1, rendezvous="")
    own = {
        "PET_NPROC_PER_NODE": str(job.slots_here),
        "PET_MAX_RESTARTS": "0",
        **torch_variables(network_of(gang, job.config), gang),
    }
    if machines is None:
        return {**own, "PET_STANDALONE": "1"}  # on a free port of this machine
    return {
        **own,
        "PET_NNODES": str(gang.cross_size),
        "PET_NODE_RANK": str(gang.cross_rank),
        "PET_MASTER_ADDR": machines.addresses[0],
        "PET_MASTER_PORT": str(machines.port),
        SECRET_VARIABLE: machines.secret,
    }


def _joined(*paths: str) -> str:
    return os.pathsep.join(filter(None, paths))
