"""An estimator on several slots: two real processes end where one does, and go on with the same bits."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import estimator_slots_program as program
import numpy as np
import pytest
from forked_programs import ForkedPrograms

pytestmark = pytest.mark.slow

FEW = ["plain"]
Pair = dict[str, list[dict[str, Any]]]


def trained(folder: Path, names: list[str], size: int = 2) -> Pair:
    """Return what so many processes have made of cases."""
    commands = [[program.__file__, str(folder), str(rank), str(size), *names] for rank in range(size)]
    with ForkedPrograms.there("tensorflow") as programs:
        codes, outputs = programs.run(folder, commands, {})
    assert codes == [0] * size, "\n".join(outputs)
    for rank, output in enumerate(outputs):
        (folder / f"output.{rank}").write_text(output)
    return {
        name: [pickle.loads((folder / f"{name}.{rank}.pkl").read_bytes()) for rank in range(size)] for name in names
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Pair:
    """What two processes have made of the cases that every run of the tests has."""
    return trained(tmp_path_factory.mktemp("pair"), FEW)


def one_slot(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    """Return what one process has made of cases."""
    return {name: found for name, [found] in trained(folder, list(names), 1).items()}


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Pair:
    """What they have made of the others."""
    return trained(tmp_path_factory.mktemp("more"), [name for name in program.CASES if name not in (*FEW, "fewer")])


def differ(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the largest difference of two checkpoints' variables."""
    assert set(one["weights"]) == set(other["weights"])
    return max(float(np.abs(value - other["weights"][name]).max()) for name, value in one["weights"].items())


def assert_as_one_slot(of_pair: list[dict[str, Any]], alone: dict[str, Any]) -> None:
    """See that two slots have trained, and evaluated, as one does; the second reports the same."""
    first, second = of_pair
    assert differ(first, alone) < 2e-5
    assert [batch for batch, _ in first["training"]] == list(range(1, program.BATCHES + 1))
    assert (first["checkpoints"], second["checkpoints"]) == ([program.BATCHES], [])
    near = [
        (at, {name: pytest.approx(each, abs=2e-5) for name, each in row.items()}) for at, row in alone["validation"]
    ]
    assert first["validation"] == near
    assert second["validation"] == first["validation"]


def test_two_slots_end_where_one_does(pair: Pair, tmp_path: Path) -> None:
    alone = one_slot(tmp_path, "plain")["plain"]
    first, _ = pair["plain"]
    # A part of the validation data is smaller, so a mean of the slots' losses is not that of one slot's batches.
    for found in (first, pair["plain"][1], alone):
        for _, row in found["validation"]:
            row.pop("loss")
    assert_as_one_slot(pair["plain"], alone)
    assert [row["labels"] for _, row in first["validation"]] == [program.VALIDATED] * 3
    for (_, mine), (_, theirs) in zip(first["training"], alone["training"], strict=True):
        assert mine["loss"] == pytest.approx(theirs["loss"], abs=1e-5)


@pytest.mark.soak
def test_what_is_not_wrapped_is_told_on_each_slot(more: Pair) -> None:
    for rank in range(2):
        assert (
            "The input_fn of the TrainSpec returned a Dataset that is not wrapped: call dataset = "
            in (more["unwrapped"][rank]["error"])
        )
        assert "each of the 2 processes would read all of it: use the result" in more["dropped"][rank]["error"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> dict[str, dict[str, Any]]:
    """What one process has made of those that end as two."""
    return one_slot(tmp_path_factory.mktemp("alone"), "clips", "sum", "premade", "compressed")


@pytest.mark.long
@pytest.mark.parametrize("case", ["clips", "sum", "premade"])
def test_every_kind_of_optimizer_ends_where_one_slot_does(more: Pair, alone: Any, case: str) -> None:
    for found in (*more[case], alone[case]):
        for _, row in found["validation"]:
            row.pop("loss")
    assert_as_one_slot(more[case], alone[case])


@pytest.mark.long
def test_gradients_travel_in_half_precision_where_that_is_asked_for(more: Pair, alone: Any) -> None:
    assert 1e-7 < differ(more["compressed"][0], alone["compressed"]) < 2e-2


@pytest.mark.long
def test_stopped_and_continued_it_ends_with_the_same_bits(more: Pair) -> None:
    whole, parts = more["whole"], more["parts"]
    assert differ(whole[0], parts[0]) == 0
    for one, other in zip(whole, parts, strict=True):
        assert dict(one["validation"]) == dict(other["validation"])
        assert one["training"] == other["training"]
    assert parts[0]["checkpoints"] == [4, 8, 9]  # what one slot is asked for travels with the next batch
    # Dropout differs by slot, so does the loss.
    assert whole[0]["training"][0][1] != whole[1]["training"][0][1]


@pytest.mark.long
def test_on_another_number_of_slots_it_goes_on_and_says_what_that_means(more: Pair, tmp_path: Path) -> None:
    stopped = more["parts"][0]
    resume = stopped["folder"], stopped["manifests"][1]  # after 8 of 9 batches
    (tmp_path / "resume.pkl").write_bytes(pickle.dumps(resume))
    found = one_slot(tmp_path, "fewer")["fewer"]
    said = "The checkpoint was made on 2 slot(s), the trial has 1 now: it goes on, but not with the same bits."
    assert said in (tmp_path / "output.0").read_text()
    assert [batch for batch, _ in found["training"]] == [9]
    assert found["weights"]["global_step"] == 9


@pytest.mark.long
def test_a_stop_that_a_hook_of_one_slot_requests_ends_all_at_the_same_batch(more: Pair) -> None:
    first, second = more["stopped"]
    assert first["checkpoints"] == [4]
    assert [batch for batch, _ in first["training"]] == [batch for batch, _ in second["training"]] == [1, 2, 3, 4]


@pytest.mark.long
def test_a_stop_that_a_hook_of_an_evaluation_requests_on_one_slot_ends_all(more: Pair) -> None:
    first, second = more["stopped_evaluating"]
    assert first["checkpoints"] == [4]
    assert [batch for batch, _ in first["training"]] == [batch for batch, _ in second["training"]] == [1, 2, 3, 4]
    assert [batch for batch, _ in first["validation"]] == [4]


@pytest.mark.long
def test_event_files_are_the_trials(more: Pair) -> None:
    folder = more["whole"][0]["folder"] / "tensorboard"
    assert len(list(folder.glob("events.out.tfevents.*"))) == 1
    assert len(list((folder / "eval").glob("events.out.tfevents.*"))) == 1
