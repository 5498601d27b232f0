"""What a single value is sent as."""

from __future__ import annotations

import io
import itertools
import threading
import tracemalloc
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.capture import carry
from det_native.capture.carry import CannotSendError, Packed
from det_native.heap.values import read_values

LIMIT = 1 << 20


def encode(name: str, value: Any, *, declared: bool, **options: Any) -> Packed:
    limit = carry.NO_LIMIT if declared else LIMIT
    return carry.pack([name], {name: value}, checked=declared, limit=limit, **options)


def made(packed: Packed) -> Any:
    (value,) = read_values(packed.content, {})[1].values()
    return value


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(plain)
def test_plain_values_come_back(value: Any) -> None:
    assert made(encode("value", value, declared=False)) == value


def test_a_200_mb_array_is_refused_by_its_size_without_being_copied() -> None:
    big = np.zeros(25_000_000)
    held = {"inner": [big]}
    tracemalloc.start()
    try:
        with pytest.raises(CannotSendError, match=r"numpy.ndarray, 200 MB"):
            encode("held", held, declared=False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * LIMIT


def test_anything_over_the_limit_is_refused_before_it_is_written() -> None:
    with pytest.raises(CannotSendError, match=r"over 1\.05 MB") as caught:
        encode("texts", ["x" * 1000 + str(i) for i in range(5000)], declared=False)
    assert caught.value.kind == "large"
    assert encode("text", b"x" * (LIMIT - 200), declared=False).content


@pytest.mark.parametrize(
    "value", [threading.Lock(), [threading.RLock()], {"a": iter([1])}, (i for i in ()), io.StringIO(), itertools.count]
)
def test_what_never_travels(value: Any) -> None:
    if value is itertools.count:
        assert made(encode("count", value, declared=False)) is itertools.count
        return
    for declared in (False, True):
        with pytest.raises(CannotSendError):
            encode("value", value, declared=declared)


def test_local_modules_that_a_value_needs_are_named() -> None:
    encoded = encode("where", np.float32(1), declared=False, is_local=lambda name: name.startswith("numpy"))
    assert any(name.startswith("numpy") for name in encoded.modules)


_KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def _planted() -> dict[str, Any]:
    """Return values that hold a key in all the ways that arrays and tables keep texts."""
    return {
        "bytes": _KEY.encode(),
        "bytearray": bytearray(b"x " + _KEY.encode()),
        "bytes in a list": [b"x", {"y": _KEY.encode()}],
        "array of texts": np.array(["x", _KEY]),
        "array of bytes": np.array([b"x", _KEY.encode()]),
        "array of objects": np.array(["x", _KEY], dtype=object),
        "array of records": np.array([(1, _KEY)], dtype=[("a", "i4"), ("b", "U40")]),
        "table": pandas.DataFrame({"a": ["x", _KEY], "b": [1, 2]}),
        "table of categories": pandas.DataFrame({"a": pandas.Categorical(["x", _KEY])}),
        "table of bytes": pandas.DataFrame({"a": pandas.Series([b"x", _KEY.encode()], dtype=object)}),
        "table with an index": pandas.DataFrame({"a": [1]}, index=[_KEY]),
        "table with levels": pandas.DataFrame({"a": [1]}, index=pandas.MultiIndex.from_tuples([("x", _KEY)])),
        "table with a column": pandas.DataFrame({_KEY: [1]}),
        "table in a dictionary": {"x": pandas.DataFrame({"a": [_KEY]})},
        "column": pandas.Series(["x", _KEY]),
    }


@pytest.mark.parametrize("what", list(_planted()))
def test_a_key_is_not_sent_unasked_in_whatever_form(what: str) -> None:
    value = _planted()[what]
    with pytest.raises(CannotSendError, match="looks like a secret") as refused:
        encode("value", value, declared=False)
    assert refused.value.kind == "secret"
    assert _KEY not in str(refused.value)
    assert encode("value", value, declared=True).content


def test_tables_and_bytes_without_a_key_are_sent() -> None:
    for value in (
        pandas.DataFrame({"token": ["the", "cat"], "password": ["x", "y"]}),  # by its form only: words are tokens, too
        np.random.default_rng(1).bytes(500_000),
        np.array(["a", "b"]),
        pandas.Series(pandas.interval_range(0, 3)),
    ):
        assert encode("value", value, declared=False).content
