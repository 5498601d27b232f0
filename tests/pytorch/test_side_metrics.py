"""Validation metrics of a PyTorchTrial that trials are not compared by: anything may be one, and ends no training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from digits_trials import DigitsTrial, Full, LocalRun

from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchCallback, PyTorchTrial

pytestmark = pytest.mark.slow

PLAIN = {"none": None, "nan": math.nan, "inf": -math.inf, "note": "cat", "nested": {"a": [math.nan, "b"]}}


class Seen(PyTorchCallback):
    metrics: dict[str, Any]

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        Seen.metrics = metrics


class ByBatch(DigitsTrial):
    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"seen": Seen()}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        found = self.other(self.model(images)).argmax(1)
        confusion = torch.zeros(10, 10)
        confusion.index_put_((labels, found), torch.ones(len(labels)), accumulate=True)
        return {
            "confusion": confusion / len(labels),
            "loss": (found != labels).double().mean(),
            "labels": [str(label) for label in labels.tolist()],
            "images": torch.ones(100, 1000),
            **PLAIN,
        }


class Whole(ByBatch):
    evaluate_batch = PyTorchTrial.evaluate_batch

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        return {"confusion": np.eye(3), "loss": 0.5, **PLAIN}


def recorded(run: LocalRun, trial_class: type[PyTorchTrial]) -> dict[str, Any]:
    run.run(trial_class)
    return run.reporter.validation_rows[-1].metrics


def test_a_vector_of_each_batch_is_reduced_as_a_number_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = recorded(LocalRun(tmp_path, batches=4), ByBatch)
    assert np.trace(row["confusion"]) == pytest.approx(1 - row["loss"])
    assert np.sum(row["confusion"]) == pytest.approx(1)
    assert math.isnan(row["nan"])
    assert (row["inf"], row["note"], row["nested"]["a"][1]) == (-math.inf, "cat", "b")
    assert not {"none", "labels", "images"} & row.keys()
    told = [record.message for record in caplog.records if "is not recorded" in record.message]
    assert [message.split("'")[1] for message in told] == ["labels", "images", "none"]
    assert "no value stands for all" in told[0]
    assert "a Tensor of shape (100, 1000) for it, and at most 32,768 characters" in told[1]
    assert Seen.metrics.keys() == row.keys()


def test_the_whole_data_set_gives_anything(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = recorded(LocalRun(tmp_path, batches=4), Whole)
    assert row["confusion"] == np.eye(3).tolist()
    assert (row["loss"], row["note"], row["inf"]) == (0.5, "cat", -math.inf)
    assert "'none' is not recorded. Whole.evaluate_full_dataset() returned None for it" in caplog.text


@pytest.mark.parametrize("value", [torch.ones(3), None, "low", {"a": 1.0}], ids=lambda value: type(value).__name__)
def test_what_trials_are_compared_by_is_one_number(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TrialDefinitionError, match="for the searcher's metric 'loss'; return one number"):
        LocalRun(tmp_path, batches=4).run(
            type("Broken", (Full,), {"evaluate_full_dataset": lambda self, loader: {"loss": value}})
        )
