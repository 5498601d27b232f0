"""Keras on several slots: two real processes end where one does, and go on from a checkpoint with the same bits."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slots_program

from det_native.frameworks import has_horovod

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not has_horovod("tensorflow"), reason="Horovod for TensorFlow is not installed here: sh tools/horovod.sh."
    ),
]

PROGRAM = Path(slots_program.__file__)
SECONDS = 500.0
Pair = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """What two processes have made of every case."""
    folder = tmp_path_factory.mktemp("pair")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    outputs = [(folder / f"output.{rank}").open("w+") for rank in range(2)]
    children = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), str(rank), "2", *slots_program.CASES],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        for rank, output in enumerate(outputs)
    ]
    try:
        codes = [child.wait(timeout=SECONDS) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    texts = [Path(output.name).read_text() for output in outputs]
    for output in outputs:
        output.close()
    assert codes == [0, 0], "\n".join(texts)
    names = slots_program.CASES
    return {name: [pickle.loads((folder / f"{name}.{rank}.pkl").read_bytes()) for rank in range(2)] for name in names}


def differ(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the largest difference of two models' weights."""
    pairs = zip(one["weights"], other["weights"], strict=True)
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)


def by_batch(rows: list[Any]) -> dict[int, Any]:
    """Return rows of metrics by their batch, values that come close to each other taken as equal."""
    return {batch: {name: pytest.approx(value, abs=2e-5) for name, value in metrics.items()} for batch, metrics in rows}


@pytest.mark.parametrize("case", ["plain", "sequence", "dataset", "generator", "adam", "legacy", "own-step"])
def test_two_slots_end_where_one_does(pair: Pair, tmp_path: Path, case: str) -> None:
    first, second = pair[case]
    assert differ(first, second) == 0
    alone = slots_program.one_slot(tmp_path, case)
    assert differ(first, alone) < 2e-5
    assert first["iterations"] == alone["iterations"]
    assert by_batch(first["validation"]) == by_batch(alone["validation"])
    assert [batch for batch, _ in first["training"]] == list(range(1, 16))
    assert first["checkpoints"] == [15]
    # Callbacks go by the metrics of an epoch: they are those of all slots, on each.
    assert first["history"] == second["history"]
    if case != "own-step":  # whose training step reports its last batch
        means = {name: pytest.approx(values, abs=2e-5) for name, values in alone["history"].items()}
        assert first["history"] == means


def test_training_metrics_are_averaged_where_that_is_asked_for(pair: Pair, tmp_path: Path) -> None:
    alone = slots_program.one_slot(tmp_path, "generator")
    assert pair["generator"][0]["training"][0][1]["loss"] == pytest.approx(alone["training"][0][1]["loss"], abs=1e-5)
    alone = slots_program.one_slot(tmp_path, "plain")
    assert pair["plain"][0]["training"][0][1]["loss"] != pytest.approx(alone["training"][0][1]["loss"], abs=1e-3)


def test_gradients_travel_in_half_precision_where_that_is_asked_for(pair: Pair, tmp_path: Path) -> None:
    first, second = pair["compressed"]
    assert differ(first, second) == 0
    assert 1e-7 < differ(first, slots_program.one_slot(tmp_path, "compressed")) < 2e-3


def test_the_scale_of_the_loss_goes_on_after_a_restart(pair: Pair) -> None:
    for whole, parts in zip(pair["whole-mixed"], pair["parts-mixed"], strict=True):
        assert differ(whole, parts) == 0
        assert whole["training"] == parts["training"]
        assert whole["scale"] == parts["scale"] == 8.0 * 2**5  # doubled after every third step


@pytest.mark.parametrize("kind", ["", "-dataset"])
def test_stopped_and_continued_it_ends_with_the_same_bits_on_each_slot(pair: Pair, kind: str) -> None:
    for whole, parts in zip(pair[f"whole{kind}"], pair[f"parts{kind}"], strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(whole["weights"], parts["weights"], strict=True))
        assert dict(whole["validation"]) == dict(parts["validation"])
        assert whole["training"] == parts["training"]
    first, second = pair[f"whole{kind}"]
    assert pair[f"parts{kind}"][0]["checkpoints"] == [3, 11, 15]
    # Dropout, and what is not trained, are each slot's own.
    assert [np.array_equal(*weights) for weights in zip(first["weights"], second["weights"], strict=True)] == [
        *[True] * 4,
        False,
        False,
        True,
        True,
    ]
