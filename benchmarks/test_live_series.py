"""Many readers of a series that is long, and still grows (the load of Determined's nightly k6: 25 readers)."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ingest_server import running_server

ROWS, BUCKETS, READERS, PROCESSES, SECONDS = 100_000, 1000, 25, 3, 15.0
PROGRAM = Path(__file__).with_name("series_readers.py")


@pytest.mark.parametrize(("rest", "goal"), [(1.0, 0.05), (0.0, None)])
def test_readers(figure: Any, tmp_path: Path, rest: float, goal: float | None) -> None:
    with running_server(tmp_path / "home") as server:
        run = server.run()
        for first in range(1, ROWS, 1000):
            run.log(range(first, first + 1000))
        path = f"/api/v1/trials/{run.trial_id}/series?name=loss&buckets={BUCKETS}"
        shares = [READERS // PROCESSES + (number < READERS % PROCESSES) for number in range(PROCESSES)]
        command = [sys.executable, str(PROGRAM), server.url.removeprefix("unix:"), path, server.token]
        processes = [
            subprocess.Popen([*command, str(share), str(SECONDS), str(rest)], stdout=subprocess.PIPE, text=True)
            for share in shares
        ]
        batch, end = ROWS, time.monotonic() + SECONDS
        before = server.process.cpu_times()
        while time.monotonic() < end:  # as a worker does
            run.log(range(batch + 1, batch + 11))
            batch += 10
            time.sleep(0.08)
        after = server.process.cpu_times()
        found = [one for process in processes for one in json.loads(process.communicate()[0])]
    times = sorted(one for one in found if one is not None)
    failures = len(found) - len(times)
    late = statistics.quantiles(times, n=20)[-1]
    pause = f"a second between two reads of each, as in Determined's k6 test; {len(found)} reads"
    what = f"25 readers of a live series of 100k rows, {pause if rest else f'without a pause; {len(found)} reads'}"
    work = (after.user + after.system - before.user - before.system) / len(found)
    value = (
        f"p95 {late * 1e3:.0f} ms (median {statistics.median(times) * 1e3:.0f}), {failures} failures; "
        f"{work * 1e3:.1f} ms of the master's processor time for each"
    )
    figure(
        what,
        value,
        "none" if goal is None else "p95 ≤ 50 ms, 0 failures",
        goal is None or (late <= goal and not failures),
    )
