"""Keras 3 on two slots ends where one slot does, on TensorFlow."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras3_slots_program
import numpy as np
import pytest

from det_native.keras.generations import BACKEND

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras 3 trains on several slots on TensorFlow only."),
]


@pytest.mark.parametrize("data", ["sparse", "sequence"])
def test_a_local_run_ends_where_one_slot_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DET_RECORD")
    monkeypatch.setenv("DET_SLOTS", "cpu:2")
    command = [sys.executable, keras3_slots_program.__file__, data, "2"]
    try:
        alone, metrics = keras3_slots_program.trained(data)
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        subprocess.run([sys.executable, "-m", "det_native.client.command", "down"], check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    both, of_both = pickle.loads((tmp_path / "found.pkl").read_bytes())
    for one, two in zip(alone, both, strict=True):
        np.testing.assert_allclose(two, one, atol=1e-6)
    assert len(of_both) == len(metrics) == 3
    for one, two in zip(metrics, of_both, strict=True):
        assert two["val_loss"] == pytest.approx(one["val_loss"], abs=1e-6)
        assert two["val_accuracy"] == pytest.approx(one["val_accuracy"], abs=1e-6)


SLOTS_PROGRAM = Path(__file__).parents[1] / "keras" / "slots_program.py"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What two processes have made of cases that both generations of Keras have."""
    folder, names = tmp_path_factory.mktemp("pair"), ["plain", "generator", "whole-dataset", "parts-dataset"]
    path = os.pathsep.join([str(SLOTS_PROGRAM.parent), str(SLOTS_PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")])
    started = [
        subprocess.Popen(
            [sys.executable, str(SLOTS_PROGRAM), str(folder), str(rank), "2", *names],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    assert [process.wait() for process in started] == [0, 0]
    return {name: [pickle.loads((folder / f"{name}.{rank}.pkl").read_bytes()) for rank in range(2)] for name in names}


@pytest.mark.parametrize("case", ["plain", "generator"])
def test_two_slots_end_where_one_does(
    pair: dict[str, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.syspath_prepend(SLOTS_PROGRAM.parent)
    import slots_program

    first, second = pair[case]
    alone = slots_program.one_slot(tmp_path, case)
    assert first["history"] == second["history"]
    for one, two, other in zip(alone["weights"], first["weights"], second["weights"], strict=True):
        np.testing.assert_array_equal(two, other)
        np.testing.assert_allclose(two, one, atol=1e-6)
    for (batch, one), (same, two) in zip(alone["validation"], first["validation"], strict=True):
        assert batch == same
        assert two == pytest.approx(one, abs=1e-6)


def test_stopped_twice_it_ends_with_the_same_bits_on_each_slot(pair: dict[str, list[dict[str, Any]]]) -> None:
    for whole, parts in zip(pair["whole-dataset"], pair["parts-dataset"], strict=True):
        assert all(np.array_equal(*both) for both in zip(whole["weights"], parts["weights"], strict=True))
        assert (whole["training"], dict(whole["validation"])) == (parts["training"], dict(parts["validation"]))
    assert pair["parts-dataset"][0]["checkpoints"] == [3, 11, 15]
    # Moving means, and dropout, are each slot's own.
    equal = [np.array_equal(*both) for both in zip(*(each["weights"] for each in pair["whole-dataset"]), strict=True)]
    assert equal == [*[True] * 4, False, False, True, True]
