"""Keras on several slots: two real processes end where one does, and go on from a checkpoint with the same bits."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slots_program
from det_harness.ranks.communicator import OneProcess
from forked_programs import ForkedPrograms
from two_machines import two_machines

pytestmark = pytest.mark.slow

PROGRAM = Path(slots_program.__file__)
TOLERANCE = 1e-6
FEW = ["whole", "once", "shuffled"]
Pair = dict[str, list[dict[str, Any]]]


def trained(folder: Path, names: list[str]) -> Pair:
    """Return what two processes have made of cases."""
    with ForkedPrograms.there("tensorflow") as programs:
        codes, outputs = programs.run(
            folder, [[str(PROGRAM), str(folder), str(rank), "2", *names] for rank in range(2)], {}
        )
    assert codes == [0, 0], "\n".join(outputs)
    return {name: [pickle.loads((folder / f"{name}.{rank}.pkl").read_bytes()) for rank in range(2)] for name in names}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Pair:
    """What two processes have made of the cases that every run of the tests has."""
    return trained(tmp_path_factory.mktemp("pair"), FEW)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Pair:
    """What they have made of the others."""
    return trained(tmp_path_factory.mktemp("more"), [name for name in slots_program.CASES if name not in FEW])


def differ(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the largest difference of two models' weights."""
    pairs = zip(one["weights"], other["weights"], strict=True)
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)


def by_batch(rows: list[Any]) -> dict[int, Any]:
    """Return rows of metrics by their batch, values that come close to each other taken as equal."""
    return {batch: {name: pytest.approx(value, abs=2e-5) for name, value in metrics.items()} for batch, metrics in rows}


def assert_as_one_slot(of_pair: list[dict[str, Any]], alone: dict[str, Any], *, means: bool = True) -> None:
    """See that two slots have trained as one does; `means` says that an epoch's metrics are those of all its rows."""
    first, second = of_pair
    assert differ(first, second) == 0
    assert differ(first, alone) < TOLERANCE
    assert first["iterations"] == alone["iterations"]
    assert by_batch(first["validation"]) == by_batch(alone["validation"])
    assert [batch for batch, _ in first["training"]] == list(range(1, 16))
    assert first["checkpoints"] == [15]
    # Callbacks go by the metrics of an epoch: they are those of all slots, on each.
    assert first["history"] == second["history"]
    if means:
        near = {name: pytest.approx(values, abs=2e-5) for name, values in alone["history"].items()}
        assert first["history"] == near


def assert_same_bits(whole: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    """See that training in parts has come to what training in one piece has, on each slot."""
    for one, other in zip(whole, parts, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one["weights"], other["weights"], strict=True))
        assert dict(one["validation"]) == dict(other["validation"])
        assert one["training"] == other["training"]
    assert parts[0]["checkpoints"][-1] == 15
    # Dropout, and what is not trained, are each slot's own.
    equal = [np.array_equal(*pair) for pair in zip(whole[0]["weights"], whole[1]["weights"], strict=True)]
    assert equal == [*[True] * 4, False, False, True, True]


@pytest.mark.soak
def test_two_slots_end_where_one_does(more: Pair, tmp_path: Path) -> None:
    alone = slots_program.one_slot(tmp_path, "plain")
    assert_as_one_slot(more["plain"], alone)
    # What is reported of a batch is the first slot's, unless means are asked for.
    assert more["plain"][0]["training"][0][1]["loss"] != pytest.approx(alone["training"][0][1]["loss"], abs=1e-3)


def test_stopped_and_continued_it_ends_with_the_same_bits_on_each_slot(pair: Pair) -> None:
    assert_same_bits(pair["whole"], pair["once"])
    assert pair["once"][0]["checkpoints"] == [8, 15]


def test_what_fit_shuffles_has_the_order_and_the_numbers_of_one_slot(pair: Pair, tmp_path: Path) -> None:
    # The last of the five batches has one row, so one slot has none.
    assert_as_one_slot(pair["shuffled"], slots_program.one_slot(tmp_path, "shuffled"))


@pytest.mark.long
def test_two_machines_end_where_one_slot_does(tmp_path: Path) -> None:
    with two_machines(tmp_path) as both:
        machines = [[machine.network, machine.address] for machine in both.machines]
        (tmp_path / "machines.json").write_text(json.dumps({"gangs": both.gangs((0, 1)), "machines": machines}))
        found = trained(tmp_path, ["plain"])
    assert_as_one_slot(found["plain"], slots_program.one_slot(tmp_path / "alone", "plain"))


@pytest.mark.soak
def test_stopped_twice_it_ends_with_the_same_bits_on_each_slot(pair: Pair, more: Pair) -> None:
    assert_same_bits(pair["whole"], more["parts"])
    assert more["parts"][0]["checkpoints"] == [3, 11, 15]


@pytest.mark.soak
def test_on_another_number_of_slots_it_goes_on_and_says_what_that_means(pair: Pair, more: Pair, caplog: Any) -> None:
    stopped = more["parts"][0]
    run = slots_program.Run(stopped["folder"], OneProcess(), slots_program.CASES["whole"])
    run.run(stopped["manifests"][1])  # after 11 of 15 batches
    assert "The checkpoint was made on 2 slot(s), the trial has 1 now" in caplog.text
    found = run.result()
    assert [batch for batch, _ in found["training"]] == [12, 13, 14, 15]
    assert found["iterations"] == pair["whole"][0]["iterations"]
    # Dropout differs; what was learnt before does not.
    assert 0 < differ(found, pair["whole"][0]) < 0.5


@pytest.mark.soak
@pytest.mark.parametrize("case", ["sequence", "dataset", "generator", "adam", "legacy", "own-step"])
def test_every_kind_of_data_and_of_optimizer_ends_where_one_slot_does(more: Pair, tmp_path: Path, case: str) -> None:
    # A training step of the user's reports its last batch.
    assert_as_one_slot(more[case], slots_program.one_slot(tmp_path, case), means=case != "own-step")


@pytest.mark.soak
def test_validation_data_may_change_their_length_on_several_slots(more: Pair, tmp_path: Path) -> None:
    assert_as_one_slot(more["growing"], slots_program.one_slot(tmp_path, "growing"))
    for whole, parts in zip(more["growing"], more["growing-parts"], strict=True):
        assert whole["validation"] == parts["validation"]


@pytest.mark.soak
def test_training_metrics_are_averaged_where_that_is_asked_for(more: Pair, tmp_path: Path) -> None:
    alone = slots_program.one_slot(tmp_path, "generator")
    assert more["generator"][0]["training"][0][1]["loss"] == pytest.approx(alone["training"][0][1]["loss"], abs=1e-5)


@pytest.mark.soak
def test_gradients_travel_in_half_precision_where_that_is_asked_for(more: Pair, tmp_path: Path) -> None:
    first, second = more["compressed"]
    assert differ(first, second) == 0
    assert 1e-7 < differ(first, slots_program.one_slot(tmp_path, "compressed")) < 2e-3


@pytest.mark.soak
def test_the_scale_of_the_loss_goes_on_after_a_restart(more: Pair) -> None:
    for whole, parts in zip(more["whole-mixed"], more["parts-mixed"], strict=True):
        assert differ(whole, parts) == 0
        assert whole["training"] == parts["training"]
        assert whole["scale"] == parts["scale"] == 8.0 * 2**5  # doubled after every third step


@pytest.mark.soak
def test_a_dataset_goes_on_with_the_same_bits_on_each_slot(more: Pair) -> None:
    assert_same_bits(more["whole-dataset"], more["parts-dataset"])
