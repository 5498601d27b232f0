"""Cost of a loop that reports by the Core API over the same loop that keeps its losses in a list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import as_fetched, made_dataset
from torch import nn

from det_native.experimental import core_v2

EPOCHS = 4


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is reported in a spool of its own; no master is started for it."""
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    monkeypatch.setenv("DET_RECORD", "off")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run torch on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _loop(report: Callable[[int, dict[str, float]], Any], stops: Callable[[], bool]) -> float:
    """Train a tiny MLP; return the seconds."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader: Any = torch.utils.data.DataLoader(made_dataset(), batch_size=32, shuffle=True, collate_fn=as_fetched)
    steps, begin = 0, time.perf_counter()
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            steps += 1
            report(steps, {"loss": loss.item()})
            if stops():
                return 0.0
    return time.perf_counter() - begin


def _bare() -> float:
    losses: list[Any] = []
    return _loop(lambda steps, metrics: losses.append((steps, metrics)), lambda: False)


def _core() -> float:
    with core_v2.init_context(defaults=core_v2.DefaultConfig(name="bench")) as context:
        return _loop(context.train.report_training_metrics, context.preempt.should_preempt)


def test_reports_of_a_loop(paired: Any) -> None:
    paired(
        f"{EPOCHS} epochs of 500 batches (tiny MLP) that report each batch by `det.core`, over a list of losses",
        _core,
        _bare,
        goal=1.02,
        value=lambda result, seconds: result,
    )
