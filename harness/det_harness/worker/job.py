"""Job in, outcome out: runs the one job of a worker process, an attempt at a trial or the check of a bundle.

The standby of this process has read the job and hands it over. A check leaves ``result.json``, an attempt ``exit.json``
and its reports; both say by their exit code how it went.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TextIO

from det_harness.ranks.gang import run_folder
from det_harness.ranks.own_network import get_rights, has_own_network
from det_harness.trial.ending import write_atomically
from det_harness.worker.attempt import EXIT_DONE, TrialRun
from det_native.logged.place import only_logged
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


class _LogHandler(logging.StreamHandler[TextIO]):
    """Writes to the log, and not to the cell that waits."""

    def emit(self, record: logging.LogRecord) -> None:
        with only_logged():
            super().emit(record)


def log_to_output() -> None:
    """Have what the harness logs written to the worker's output; the program configures logging as in a kernel.

    A standby imports TensorFlow before this: TensorFlow then has a handler for the output of the standby. What it logs
    about our steps is for the log only.
    """
    handler = _LogHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.root.handlers.clear()
    for name in ("det_native", "det_harness", "tensorflow"):
        logger = logging.getLogger(name)
        if name != "tensorflow" or logger.handlers:
            logger.handlers, logger.propagate = [handler], False
            logger.setLevel(logging.INFO)
