"""A best epoch that has no checkpoint is told where the best checkpoint is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.client.selection import warning_of_better


class Detail:
    """What of an experiment's detail is looked at."""

    def __init__(self, best: float | None, *, smaller: bool = True, validates: bool = False) -> None:
        self.config: dict[str, Any] = {"searcher": {"metric": "loss", "smaller_is_better": smaller}}
        self.best_validation = best
        self.validates = validates


@pytest.mark.parametrize(
    ("metrics", "detail", "warns"),
    [
        ({"loss": 0.9}, Detail(0.1), True),
        ({"loss": 0.1}, Detail(0.1), False),
        ({"loss": 0.9}, Detail(0.95, smaller=False), True),
        ({"loss": 0.95}, Detail(0.95, smaller=False), False),
        ({"loss": 0.9}, Detail(0.1, validates=True), False),  # its checkpoints follow from a policy
        ({"loss": 0.9}, Detail(None), False),
        ({}, Detail(0.1), False),
    ],
)
def test_a_better_epoch_without_a_checkpoint(metrics: dict[str, Any], detail: Any, warns: bool) -> None:
    assert ("min_checkpoint_period" in warning_of_better(metrics, detail)) is warns
