"""``det.keras.DeterminedCallback`` with Keras itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from tests.core.trainers.reported import reported, stored


@pytest.fixture
def store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    """Return where checkpoints go; what is reported is in the log."""
    caplog.set_level("INFO", logger="det_native.core")
    return tmp_path / "store"


def test_keras(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``fit()`` reports and continues with the same losses; with another id it begins anew with these weights."""
    x = np.random.RandomState(0).randn(32, 4).astype("float32")

    def trained(checkpoint: str | None, continue_id: int, epochs: int = 4) -> Any:
        tf.keras.utils.set_random_seed(0)
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        model.compile("adam", "mse", metrics=["mae"])
        with det.core.init(checkpoint_storage=str(store)) as context:
            callback = det.keras.DeterminedCallback(context, checkpoint, continue_id)
            return model.fit(
                x, x.sum(1), 8, epochs, verbose=0, shuffle=False, validation_split=0.25, callbacks=[callback]
            )

    whole = trained(None, 1)
    assert {step: set(row) for step, row in reported(caplog, "training").items()} == {
        step: {"loss", "mae"} for step in (3, 6, 9, 12)
    }
    assert set(reported(caplog, "validation")[12]) == {"val_loss", "val_mae"}
    second = stored(store)[1].name
    continued = trained(second, 1)
    assert continued.epoch == [2, 3]
    assert continued.history["loss"] == whole.history["loss"][2:]
    assert trained(second, 2).epoch == [0, 1, 2, 3]
