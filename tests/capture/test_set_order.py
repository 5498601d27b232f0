"""Which values are in an order that a set gave, so that another process would make another one."""

from __future__ import annotations

from itertools import count, permutations

import pytest

from det_native.capture.set_order import has_order_of_a_set

NAMES = ["name", "searcher", "records_per_epoch", "hyperparameters", "min_validation_period"]


def by_chance() -> list[str]:
    """Return texts that are in the order of a set of them in this process, and not in that of the alphabet."""
    some = (permutations([f"{name}{number}" for name in NAMES]) for number in count())
    all_texts = (list(one) for each in some for one in each)
    return next(texts for texts in all_texts if list(set(texts)) == texts and texts != sorted(texts))


@pytest.mark.parametrize("kind", [dict.fromkeys, list, tuple])
@pytest.mark.parametrize("written", [dict.fromkeys, list, tuple])
def test_an_order_that_is_written_in_the_cell_is_no_sets(kind: type, written: type) -> None:
    texts = by_chance()
    value = kind(texts)
    assert not has_order_of_a_set(value, f"value = make({written(texts)})", {"value": value}, ())
    assert has_order_of_a_set(value, f"value = make({written(texts[::-1])})", {"value": value}, ())


@pytest.mark.parametrize("source", ["value = names()", "value = list({'b', 'a'} | more)"])
def test_any_other_is_if_it_agrees(source: str) -> None:
    texts = by_chance()
    assert has_order_of_a_set(texts, source, {"value": texts}, ())
    assert has_order_of_a_set(dict.fromkeys(texts), source, {}, ())
    assert not has_order_of_a_set(sorted(texts), source, {}, ())
