"""What is said of the models into which weights were loaded."""

from __future__ import annotations

import pytest

from det_native.client.loaded import loaded_sentence


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["model"], "weights loaded into `model`"),
        (["generator", "critic"], "weights loaded into `generator` and `critic`"),
        (["a", "b", "c"], "weights loaded into `a`, `b` and `c`"),
        (["a", ""], "weights loaded into `a` and another model"),
        (["", "b", ""], "weights loaded into `b` and 2 other models"),
        ([""], "weights loaded"),
    ],
)
def test_every_model_is_named(names: list[str], sentence: str) -> None:
    assert loaded_sentence(names) == sentence
