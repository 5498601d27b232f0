"""A process of the user's that trains, as a master sees it: what it asks to have recorded, and its reports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from master_parts import Master, Worker, configuration, manifest

from det_native import PROTOCOL
from det_native.schema.job import TrialJob
from det_native.schema.kernel_runs import REQUEST_NAME, KernelProcess, KernelRun
from det_native.schema.processes import pid_namespace, start_mark
from det_native.schema.run_ids import new_id

STARTED = "2026-01-02T03:04:05.000Z"


@contextmanager
def sleeping_process(code: str = "input()") -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that does nothing until it is ended."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def process_facts(pid: int, **changes: Any) -> KernelProcess:
    """Return what identifies a process of this machine."""
    facts = {"pid": pid, "start": start_mark(pid) or "", "namespace": pid_namespace(), "in_kernel": True}
    return KernelProcess.model_validate(facts | changes)


def kernel_run(home: Path, process: KernelProcess, config: dict[str, Any] | None = None, **fields: Any) -> KernelRun:
    """Return a run of 400 batches in a process, and make its folder."""
    run_id = fields.pop("run_id", None) or new_id()
    folder = home / "runs" / run_id
    (folder / "spool").mkdir(parents=True, mode=0o700)
    asked = {
        "protocol": PROTOCOL,
        "run_id": run_id,
        "token": f"token of {run_id}",
        "config": configuration(**(config or {})),
        "framework": "torch",
        "hparams": {"global_batch_size": 32},
        "trial_seed": 7,
        "length": 400,
        "process": process,
        "directory": str(folder),
        "started": STARTED,
        **fields,
    }
    return KernelRun.model_validate(asked)


def wait_to_be_taken_in(asked: KernelRun) -> Path:
    """Write a run into its folder, for the next master; return the folder."""
    folder = Path(asked.directory)
    (folder / REQUEST_NAME).write_text(asked.model_dump_json())
    return folder


class KernelWorker(Worker):
    """Speaks for a run in a process of the user's."""

    def __init__(self, master: Master, asked: KernelRun, checkpoints: Path | None = None) -> None:
        answer = record(master, asked)
        assert answer.status_code == 200, answer.text
        self.asked = asked
        self.experiment_id, self.trial_id = answer.json()["experiment_id"], answer.json()["trial_id"]
        job = job_in(Path(asked.directory).parents[1], asked.run_id, asked.token)
        super().__init__(master, job.model_copy(update={"checkpoints": str(checkpoints or job.checkpoints)}))


def job_in(root: Path, run_id: str, token: str = "") -> TrialJob:
    """Return what a process knows of its run, whose files lie in a folder."""
    return TrialJob(
        protocol=PROTOCOL,
        master_url="",
        directory=str(root / "runs" / run_id),
        blobs="",
        bundle=manifest(),
        bundle_id="",
        checkpoints=str(root / "checkpoints"),
        token=token,
        run_id=run_id,
        experiment_id=0,
        trial_id=0,
        config={},
        hparams={"global_batch_size": 32},
        trial_seed=7,
    )


def record(master: Master, asked: KernelRun) -> httpx.Response:
    """Have a run recorded."""
    return master.client.post("/api/v1/kernel-runs", json=asked.model_dump(mode="json"))
