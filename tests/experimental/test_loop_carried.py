"""The names of a loop over ``context.train()``, where it is stopped and goes on."""

from __future__ import annotations

import collections
import copy
import logging
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop_run import LoopRun  # noqa: E402 (after the check for torch)
from native_line import torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

pytestmark = pytest.mark.slow

PERIODS = {"min_validation_period": {"batches": 3}, "min_checkpoint_period": {"batches": 4}}

CELL = """
losses, best, waited, rows = [], None, 0, collections.deque(maxlen=3)
ema = copy.deepcopy(run.model)
best_state, best_model, final = None, run.model, None
for batch in run.batches():
    loss = run.loss(batch)
    run.context.backward(loss)
    run.context.step_optimizer(run.optimizer)
    losses.append(loss.item())
    rows.append(batch[0][0])
    with torch.no_grad():
        for mine, its in zip(ema.parameters(), run.model.parameters()):
            mine.data.mul_(0.9).add_(its.data, alpha=0.1)
    if best is None or losses[-1] < best:
        best, waited, best_state = losses[-1], 0, copy.deepcopy(run.model.state_dict())
    else:
        waited += 1
    final = run.model.state_dict()
    run.context.report(loss=loss)
    run.stop = run.context.batch_idx + 1 == stop
"""


def in_cell(run: LoopRun, stop: int = 0) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__", "run": run, "stop": stop}
    names |= {"torch": torch, "copy": copy, "collections": collections}
    exec(compile(CELL, "<cell>", "exec"), names)  # noqa: S102 (the test's own)
    return names


def in_function(run: LoopRun, stop: int = 0) -> dict[str, Any]:
    lines = "\n".join(f"    {line}" for line in CELL.splitlines())
    names: dict[str, Any] = {"__name__": "__main__"}
    names |= {"torch": torch, "copy": copy, "collections": collections}
    exec(compile(f"def train(run, stop):\n{lines}\n    return locals()", "<cell>", "exec"), names)  # noqa: S102
    found: dict[str, Any] = names["train"](run, stop)
    return found


@pytest.mark.parametrize("stop", [4, 7, 13])
@pytest.mark.parametrize("train", [in_cell, in_function])
def test_a_loop_goes_on_with_its_names(tmp_path: Path, train: Any, stop: int) -> None:
    whole = train(LoopRun(tmp_path / "whole", epochs=2, **PERIODS))
    first = LoopRun(tmp_path / "parts", epochs=2, **PERIODS)
    train(first, stop)
    second = LoopRun(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS)
    resumed = train(second)
    assert len(whole["losses"]) == 20
    for name in ("losses", "best", "waited"):
        assert resumed[name] == whole[name]
    assert all(map(torch.equal, resumed["rows"], whole["rows"]))
    assert all(map(torch.equal, resumed["ema"].parameters(), whole["ema"].parameters()))
    assert all(torch.equal(value, resumed["best_state"][name]) for name, value in whole["best_state"].items())
    assert resumed["best_model"] is second.model
    assert resumed["final"]["0.weight"].data_ptr() == second.model[0].weight.data_ptr()


@pytest.mark.long
def test_what_cannot_be_kept_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = LoopRun(tmp_path)
    numbers, made = (number for number in range(100)), None
    with caplog.at_level(logging.WARNING, "det_harness"):
        for batch in run.batches():
            next(numbers)
            if made is not None:
                next(made)
            made = (number for number in range(100))
            run.step(batch)
    for name in ("numbers", "made"):
        assert len([text for text in caplog.messages if f"`{name}` is a generator" in text]) == 1
