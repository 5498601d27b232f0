"""What ``train_and_evaluate()`` returns on the cluster: an experiment that is unpacked as what TensorFlow returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from det_native.client.handles import Experiment
from det_native.client.source import Source
from det_native.schema.exports import read


class EstimatorExperiment(Experiment):
    """An experiment, and the pair that ``train_and_evaluate()`` returns where it trains: ``metrics, exports = ...``.

    Who takes one of the two waits for the end of the experiment; in a search they are of the best trial.

    Parameters
    ----------
    source : Source
    experiment_id : int
    exporters : sequence of str
        The names of the exporters of the EvalSpec.
    """

    def __init__(self, source: Source, experiment_id: int, *, exporters: Sequence[str] = ()) -> None:
        super().__init__(source, experiment_id)
        self._exporters = tuple(exporters)
        self._pair: tuple[dict[str, Any] | None, list[Any]] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Wait for the end; give the metrics of the last evaluation, and what each exporter has returned."""
        return iter(self._waited())

    def __getitem__(self, index: int) -> Any:
        """Wait for the end; return the metrics (0), or what each exporter has returned (1)."""
        return self._waited()[index]

    def __len__(self) -> int:
        return 2

    def _waited(self) -> tuple[dict[str, Any] | None, list[Any]]:
        if self._pair is None:
            self.wait()
            trial = self.best_trial
            rows, checkpoints = trial.metrics(kind="validation"), trial.checkpoints
            exports = read(checkpoints[-1].files(), self._exporters) if checkpoints and self._exporters else []
            self._pair = last_evaluation(rows), exports
        return self._pair


def last_evaluation(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the last of a trial's validations as ``evaluate()`` returns it, with the ``global_step``."""
    if not rows:
        return None
    metrics = {name: value for name, value in rows[-1].items() if name != "batch"}
    return {**metrics, "global_step": rows[-1]["batch"]}
