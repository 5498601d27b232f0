"""Which program is that of an earlier run of the same cell."""

from __future__ import annotations

import pytest

from det_native.experimental.again import _is_same

PROGRAM = ("import torch", "rate = 0.1", "experiment = create(Net, rate)")


@pytest.mark.parametrize(
    ("since", "same"),
    [
        pytest.param((), True, id="nothing"),
        pytest.param(("experiment.id", "print(3)"), True, id="what does not matter"),
        pytest.param(("rate = 0.2",), False, id="another value"),
        pytest.param(("torch.set_default_dtype(torch.float64)",), False, id="a setting"),
        pytest.param(("%time 3",), False, id="what cannot be read"),
    ],
)
def test_a_cell_that_is_run_again_is_told_from_one_of_another_program(since: tuple[str, ...], same: bool) -> None:
    assert _is_same(PROGRAM, (*PROGRAM[:-1], *since, PROGRAM[-1])) is same


def test_an_edited_cell_is_another_program() -> None:
    assert not _is_same(PROGRAM, (PROGRAM[0], "rate = 0.2", PROGRAM[-1]))
    assert not _is_same(PROGRAM, (*PROGRAM[:-1], "experiment = create(Other, rate)"))
