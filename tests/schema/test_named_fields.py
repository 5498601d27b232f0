"""Whether a configuration names a field, valid or not as it stands alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from det_native.schema.loading import names

# Alone it is no valid configuration: a length in epochs wants records, a search wants a metric.
SEARCH: dict[str, Any] = {"searcher": {"name": "random", "max_trials": 2, "max_length": {"epochs": 8}}}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (None, False),
        ({}, False),
        (SEARCH, False),
        ({"searcher": SEARCH["searcher"] | {"metric": "loss"}}, True),
        ("searcher: {metric: accuracy}", True),
        ("searcher: single", False),
    ],
)
def test_the_searchers_metric(config: Any, named: bool) -> None:
    assert names(config, "searcher.metric") is named


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "const.yaml"
    path.write_text("searcher:\n  metric: loss\n")
    assert names(path, "searcher.metric")
    assert not names(str(path), "hyperparameters.lr")
