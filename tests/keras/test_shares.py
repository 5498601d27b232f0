"""Which rows and batches of its data a rank has."""

from __future__ import annotations

import numpy as np
import pytest
from det_harness.frameworks.keras.shares import Share
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5))
def test_together_the_ranks_have_each_row_once_and_as_many_batches(records: int, batch_size: int, size: int) -> None:
    shares = [Share(rank, size) for rank in range(size)]
    order = np.random.default_rng(records).permutation(records)
    own = [share.rows(order, share.own(records)) for share in shares]
    assert sorted(np.concatenate(own).tolist()) == list(range(records))
    for share, rows in zip(shares, own, strict=True):
        padded = share.padded(records, batch_size)
        given_rows = share.rows(order, padded)
        assert len(given_rows) == padded
        assert -(-padded // batch_size) == share.batches(records, batch_size)
        # What is given besides is one row, in a batch where nothing is the rank's own.
        idle = share.is_idle_last(records, batch_size)
        assert padded - len(rows) == idle
        if idle:
            assert len(rows) <= (share.batches(records, batch_size) - 1) * batch_size


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5))
def test_the_batches_of_all_ranks_are_a_batch_of_one_process(records: int, batch_size: int, size: int) -> None:
    order = np.arange(records)
    shares = [Share(rank, size) for rank in range(size)]
    for number in range(shares[0].batches(records, batch_size)):
        part = slice(number * batch_size, (number + 1) * batch_size)
        found = np.concatenate([share.rows(order, share.own(records))[part] for share in shares])
        whole = order[number * batch_size * size : (number + 1) * batch_size * size]
        assert sorted(found.tolist()) == whole.tolist()


def test_one_rank_has_everything() -> None:
    share = Share()
    assert (share.own(7), share.batches(7, 2), share.padded(7, 2)) == (7, 4, 7)
    assert not share.is_idle_last(7, 2)
