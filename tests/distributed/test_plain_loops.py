"""Plain PyTorch on two slots: ``loss.backward()``, ``optimizer.step()`` train as one slot does on the whole batch."""

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
# Loops that part, at which batch, and what is said: by one slot at least; another one may only learn that it is gone.
PARTING = {
    "steps_apart": (1, "steps of its optimizers so far, and another slot has made more or fewer"),
    "steps_apart at the end": (4, "steps of its optimizers so far, and another slot has made more or fewer"),
    "passes_apart": (1, "rank 0: in backward()\n  rank 1: between two batches"),
    "passes_apart at the end": (4, "rank 0: in backward()\n  rank 1: between two batches"),
    "closes_apart": (1, "The slots of the trial go different ways: this slot has computed"),
}


@pytest.fixture(autouse=True)
def inductor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let optimizers make the folder of the compiler elsewhere than among the temporary files."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))


# Loops of `make test`.
FEW = ("plain", "clipped", "scaled", "accumulated", "gan", "closed", "thawing", "shared")
MORE = [name for name in plain_loops.LOOPS if name not in FEW]


@pytest.fixture(scope="module", params=BACKENDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Loops on two slots."""
    return trained_on_two(tmp_path_factory.mktemp("plain"), [*FEW, *plain_loops.APART], request.param)


@pytest.fixture(scope="module", params=BACKENDS)
def more(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All other ones."""
    return trained_on_two(tmp_path_factory.mktemp("more"), MORE, request.param)


def trained_on_two(folder: Path, names: list[str], backend: str) -> Ended:
    ended = run_program(folder, {name: {"loop": name} for name in names}, backend=backend)
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    return ended


def run_program(folder: Path, cases: dict[str, dict[str, Any]], **given: Any) -> Ended:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_rig, "PROGRAM", Path(__file__).with_name("plain_program.py"))
        return run_ranks(folder, cases, **given)


@pytest.mark.parametrize("name", FEW)
def test_a_plain_loop_trains_on_two_slots_as_on_one(pair: Ended, tmp_path: Path, name: str) -> None:
    assert_as_one_slot(pair, tmp_path, name)


@pytest.mark.long
@pytest.mark.parametrize("name", MORE)
def test_further_loops_train_on_two_slots_as_on_one(more: Ended, tmp_path: Path, name: str) -> None:
    assert_as_one_slot(more, tmp_path, name)


def assert_as_one_slot(pair: Ended, tmp_path: Path, name: str) -> None:
    (first, second), alone = pair.results(name), plain_loops.trained(tmp_path, name)
    assert largest_difference(first["models"], second["models"]) == 0
    assert first["noted"] == second["noted"]
    assert first["batches"] == alone["batches"] == 10
    close = FAR.get(name, 2e-6)
    assert largest_difference(first["models"], alone["models"]) < close
    assert first["noted"] == pytest.approx(alone["noted"], rel=50 * close)
    for one in (first, second, alone):
        assert not any(one["hooks"])


def test_buffers_are_equal_after_each_pass(pair: Ended) -> None:
    first, second = pair.results("normalised")
    assert largest_difference(first["models"], second["models"]) == 0
    assert first["noted"] == second["noted"]
    assert len(set(first["noted"])) == 10


def test_weights_that_have_parted_are_told_at_the_end(pair: Ended) -> None:
    first, second = pair.results("pokes")
    assert largest_difference(first["models"], second["models"]) > 0
    for output in pair.outputs:
        assert output.count("The weights of the trial's slots have parted") == 1


@pytest.mark.long
def test_the_comparison_tells_slots_that_train_alone(tmp_path: Path) -> None:
    run = plain_loops.PlainRun(tmp_path / "half")
    plain_loops.plain(run)
    whole = plain_loops.trained(tmp_path / "whole", "plain")
    assert largest_difference(run.result()["models"], whole["models"]) > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("name", PARTING)
def test_slots_that_go_different_ways_are_told_so(tmp_path: Path, name: str) -> None:
    batch, words = PARTING[name]
    case = {"loop": name.split()[0], "batch": batch}
    ended = run_program(tmp_path, {"parting": case}, long_seconds=1.0)
    assert ended.codes == [3, 3], "\n".join(ended.outputs)
    errors = [ended.error(rank) for rank in range(2)]
    assert "TrialDefinitionError" in [kind for kind, _ in errors]
    for kind, text in errors:
        assert kind == "RankLostError" or (words in text and "every slot makes the same backward passes" in text)
