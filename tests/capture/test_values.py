"""What a single value is sent as."""

from __future__ import annotations

import io
import itertools
import threading
import tracemalloc
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.capture.facts import human_size
from det_native.capture.values import VALUE_LIMIT, CannotSendError, encode

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(plain)
def test_plain_values_come_back(value: Any) -> None:
    encoded = encode("value", value, declared=False)
    assert encoded.codec == "cloudpickle"
    assert cloudpickle.loads(encoded.content) == value


def test_a_200_mb_array_is_refused_by_its_size_without_being_copied() -> None:
    big = np.zeros(25_000_000)
    held = {"inner": [big]}
    tracemalloc.start()
    try:
        with pytest.raises(CannotSendError, match=r"numpy.ndarray, 200.0 MB"):
            encode("held", held, declared=False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * VALUE_LIMIT


def test_anything_over_the_limit_is_refused_before_it_is_written() -> None:
    with pytest.raises(CannotSendError, match="over 1 MiB") as caught:
        encode("texts", ["x" * 1000 + str(i) for i in range(5000)], declared=False)
    assert caught.value.kind == "large"
    assert encode("text", b"x" * (VALUE_LIMIT - 200), declared=False).codec == "cloudpickle"


def test_declared_arrays_have_a_format_of_their_own() -> None:
    encoded = encode("x", np.arange(400_000), declared=True)
    assert encoded.codec == "npy"
    assert np.load(io.BytesIO(encoded.content), allow_pickle=False).tolist()[-1] == 399_999
    objects = encode("x", np.array([{"a": 1}], dtype=object), declared=True)
    assert objects.codec == "cloudpickle"


@pytest.mark.parametrize(
    "value", [threading.Lock(), [threading.RLock()], {"a": iter([1])}, (i for i in ()), io.StringIO(), itertools.count]
)
def test_what_never_travels(value: Any) -> None:
    if value is itertools.count:
        assert cloudpickle.loads(encode("count", value, declared=False).content) is itertools.count
        return
    for declared in (False, True):
        with pytest.raises(CannotSendError):
            encode("value", value, declared=declared)


def test_local_modules_that_a_value_needs_are_named() -> None:
    encoded = encode("where", np.float32(1), declared=False, is_local=lambda name: name.startswith("numpy"))
    assert any(name.startswith("numpy") for name in encoded.modules)


@pytest.mark.parametrize(("size", "text"), [(12, "12 B"), (200_000_000, "200.0 MB"), (1500, "1.5 kB")])
def test_sizes_for_people(size: int, text: str) -> None:
    assert human_size(size) == text
