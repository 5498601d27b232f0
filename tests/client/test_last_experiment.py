"""``det.last_experiment()``: the handle of what a function has trained."""

from __future__ import annotations

from pathlib import Path

import pytest

import det_native as det
from det_native.client import last
from det_native.errors import ArgumentError
from det_native.imports import load_optimizers
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.usefixtures("recorded")

torch = pytest.importorskip("torch")
load_optimizers()  # else the first optimizer leaves a folder and an environment variable


@pytest.fixture(autouse=True)
def no_experiment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(last, "_begun", [])
    monkeypatch.setenv("DET_HOME", str(tmp_path))


def test_none_was_begun() -> None:
    with pytest.raises(ArgumentError, match="has begun no experiment"):
        det.last_experiment()


def test_a_loop_in_a_function_has_its_handle_there() -> None:
    def train(rate: float) -> None:
        net = torch.nn.Linear(2, 1)
        context = det.experimental.pytorch.init(local=True, show="none")
        net, optimizer = context.wrap(net, torch.optim.SGD(net.parameters(), lr=rate))
        for _ in context.epochs(2):
            loss = net(torch.ones(3, 2)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            context.report(loss=loss)

    train(0.1)
    first = det.last_experiment()
    assert (first.state, len(first.history["loss"])) == (ExperimentState.COMPLETED, 2)
    train(0.2)
    assert det.last_experiment().id != first.id
