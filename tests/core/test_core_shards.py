"""Several processes and one context each: what they exchange, and checkpoints of which each has a part."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("shard_program.py")
SIZE = 2


def run(how: str, folder: Path) -> list[dict[str, Any]]:
    """Run the processes; return what each has found."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), how, str(folder), str(rank), str(SIZE), str(port)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(SIZE)
    ]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * SIZE, "\n".join(said)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(SIZE)]


LIBRARIES = ("torch", "deepspeed", "horovod")


@pytest.mark.parametrize(
    "how", ["own", *(pytest.param(how, marks=pytest.mark.slow) for how in ("machines", *LIBRARIES))]
)
def test_processes_share_a_checkpoint(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how in LIBRARIES and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.setenv("DET_DISTRIBUTED_SECRET", "known to both")
    apart = how == "machines"
    found = run(how, tmp_path)
    for rank, of_rank in enumerate(found):
        assert of_rank["place"] == [rank, SIZE, 0 if apart else rank]
        assert of_rank["machines"] == ([SIZE, rank] if apart else [1, 0])
        assert of_rank["allgather"] == [0, 1]
        assert of_rank["gather"] == ([0, 1] if rank == 0 else None)
        assert of_rank["broadcast"] == "of 0"
        assert of_rank["allgather_local"] == ([rank] if apart else [0, 1])
        assert of_rank["gather_local"] == ([rank] if apart else of_rank["gather"])
        assert of_rank["broadcast_local"] == (f"of {rank}" if apart else "of 0")
        assert of_rank["metadata"] == {"steps_completed": 5, "parts": {"0": 0, "1": 1}}
        assert of_rank["uploaded"] == {"common": "the same", "part-0": "part of 0", "part-1": "part of 1"}
        assert of_rank["stored"] == {"stored-0": "0", "stored-1": "1"}
        assert "'left out'" in of_rank["conflict"]
        assert of_rank["preempt"] is False
        assert of_rank["length"] == 1
    assert found[0]["missing"][0] == "ArgumentError"
    assert found[1]["missing"][0] == "RankLostError"
    assert "no such folder" in found[1]["missing"][1]
    assert found[0]["reports"] == "yes"
    assert "only the first one may" in found[1]["reports"]
