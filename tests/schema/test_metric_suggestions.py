"""Which metric was meant."""

from __future__ import annotations

import pytest

from det_native.schema.metric_names import closest_metric, suggestion

KNOWN = ["val_loss", "val_accuracy"]


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        ("validation_accuracy", KNOWN, "val_accuracy"),
        ("val_acc", KNOWN, "val_accuracy"),
        ("acc", KNOWN, "val_accuracy"),
        ("val_acuracy", KNOWN, "val_accuracy"),
        ("validation_loss", KNOWN, "val_loss"),
        ("val_acc", ["val_loss", "val_sparse_categorical_accuracy"], "val_sparse_categorical_accuracy"),
        ("val_acc", ["loss", "validation_accuracy"], "validation_accuracy"),
        ("val_f1", KNOWN, None),
        ("", KNOWN, None),
    ],
)
def test_the_closest_one(written: str, known: list[str], meant: str | None) -> None:
    assert closest_metric(written, known) == meant
    assert suggestion(written, known) == (f"Did you mean '{meant}'? " if meant else "")
