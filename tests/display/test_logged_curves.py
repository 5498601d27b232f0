"""Curves of what the user's code logs: in panels of their own."""

from __future__ import annotations

from made_experiments import make_experiment, source_of

from det_native.display.curves import curves_of
from det_native.display.fallback import reduced_curves
from det_native.schema.rest import MetricRow


def test_a_logged_metric_has_a_panel_of_its_own_also_by_the_name_of_a_reported_one() -> None:
    experiment = make_experiment()
    before = set(curves_of(experiment).panels)
    rows = [MetricRow(batch=batch, metrics={"f1": batch / 10, "loss": -1.0}) for batch in (1, 2)]
    source_of(experiment).write_rows(1, "logged", rows)
    for curves in (curves_of(experiment), reduced_curves(experiment)):
        assert set(curves.panels) == before | {"f1", "loss (logged)"}
        assert [(line.batches, line.values) for line in curves.panels["f1"]] == [([1, 2], [0.1, 0.2])]
    titles = [axes.get_title() for axes in experiment.plot("f1").axes]
    assert titles == ["f1"]
