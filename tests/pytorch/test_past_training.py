"""A model that is trained again draws on from its training before, if nothing else has drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from det_native.pytorch.past_training import next_training

AFTER = {"random": [3]}


@pytest.fixture(autouse=True)
def streams() -> Iterator[None]:
    before = random.getstate()
    yield
    random.setstate(before)


def test_the_same_model_begins_where_it_ended() -> None:
    model = object()
    first, begins_with = next_training(None, [model])
    assert begins_with is None
    first.after = AFTER
    second, begins_with = next_training(first, [model])
    assert begins_with is AFTER
    assert next_training(second, [model])[1] is None  # where it ended is not known yet


def test_another_model_or_a_draw_between_draws_on_from_the_notebook() -> None:
    model = object()
    first, _ = next_training(None, [model])
    first.after = AFTER
    assert next_training(first, [object()])[1] is None
    assert next_training(first, [model, object()])[1] is None
    random.random()
    assert next_training(first, [model])[1] is None
