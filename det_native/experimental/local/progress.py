"""How far a trial is that runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.client import rendering
from det_native.client.progress import newest_metrics
from det_native.schema import rest


class Progress:
    """A progress bar for one trial that runs here.

    Parameters
    ----------
    trial : rest.Trial
    metric : str or None
        The searcher's.
    """

    def __init__(self, trial: rest.Trial, metric: str | None) -> None:
        self._trial = trial
        self._metric = metric
        self._metrics: dict[str, Any] = {}

    def __enter__(self) -> None:
        import det_native.display  # noqa: F401 (registers what shows progress)

        self._view = rendering.current().progress(f"Trial {self._trial.id}")

    def __exit__(self, *_: object) -> None:
        self._view.close()

    def observe(self, batches: int, metrics: Mapping[str, Any]) -> None:
        """Show how far the trial is, and its newest metrics."""
        self._metrics |= metrics
        fraction = min(batches / max(self._trial.target_batches, 1), 1.0)
        self._view.update(fraction, newest_metrics(self._metrics, self._metric))
