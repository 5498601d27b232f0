"""Job in, outcome out: runs the one job of a worker process, an attempt at a trial or the check of a bundle.

The standby of this process has read the job and hands it over. A check leaves ``result.json``, an attempt ``exit.json``
and its reports; both say by their exit code how it went.
"""

from __future__ import annotations

import logging
from pathlib import Path

from det_harness.ranks.gang import run_folder
from det_harness.ranks.own_network import get_rights, has_own_network
from det_harness.worker.attempt import EXIT_DONE, TrialRun, write_atomically
from det_harness.worker.forgiving import forgiving
from det_native.schema.job import CheckJob, TrialJob


def run_job(job: TrialJob | CheckJob) -> int:
    """Run a job in this process, which is the worker's own, and return its exit code.

    Output is redirected, the environment is set, and the working directory is ``<job.directory>/work`` already.

    Returns
    -------
    int
        0: done, or stopped as asked; 1: an error of the user's code; 3: an error of the worker's.
    """
    log_to_output()
    if isinstance(job, CheckJob):
        from det_harness.program.check import check_bundle

        write_atomically(Path(job.directory) / "result.json", check_bundle(job))
        return EXIT_DONE
    if job.gang is not None and job.gang.cross_size == 1 and has_own_network(job.config):
        get_rights(job.gang, run_folder(Path(job.directory), job.gang))
    return TrialRun(job).run()


def log_to_output() -> None:
    """Have what is logged written to the worker's output, each line once.

    A standby imports TensorFlow before this: TensorFlow then has a handler of its own beside ours.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=forgiving(2, heard=False))
    logging.getLogger("tensorflow").handlers.clear()
