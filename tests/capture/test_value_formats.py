"""Tables and tensors that were named in ``values=``: what a worker makes of their bytes is what the notebook had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from det_native.capture.carry import pack
from det_native.heap.values import read_values

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow
NOTED = pd.DataFrame({"x": [1]}).rename_axis(columns="feature")
NOTED.attrs["unit"] = "m"


def there_and_back(value: Any) -> Any:
    return read_values(pack(["value"], {"value": value}, checked=True).content, {})[1]["value"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"text": ["a", None, "ü"], "when": pd.date_range("2024-02-28", periods=3, tz="Europe/Berlin")}),
        pd.DataFrame({"kind": pd.Categorical(["b", "a", "b"], categories=["a", "b"], ordered=True)}),
        pd.DataFrame({"small": np.arange(3, dtype="int8"), "whole": pd.array([1, None, 3], dtype="Int64")}),
        pd.DataFrame(
            {"x": [1, 2, 3]}, index=pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["i", "j"])
        ),
        pd.DataFrame({"x": [1, 2, 3]})[lambda frame: frame.x > 1],
        pd.DataFrame({"mixed": [1, "a", (2, 3)]}),
        pd.DataFrame({"span": pd.interval_range(0, 3)}),
        pd.DataFrame([[1, 2]], columns=["twice", "twice"]),
        NOTED,
    ],
    ids=["text and time", "categories", "types", "two indices", "filtered", "mixed", "intervals", "twice", "noted"],
)
def test_a_table_comes_back_the_same(table: pd.DataFrame) -> None:
    back = there_and_back(table)
    pd.testing.assert_frame_equal(back, table, check_freq=False)
    assert (back.columns.names, back.attrs) == (table.columns.names, table.attrs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(12).reshape(3, 4).T,
        lambda: torch.arange(10)[::3],
        lambda: torch.zeros(0, 3),
        lambda: torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
    ],
    ids=["transposed", "strided", "empty", "bfloat16", "parameter", "sparse", "quantized"],
)
def test_a_tensor_comes_back_the_same(make: Any) -> None:
    tensor = make()
    back = there_and_back(tensor)
    assert (type(back), back.dtype, back.layout) == (type(tensor), tensor.dtype, tensor.layout)
    assert back.requires_grad == tensor.requires_grad
    back, tensor = (one.to_dense() if one.is_sparse else one for one in (back, tensor))
    assert torch.equal(back, tensor) or torch.equal(back.nan_to_num(), tensor.nan_to_num())
