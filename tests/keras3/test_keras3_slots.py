"""Keras 3 on two slots ends where one slot does, on TensorFlow."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import keras3_slots_program
import numpy as np
import pytest

from det_native.keras.generations import BACKEND

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras 3 trains on several slots on TensorFlow only."),
]


@pytest.mark.parametrize("data", ["arrays", "sparse", "dataset", "sequence"])
def test_two_slots_end_where_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    monkeypatch.chdir(tmp_path)
    alone, metrics = keras3_slots_program.trained(data)
    command = [sys.executable, keras3_slots_program.__file__, data, "2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    both, of_both = pickle.loads((tmp_path / "found.pkl").read_bytes())
    for one, two in zip(alone, both, strict=True):
        np.testing.assert_allclose(two, one, atol=1e-6)
    assert len(of_both) == len(metrics) == 3
    for one, two in zip(metrics, of_both, strict=True):
        assert two["val_loss"] == pytest.approx(one["val_loss"], abs=1e-6)
        assert two["val_accuracy"] == pytest.approx(one["val_accuracy"], abs=1e-6)
