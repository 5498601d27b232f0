"""Whatever a validation on the cluster returns beside the searcher's metric is recorded, and is here what it was."""

from __future__ import annotations

import pytest
from faults import Kernel

pytestmark = pytest.mark.slow

RECORDED = """
import math

class Recorded(Digits):
    def evaluate_batch(self, batch):
        found = {"confusion": torch.eye(2), "f1": math.nan, "largest": -math.inf, "note": "cat", "none": None}
        return {**found, "by class": {"a": [math.nan, 1.0]}, "batch": 0.5, **super().evaluate_batch(batch)}

experiment = det.experimental.create(Recorded, configuration(hyperparameters=settings, {options}))
print(experiment.wait().state)
"""


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("", id="one"),
        pytest.param("max_restarts=0, resources={'slots_per_trial': 2}", id="two slots", marks=pytest.mark.long),
    ],
)
def test_side_metrics_are_in_rows_history_and_checkpoints(torch_kernel: Kernel, options: str) -> None:
    torch_kernel.run("settings = {}")
    assert "Completed" in torch_kernel.run(RECORDED.replace("{options}", options)).text
    row, metrics, history = torch_kernel.value(
        "[repr(found) for found in (experiment.metrics('validation')[-1], experiment.top_checkpoint().metrics, "
        "{name: values[-1] for name, values in experiment.history.items()})]"
    )
    names = {"confusion", "f1", "largest", "note", "by class", "val_loss"}
    for text, own in ((metrics, {"batch"}), (row, {"batch", "batch (metric)", "trial"}), (history, set())):
        found = eval(text, {"nan": float("nan"), "inf": float("inf")})  # noqa: S307 (our own repr)
        found = {name.removeprefix("val_") if name != "val_loss" else name: value for name, value in found.items()}
        assert found.keys() >= names | own
        assert "none" not in found
        assert found["confusion"] == [[1.0, 0.0], [0.0, 1.0]]
        assert str([found[name] for name in ("f1", "largest", "note", "by class")]) == (
            "[nan, -inf, 'cat', {'a': [nan, 1.0]}]"
        )
    assert torch_kernel.value("[row['batch (metric)'] for row in experiment.metrics('validation')]") == [0.5] * 3
    logs = torch_kernel.run("print(*experiment.trials[0].logs())").text
    assert logs.count("The metric 'none' is not recorded.") == 1
