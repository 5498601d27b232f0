"""The names of a loop over ``context.train()``, where it is stopped and goes on."""

from __future__ import annotations

import collections
import copy
import logging
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop_run import RECORDS, LoopRun  # noqa: E402 (after the check for torch)
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


class Rotating(torch.utils.data.Sampler[int]):
    """Begins each pass one record later than the one before."""

    def __init__(self, records: int) -> None:
        self.records, self.passes = records, 0

    def __len__(self) -> int:
        return self.records

    def __iter__(self) -> Any:
        begin, self.passes = self.passes, self.passes + 1
        return iter([(begin + place) % self.records for place in range(self.records)])


OVER_ROTATED = """
seen = []
for batch in batches:
    run.step(batch)
    seen += batch[0][:, 0].tolist()
    run.stop = run.context.batch_idx + 1 == stop
"""


def rotated(run: LoopRun, stop: int = 0) -> dict[str, Any]:
    dataset, sampler = run.loader().dataset, Rotating(RECORDS)
    loader = torch.utils.data.DataLoader(dataset, batch_size=run.context.get_per_slot_batch_size(), sampler=sampler)
    batches = run.context.train(loader, validation_loader=run.loader(), evaluate_batch=run.evaluate)
    names: dict[str, Any] = {"__name__": "__main__", "run": run, "stop": stop, "batches": batches, "sampler": sampler}
    exec(compile(OVER_ROTATED, "<cell>", "exec"), names)  # noqa: S102 (the test's own)
    return names


def test_a_sampler_that_counts_its_passes_is_not_ahead_of_the_pass_that_goes_on(tmp_path: Path) -> None:
    whole = rotated(LoopRun(tmp_path / "whole", epochs=3, **PERIODS))
    first = LoopRun(tmp_path / "parts", epochs=3, **PERIODS)
    rotated(first, 13)
    resumed = rotated(LoopRun(tmp_path / "parts", epochs=3, resume=first.last(), **PERIODS))
    assert resumed["seen"] == whole["seen"]
    assert resumed["sampler"].passes == whole["sampler"].passes == 3


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
