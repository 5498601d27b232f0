"""Runs the cells of a bundle up to the recorded call, to see whether it is given what it was given in the notebook."""

from __future__ import annotations

import importlib
import logging
import os
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_of
from det_harness.program.earlier import files_on_worker
from det_harness.program.inputs import InputCheck
from det_harness.program.runner import ProgramRunner
from det_harness.program.stopping_host import StoppingHost
from det_harness.trial import rng
from det_native.errors import InputDiffersError
from det_native.frameworks import get_framework
from det_native.runtime import hosted
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import CheckJob
from det_native.schema.rest import BundleChecked, ProblemInfo
from det_native.storage.cached_blobs import blobs_of_job
from det_native.storage.linked_data import link_files
from det_native.storage.unpack import unpack_bundle

logger = logging.getLogger("det_harness")

_NICE = 10  # the trials go first


def dry_run(job: CheckJob) -> BundleChecked:
    """Run the cells in this process, which is for nothing else, and compare; nothing is trained.

    Only a difference is told. Whatever else goes wrong, the trial will tell.
    """
    proof = job.bundle.proof
    if proof is None or job.config is None:
        return BundleChecked(ok=True)
    os.nice(_NICE)
    work = Path(job.directory) / "work"
    blobs = blobs_of_job(job.blobs, job.storage_options, job.cache)
    unpack_bundle(job.bundle, blobs, work)
    link_files(job.bundle.links, job.data, work, job.storage_options, job.cache)
    importlib.import_module("det_native.compat")
    importlib.import_module(get_framework(job.bundle.program.framework).module)
    harness = harness_of(job.bundle.program.framework)
    harness.prepare_process()
    runner = ProgramRunner(job.bundle, blobs.read, work)
    runner.own_seed = True
    environment = TrialEnvironment(config=job.config, hparams=proof.hparams, trial_seed=proof.seed)
    check = InputCheck(
        proof,
        job.bundle.program,
        "error",
        job.bundle.program.title,
        read_blob=blobs.read,
        placed=runner.placed,
    )
    host = _DryHost(
        environment, runner.calls, "worker", check=check, read_blob=blobs.read, files=files_on_worker(job.earlier)
    )
    rng.seed_process(proof.seed)
    try:
        with harness.calls_taken(), hosted(host):
            runner.run()
    except InputDiffersError as error:
        return BundleChecked(ok=False, problems=[ProblemInfo(where="", what=error.difference)])
    except (Exception, SystemExit):
        logger.exception("The dry run did not come to the training call.")
    return BundleChecked(ok=True)


class _DryHost(StoppingHost):
    """Compares at the program's recorded call."""

    def __init__(self, *host: Any, check: InputCheck, **sources: Any) -> None:
        super().__init__(*host, **sources)
        self._check = check

    def reached(self, payload: Any) -> None:
        """Compare."""
        self._check.compare(payload)
