"""A cluster that lets in everybody is used no more once others reach it; what runs goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from own_machine import ADDRESS, run_alone

PROGRAM = Path(__file__).with_name("exposed_cluster.py")


@pytest.mark.long
def test_a_machine_that_others_reach_stops_all_starts_until_it_has_left(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    command = [sys.executable, str(PROGRAM), str(tmp_path / "home"), ADDRESS]
    done = run_alone(*command, folder=tmp_path, environment=os.environ, seconds=150)
    assert done.returncode == 0, done.stdout
    told = {}
    for line in done.stdout.splitlines():
        told.update(json.loads(line) if line.startswith("{") else {})
    sentence = f"Whoever reaches {ADDRESS} can run code on the Ray cluster at 127.0.0.1:"
    assert told["trouble"].startswith(sentence)
    assert told["trouble"].endswith("or say with --ray-trusted that only you reach it.")
    assert told["refused"]["interrupted"] == told["trouble"]
    assert not told["refused"]["begun"]
    assert told["later"] == 0
    assert told["earlier"]
