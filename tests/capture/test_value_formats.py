"""Tables and tensors that were named in ``values=``: what a worker makes of their bytes is what the notebook had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_native.capture.carry import encode
from det_native.capture.value_formats import decode

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow


def there_and_back(value: Any, codec: str) -> Any:
    encoded = encode("value", {"value": value}, declared=True).encoded
    assert encoded.codec == codec
    return decode(encoded.codec, encoded.content)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": [1.5, np.nan, -np.inf], "n": [1, 2, 3], "flag": [True, False, True]}),
        pd.DataFrame({"text": ["a", None, "ü"], "when": pd.date_range("2024-02-28", periods=3, tz="Europe/Berlin")}),
        pd.DataFrame({"kind": pd.Categorical(["b", "a", "b"], categories=["a", "b"], ordered=True)}),
        pd.DataFrame({"small": np.arange(3, dtype="int8"), "whole": pd.array([1, None, 3], dtype="Int64")}),
        pd.DataFrame({"x": [1, 2]}, index=pd.Index(["p", "q"], name="row")),
        pd.DataFrame(
            {"x": [1, 2, 3]}, index=pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["i", "j"])
        ),
        pd.DataFrame({"x": [1, 2, 3]})[lambda frame: frame.x > 1],
        pd.DataFrame({"empty": pd.Series([], dtype="float32")}),
    ],
    ids=["numbers", "text and time", "categories", "types", "named index", "two indices", "filtered", "no rows"],
)
def test_a_table_travels_as_parquet(table: pd.DataFrame) -> None:
    back = there_and_back(table, "parquet")
    pd.testing.assert_frame_equal(back, table, check_freq=False)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5), st.lists(st.floats(width=64), min_size=4, max_size=4), min_size=1, max_size=4
    )
)
def test_any_table_of_numbers_comes_back(columns: dict[str, list[float]]) -> None:
    table = pd.DataFrame(columns)
    pd.testing.assert_frame_equal(there_and_back(table, "parquet"), table)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"mixed": [1, "a", (2, 3)]}),
        pd.DataFrame({"span": pd.interval_range(0, 3)}),
        pd.DataFrame([[1, 2]], columns=["twice", "twice"]),
        pd.DataFrame({"x": [1 + 2j]}),
        pd.DataFrame({0: [1], 1: [2]}),
    ],
    ids=["mixed", "intervals", "a name twice", "complex", "numbers as names"],
)
def test_a_table_that_parquet_would_change_or_refuse_comes_back_the_same(table: pd.DataFrame) -> None:
    encoded = encode("value", {"value": table}, declared=True).encoded
    pd.testing.assert_frame_equal(decode(encoded.codec, encoded.content), table)


def test_what_parquet_would_lose_of_a_table_is_kept() -> None:
    named = pd.DataFrame({"x": [1]}).rename_axis(columns="feature")
    noted = pd.DataFrame({"x": [1]})
    noted.attrs["unit"] = "m"
    for table in (named, noted):
        encoded = encode("value", {"value": table}, declared=True).encoded
        back = decode(encoded.codec, encoded.content)
        pd.testing.assert_frame_equal(back, table, check_names=True)
        assert back.columns.names == table.columns.names
        assert back.attrs == table.attrs


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(12, dtype=torch.float32).reshape(3, 4),
        lambda: torch.arange(12).reshape(3, 4).T,
        lambda: torch.arange(10)[::3],
        lambda: torch.tensor(2.5, dtype=torch.float64),
        lambda: torch.zeros(0, 3),
        lambda: torch.tensor([True, False]),
        lambda: torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
    ],
    ids=["plain", "transposed", "strided", "one number", "empty", "booleans", "bfloat16"],
)
def test_a_tensor_travels_as_safetensors(make: Any) -> None:
    tensor = make()
    back = there_and_back(tensor, "safetensors")
    assert type(back) is torch.Tensor
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back.nan_to_num(), tensor.nan_to_num())


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
    ],
    ids=["with gradient", "parameter", "sparse", "quantized"],
)
def test_a_tensor_that_safetensors_would_change_or_refuse_comes_back_the_same(make: Any) -> None:
    tensor = make()
    encoded = encode("value", {"value": tensor}, declared=True).encoded
    back = decode(encoded.codec, encoded.content)
    assert type(back) is type(tensor)
    assert back.requires_grad == tensor.requires_grad
    assert back.layout == tensor.layout
    assert torch.equal(back.to_dense() if tensor.is_sparse else back, tensor.to_dense() if tensor.is_sparse else tensor)
