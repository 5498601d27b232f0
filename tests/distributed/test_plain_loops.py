"""Plain PyTorch on two slots: ``loss.backward()`` and ``optimizer.step()`` train as one slot on the whole batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import rank_rig
from rank_rig import BACKENDS, Ended, largest_difference, run_ranks

sys.path.append(str(Path(__file__).parents[1] / "experimental"))

import plain_loops

pytestmark = pytest.mark.slow

# By how much weights may differ from those of one slot, where it is not the order of a sum only.
FAR = {"autocast": 5e-3, "searched": 1e-4}
PARTING = {name: {"loop": name, "batch": 1} for name in plain_loops.PARTING}
AT_THE_END = {"last_step": {"loop": "steps_apart", "batch": 9}, "last_pass": {"loop": "passes_apart", "batch": 9}}


@pytest.fixture(scope="module", params=BACKENDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All loops on two slots."""
    cases: dict[str, dict[str, Any]] = {name: {"loop": name} for name in plain_loops.LOOPS}
    ended = run_program(tmp_path_factory.mktemp("plain"), cases | PARTING | AT_THE_END, backend=request.param)
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    return ended


def run_program(folder: Path, cases: dict[str, dict[str, Any]], **given: Any) -> Ended:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_rig, "PROGRAM", Path(__file__).with_name("plain_program.py"))
        return run_ranks(folder, cases, **given)


@pytest.mark.parametrize("name", plain_loops.LOOPS)
def test_a_plain_loop_trains_on_two_slots_as_on_one(pair: Ended, tmp_path: Path, name: str) -> None:
    (first, second), alone = pair.results(name), plain_loops.trained(tmp_path, name)
    assert largest_difference(first["models"], second["models"]) == 0
    assert first["noted"] == second["noted"]
    assert first["batches"] == alone["batches"] == 10
    close = FAR.get(name, 2e-6)
    assert largest_difference(first["models"], alone["models"]) < close
    assert first["noted"] == pytest.approx(alone["noted"], rel=50 * close)
    for one in (first, second, alone):
        assert not any(one["hooks"])


def test_the_comparison_tells_slots_that_train_alone(tmp_path: Path) -> None:
    run = plain_loops.PlainRun(tmp_path / "half")
    plain_loops.plain(run)
    whole = plain_loops.trained(tmp_path / "whole", "plain")
    assert largest_difference(run.result()["models"], whole["models"]) > 1e-3


@pytest.mark.parametrize("name", [*PARTING, *AT_THE_END])
def test_slots_that_go_different_ways_are_told_so(pair: Ended, name: str) -> None:
    words = {
        "steps_apart": "steps of its optimizers so far, and another slot has made more or fewer",
        "passes_apart": "another",
        "closes_apart": "The slots of the trial go different ways: this slot has computed",
        "last_step": "steps of its optimizers so far",
        "last_pass": "The slots of the trial go different ways: this slot has",
    }
    for one in pair.results(name):
        assert one["error"] == "TrialDefinitionError"
        assert words[name] in one["text"]
        assert "every slot makes the same backward passes" in one["text"]
        assert not any(one["hooks"])
