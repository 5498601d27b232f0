"""What a master does for a trial, all but processes: stored, placed, told, decided; and what that costs 10,000."""

from __future__ import annotations

import heapq
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from det_native import PROTOCOL
from det_native.master.app import build
from det_native.master.launch.base import Exit
from det_native.master.store import experiments
from det_native.schema import rest
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.rest import SlotInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "master"))
from master_parts import MemoryLauncher, configuration, manifest  # type: ignore[import-not-found]

TRIALS, SLOTS = 300, 16
SIMULATED, TRIAL_SECONDS = 10_000, 1.0


class Trivial(MemoryLauncher):  # type: ignore[misc]
    """A launcher whose workers do at once what they are to do."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: queue.SimpleQueue[TrialJob] = queue.SimpleQueue()

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: Any, *, ranks: int = 1, slots: Any = ()
    ) -> dict[str, Any]:
        """Hand the job to the one who reports."""
        assert isinstance(job, TrialJob)
        with self._lock:
            self._own.add(run_id)
        self.jobs.put(job)
        return {}


def test_trivial_trials(figure: Any, tmp_path: Path) -> None:
    launcher = Trivial()
    slots = [SlotInfo(id=f"cpu:{number}", device="cpu") for number in range(SLOTS)]
    service, _ = build(tmp_path / "home", launcher, slots, "http://127.0.0.1:1")
    service.start()
    searcher = {"name": "random", "max_trials": TRIALS, "max_concurrent_trials": SLOTS, "max_length": {"batches": 1}}
    body = {
        "protocol": PROTOCOL,
        "config": configuration(searcher=searcher),
        "bundle_id": service.add_bundle(manifest()).id,
    }
    ended = threading.Event()

    def report() -> None:
        for _ in range(TRIALS):
            job = launcher.jobs.get()
            said: list[dict[str, Any]] = [
                {"type": "started", "batch": 0},
                {"type": "metrics", "kind": "validation", "batches": [1], "metrics": {"loss": [0.5]}},
                {"type": "exit", "reason": "COMPLETED", "batch": 1},
            ]
            numbered = [{"seq": number, **one} for number, one in enumerate(said, 1)]
            service.report(job.run_id, rest.ReportBatch.model_validate({"reports": numbered}))
            with launcher._lock:
                launcher._exits.append(Exit(job.run_id, 0))
        ended.set()

    threading.Thread(target=report, daemon=True).start()
    begun, worked = time.perf_counter(), time.process_time()
    number = service.create_experiment("user", rest.ExperimentCreate.model_validate(body), None).id
    assert ended.wait(600)
    while True:
        with service.database.read() as connection:
            if experiments.get(connection, number).state.terminal:
                break
        time.sleep(0.05)
    seconds, work = (time.perf_counter() - begun) / TRIALS, (time.process_time() - worked) / TRIALS
    service.close()
    what = f"trivial trials through a master with {SLOTS} slots, all but their processes ({TRIALS} trials)"
    value = f"{1 / seconds:.0f} trials/s; {1 / work:.0f} for each second of processor time"
    figure(what, value, "≥ 300 trials/s", 1 / seconds >= 300)
    whole = _simulated(work)
    ideal = SIMULATED / SLOTS * TRIAL_SECONDS
    what = f"{SIMULATED:,} trials of {TRIAL_SECONDS:.0f} s on {SLOTS} slots, by a simulated clock, each with that work"
    figure(what, f"{whole:.0f} s, {whole / ideal:.3f}x of the ideal time", "≤ 1.05x", whole / ideal <= 1.05)


def _simulated(work: float) -> float:
    """Return how long the trials take where the master does the work of one after the other, and slots wait for it."""
    free_at, ends, now = 0.0, [0.0] * SLOTS, 0.0
    for _ in range(SIMULATED):
        now = heapq.heappop(ends)
        free_at = max(free_at, now) + work
        heapq.heappush(ends, free_at + TRIAL_SECONDS)
    return max(ends)
