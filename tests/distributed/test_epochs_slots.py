"""Loops over ``context.epochs()`` on two slots: they train on the batches of one slot, divided."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import rank_rig
from rank_rig import Ended, largest_difference, run_ranks

sys.path.append(str(Path(__file__).parents[1] / "pytorch"))

import epochs_program

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All loops on two slots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_rig, "PROGRAM", Path(__file__).with_name("epochs_program.py"))
        ended = run_ranks(tmp_path_factory.mktemp("epochs"), {name: {"loop": name} for name in epochs_program.LOOPS})
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    return ended


@pytest.mark.parametrize("name", ["shuffled", "listed"])
def test_two_slots_train_as_one(pair: Ended, tmp_path: Path, name: str) -> None:
    (first, second), alone = pair.results(name), epochs_program.trained(tmp_path, name)
    assert largest_difference(first["models"], second["models"]) == 0
    assert largest_difference(first["models"], alone["models"]) < 2e-6
    assert first["batches"] == second["batches"] == alone["batches"]
    assert first["hooks"] == second["hooks"] == 0


def test_reported_metrics_are_those_of_one_slot(pair: Ended, tmp_path: Path) -> None:
    (first, _), alone = pair.results("shuffled"), epochs_program.trained(tmp_path, "shuffled")
    assert [batch for batch, _ in first["rows"]] == [batch for batch, _ in alone["rows"]] == [5, 10, 15]
    for (_, ours), (_, expected) in zip(first["rows"], alone["rows"], strict=True):
        assert ours == pytest.approx(expected, rel=1e-4)


def test_training_passes_are_divided_and_evaluations_are_not(pair: Ended) -> None:
    for result in pair.results("shuffled"):
        assert result["sizes"] == [(20, 20), (40, 40)] * 3


@pytest.mark.long
def test_a_slot_that_leaves_the_loop_ends_it_for_all_after_that_epoch(pair: Ended) -> None:
    first, second = pair.results("left")
    assert first["batches"] == second["batches"] == 10
    assert largest_difference(first["models"], second["models"]) == 0
