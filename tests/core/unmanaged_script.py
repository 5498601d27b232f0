"""A script that reports to a master from anywhere, and kills itself in its middle if it is told to.

Started as ``python unmanaged_script.py <folder> <ends> [name]``; each loss that it has computed is a line of ``seen``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import det_native as det
from det_native.experimental import core_v2

STEPS, SAVED, ENDS = 12, 5, 8


def main(folder: Path, ends: str, name: str | None) -> None:
    """Train a number."""
    core_v2.init(
        defaults=core_v2.DefaultConfig(
            name="a number", hparams={"rate": 0.5}, searcher={"metric": "loss"}, labels=["outside"]
        ),
        unmanaged=core_v2.UnmanagedConfig(external_experiment_id=name, external_trial_id=name and "1"),
    )
    info = det.get_cluster_info()
    assert info is not None
    print("continues after", info.trial.steps_completed, info.latest_checkpoint is not None, flush=True)
    first, weight = 0, 8.0
    if info.latest_checkpoint is not None:
        with core_v2.checkpoint.restore_path(info.latest_checkpoint) as path:
            first, weight = int((path / "step").read_text()), float((path / "weight").read_text())
    for step in range(first + 1, STEPS + 1):
        weight *= info.trial.hparams["rate"]
        core_v2.train.report_training_metrics(step, {"loss": weight})
        if step == SAVED:
            with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "step").write_text(str(step))
                (path / "weight").write_text(repr(weight))
        if step == ENDS and ends == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if step == ENDS and ends == "fails":
            raise RuntimeError("in the middle")
        if step == ENDS and ends == "asks":
            print("waiting", flush=True)
            while not core_v2.preempt.should_preempt():
                time.sleep(0.02)
            return
        if step == ENDS and ends == "waits":
            print("waiting", flush=True)
            sys.stdin.readline()
    core_v2.train.report_validation_metrics(STEPS, {"loss": weight})
    if ends == "closes":
        core_v2.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
