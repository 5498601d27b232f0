"""Curves that are drawn in place of means over an epoch so far."""

from __future__ import annotations

from det_native.client.history import keras_history
from det_native.client.progress import newest_metrics
from det_native.schema.drawn import drawn, names_to_read
from det_native.schema.metric_names import companions
from det_native.schema.rest import MetricCurve, MetricRow
from det_native.schema.states import MetricKind


def curve(name: str, value: float, trial: int = 1, kind: MetricKind = MetricKind.TRAINING) -> MetricCurve:
    return MetricCurve(
        trial_id=trial, kind=kind, name=name, batch=[1], minimum=[value], maximum=[value], mean=[value], last=value
    )


def test_a_mean_gives_way_to_what_single_batches_or_epochs_have_contributed() -> None:
    curves = [
        curve("auc", 0.1),
        curve("batch_loss", 0.2),
        curve("epoch_auc", 0.3),
        curve("loss", 0.4),
        curve("other", 0.5),
        curve("loss", 0.6, trial=2),
        curve("val_loss", 0.7, kind=MetricKind.VALIDATION),
    ]
    found = [(one.trial_id, one.name, one.mean, one.last) for one in drawn(curves, "keras")]
    assert found == [
        (1, "auc", [0.3], 0.1),
        (1, "loss", [0.2], 0.4),
        (1, "other", [0.5], 0.5),
        (2, "loss", [0.6], 0.6),
        (1, "val_loss", [0.7], 0.7),
    ]
    assert drawn(curves, "torch") == curves, "there a metric of such a name is the user's own"
    assert names_to_read("loss", "keras") == ["loss", "batch_loss", "epoch_loss"]
    assert names_to_read("loss", "torch") == ["loss"]
    assert companions(["a", "batch_b", "c", "epoch_c", "batch_c"]) == {"c": "batch_c"}


def test_what_stands_for_validations_is_not_drawn() -> None:
    curves = [curve("loss", 0.1), curve("loss", 0.2, kind=MetricKind.VALIDATION)]
    assert [drawn(curves, framework, validates=False) for framework in ("torch", "keras")] == [curves[:1]] * 2
    assert drawn(curves, "torch") == curves


def test_numbers_stay_those_of_keras() -> None:
    rows = [
        MetricRow(batch=batch, metrics={"loss": mean, "batch_loss": own, "auc": 0.5, "epoch_auc": 0.5})
        for batch, mean, own in ((1, 2.0, 2.0), (2, 1.5, 1.0))
    ]
    assert keras_history(rows, [], ends=[2], running=True) == {"loss": [1.5], "auc": [0.5]}
    assert newest_metrics(rows[-1].metrics, "loss") == "loss 1.5, auc 0.5"
