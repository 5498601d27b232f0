"""``det trial metrics``: rows as a table, whatever metrics are called and whatever their values are."""

from __future__ import annotations

import json
import math

from click.testing import CliRunner, Result
from det_native.local.store import LocalStore
from local_experiments import write_experiment

from det_native.client.command import cli
from det_native.schema import rest


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["trial", "metrics", *arguments], catch_exceptions=False)


def test_metrics_called_as_columns_of_other_rows_are_shown_as_they_are() -> None:
    experiment = write_experiment()
    row = {"time": 0.5, "largest_bytes": 2e6, "batch": 0.25, "matrix": [[1.0, "NaN"]], "note": "cat", "f1": math.nan}
    LocalStore.find(str(experiment.id)).write_rows(1, "validation", [rest.MetricRow(batch=4, metrics=row)])
    name = f"{experiment.id}/1"
    [titles, cells] = run(name, "--kind", "validation").output.splitlines()
    assert titles.split() == ["batch", "time", "largest_bytes", "batch", "(metric)", "matrix", "note", "f1"]
    assert cells.split() == ["4", "0.5", "2e+6", "0.25", "[[1.0,", "nan]]", "cat", "nan"]
    [shown] = json.loads(run(name, "--kind", "validation", "--json").output)
    assert shown["matrix"] == [[1.0, "nan"]]
    assert (shown["batch"], shown["batch (metric)"], shown["note"]) == (4, 0.25, "cat")
