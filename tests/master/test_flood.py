"""Many workers flood a master, and somebody who listens reads nothing: its memory stays as it is, all is stored."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.soak]

TRIALS = 40
ROUNDS = 10
ROWS = 50
NAMES = 20
MASTER = """
import json, sys
sys.path[:0] = {paths!r}
from pathlib import Path
from master_parts import running_master

with running_master(Path(sys.argv[1]), slots={trials}) as master:
    master.create({{"searcher": {{"name": "random", "max_trials": {trials}, "max_length": {{"batches": 100_000}}}}}})
    jobs = [(job.run_id, job.token, job.trial_id) for job in master.world.wait_for_jobs({trials})]
    print(json.dumps({{"url": str(master.client.base_url), "token": master.token, "jobs": jobs}}), flush=True)
    sys.stdin.read()
"""


def flood(client: httpx.Client, job: tuple[str, str, int], turn: int) -> None:
    """Send the rows of one worker, again until they are taken."""
    run_id, token, _ = job
    batches = list(range(turn * ROWS + 1, (turn + 1) * ROWS + 1))
    metrics = {f"metric {number}": [batch / 7 for batch in batches] for number in range(NAMES)}
    reports: list[dict[str, Any]] = [
        {"seq": turn + 2, "type": "metrics", "kind": "training", "batches": batches, "metrics": metrics}
    ]
    if turn == 0:
        reports.insert(0, {"seq": 1, "type": "started", "batch": 0})
    answer = client.post(
        f"/api/v1/runs/{run_id}/reports", json={"reports": reports}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["through"] == turn + 2


def test_memory_is_bounded_and_every_row_is_stored(tmp_path: Path) -> None:
    program = MASTER.format(paths=[str(Path(__file__).parent), str(Path(__file__).parents[1])], trials=TRIALS)
    command = [sys.executable, "-c", program, str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        url = httpx.URL(told["url"])
        headers = {"Authorization": f"Bearer {told['token']}"}
        with (
            httpx.Client(base_url=url, timeout=120, headers=headers) as client,
            socket.create_connection((url.host, url.port)) as deaf,
            ThreadPoolExecutor(8) as pool,
        ):
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lines = ["GET /api/v1/events HTTP/1.1", f"Host: {url.host}:{url.port}"]
            lines.append(f"Authorization: {headers['Authorization']}")
            deaf.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
            used = []
            for turn in range(ROUNDS):
                list(pool.map(lambda job, turn=turn: flood(client, job, turn), told["jobs"]))
                used.append(psutil.Process(process.pid).memory_info().rss >> 20)
            assert max(used) - used[1] < 60, used  # MiB; the first rounds fill caches and pools
            for _, _, trial in told["jobs"]:
                answer = client.get(f"/api/v1/trials/{trial}/metrics", params={"kind": "training", "limit": 10_000})
                assert [row["batch"] for row in answer.json()] == list(range(1, ROUNDS * ROWS + 1))
        process.communicate()
    assert process.returncode == 0
