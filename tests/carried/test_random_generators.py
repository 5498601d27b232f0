"""Generators of random numbers that a loop draws from go on where they were."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from det_native.carried.loop import LoopNames

torch = pytest.importorskip("torch")


class Own(random.Random):
    """One of a user's own."""


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: random.Random(4), lambda source: source.random()),
        (lambda: Own(4), lambda source: source.random()),
        (lambda: np.random.default_rng(4), lambda source: source.random()),
        (lambda: np.random.RandomState(4), lambda source: source.rand()),
        (lambda: torch.Generator().manual_seed(4), lambda source: torch.rand(1, generator=source).item()),
    ],
    ids=["random", "own", "numpy", "numpy of old", "torch"],
)
def test_a_generator_goes_on(make: Callable[[], Any], draw: Callable[[Any], float]) -> None:
    source = make()
    for _ in (1,):
        names = LoopNames(sys._getframe(), {})
        draw(source)
        saved = names.save()
        expected = [draw(source) for _ in range(3)]
    source = make()
    for _ in (1,):
        assert names.restore(saved.data) == {}
    assert [draw(source) for _ in range(3)] == expected
