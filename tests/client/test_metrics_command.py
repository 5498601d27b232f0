"""``det trial metrics``: rows as a table, whatever metrics are called and whatever their values are."""

from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner, Result
from master_parts import Master
from put_experiments import put_experiment

from det_native.client.command import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["trial", "metrics", *arguments], catch_exceptions=False)


@pytest.mark.slow
def test_metrics_called_as_columns_of_other_rows_are_shown_as_they_are(named_master: Master) -> None:
    row = {"time": 0.5, "largest_bytes": 2e6, "batch": 0.25, "f1": math.nan}
    name = f"{put_experiment(named_master, last_row=row)}.1"
    [titles, cells] = run(name, "--kind", "validation").output.splitlines()
    assert titles.split() == ["batch", "val_loss", "time", "largest_bytes", "batch", "(metric)", "f1"]
    assert cells.split() == ["4", "1", "0.5", "2e+6", "0.25", "nan"]
    [shown] = json.loads(run(name, "--kind", "validation", "--json").output)
    assert (shown["batch"], shown["batch (metric)"], shown["f1"]) == (4, 0.25, "nan")
