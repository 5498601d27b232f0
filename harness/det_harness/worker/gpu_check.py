"""Sees that a trial on a GPU slot trains on a GPU: the framework is asked what it sees, before the first batch."""

from __future__ import annotations

import logging
import os
import sys

from det_harness.frameworks.base import FrameworkHarness
from det_harness.frameworks.gpus import GpuSight
from det_harness.trial.services import Reporter
from det_native.errors import Problem, WorkerEnvironmentError
from det_native.frameworks import get_framework
from det_native.schema.job import TrialJob
from det_native.schema.nvml import driver_cuda

logger = logging.getLogger("det_harness")


def check_gpus(job: TrialJob, harness: FrameworkHarness, reporter: Reporter) -> None:
    """Refuse to train on the processors where the slot is a GPU.

    It is a warning with ``resources.allow_cpu``, and where the user's code has hidden the GPU.

    Raises
    ------
    WorkerEnvironmentError
        If the framework sees no GPU.
    """
    if not job.devices:
        return
    sight = harness.gpu_sight()
    if sight is None or sight.gpus:
        return
    problem = _problem(job, harness, sight)
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") != ",".join(job.devices)
    allowed = (job.config.get("resources") or {}).get("allow_cpu")
    if hidden:
        reporter.warning(
            f"It trains on the processors: the code has set CUDA_VISIBLE_DEVICES and hides {problem.where}."
        )
    elif allowed:
        _warn(reporter, f"It trains on the processors. {problem}")
    else:
        also = "To train on the processors of GPU slots, set resources.allow_cpu: true."
        raise WorkerEnvironmentError(
            "The trial has a GPU and would train on the processors:",
            [Problem(problem.where, problem.what, f"{problem.remedy} {also}".strip())],
        )


def _warn(reporter: Reporter, text: str) -> None:
    logger.warning("%s", text)
    reporter.warning(text)


def _problem(job: TrialJob, harness: FrameworkHarness, sight: GpuSight) -> Problem:
    framework = get_framework(harness.name)
    where = ", ".join(f"cuda:{device}" for device in job.devices)
    driver = driver_cuda()
    takes = f"; the driver takes CUDA up to {driver}" if driver is not None else ""
    command = framework.gpu_command(sys.executable, sight.version)
    remedy = f"Install a build for it: {command}" if command else ""
    return Problem(where, f"{framework.title} {sight.version} sees no GPU: {sight.why_none}{takes}.", remedy)
