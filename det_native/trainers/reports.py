"""What the callbacks of other libraries' trainers have in common: they report to a Core context while these train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native.core.cluster_info import get_cluster_info
from det_native.core.modes import Unit
from det_native.core.searcher import SearcherOperation
from det_native.errors import ArgumentError
from det_native.schema.lengths import UNTOLD

if TYPE_CHECKING:
    from det_native.core import Context


class TrainerReports:
    """Reports of a trainer that counts steps and epochs by itself.

    Parameters
    ----------
    context : det.core.Context
    owner : str
        The callback, for messages.
    """

    def __init__(self, context: Context, owner: str) -> None:
        if not all(hasattr(context, part) for part in ("train", "checkpoint", "preempt", "run", "distributed")):
            raise ArgumentError(
                f"{owner}({type(context).__name__}): give the context of `with det.core.init() as context:` or of "
                "det.experimental.core.init()."
            )
        self.context = context
        self.first = context.distributed.rank == 0
        self._reported: dict[tuple[str, str], int] = {}
        # Not the next one of `searcher.operations()`: in a notebook that is the training, which goes on already.
        self._operation = SearcherOperation(context.run, context.run.length)
        self._saved = -1

    @property
    def metric(self) -> str | None:
        """The searcher's metric; None where the configuration names none."""
        searcher = self._config().get("searcher") or {}
        name: str | None = searcher.get("metric")
        return name

    def length_in(self, unit: str) -> int | None:
        """Return how long the whole training is, where that is said in this unit (``batches`` or ``epochs``)."""
        length: Mapping[str, int] = (self._config().get("searcher") or {}).get("max_length") or {}
        return None if length == UNTOLD.model_dump(mode="json") else length.get(unit)

    def is_reached(self, *, steps: int, epochs: float) -> bool:
        """Whether so much is all that the search asks for now: the whole training, or a stage of it."""
        unit = self.context.run.unit
        if unit is None:
            return False
        return {Unit.BATCHES: steps, Unit.EPOCHS: epochs}.get(unit, 0) >= self._operation.length

    def report(self, group: str, step: int, metrics: Mapping[str, Any]) -> None:
        """Report what of `metrics` is a number, each name once for a step: trainers say the last ones twice."""
        numbers = {name: _number(value) for name, value in metrics.items()}
        new = {
            name: value
            for name, value in numbers.items()
            if value is not None and self._reported.get((group, name)) != step
        }
        self._reported.update(dict.fromkeys(((group, name) for name in new), step))
        if new and self.first:
            self.context.train.report_metrics(group, step, new)

    def progress(self, done: float, length: float) -> None:
        """Report how much is done of a length."""
        if self.first and length > 0:
            self.context.train.report_progress(min(1.0, done / length))

    def complete(self, metrics: Mapping[str, Any]) -> None:
        """Report the end of the searcher's operation with its metric, if `metrics` have that."""
        operation, value = self._operation, metrics.get(self.metric or "")
        if self.first and value is not None and not operation.completed:
            operation.report_completed(value)

    def stops(self) -> bool:
        """Whether the training is to save a checkpoint and end; every process has to ask."""
        return self.context.preempt.should_preempt()

    def save(
        self,
        folder: Path,
        step: int,
        metadata: Mapping[str, Any] | None = None,
        selector: Callable[[str], bool] | None = None,
    ) -> None:
        """Keep the files of a folder as a checkpoint; another one of the same step is superfluous."""
        if self.first and step != self._saved:
            self.context.checkpoint.upload(folder, {"steps_completed": step}, selector=selector)
            self._saved = step

    def latest(self) -> str | None:
        """Return the checkpoint that the training is to continue from."""
        info = get_cluster_info()
        return None if info is None else info.latest_checkpoint

    def _config(self) -> Mapping[str, Any]:
        info = get_cluster_info()
        return {} if info is None or info.trial_info is None else info.trial_info.config


def _number(value: Any) -> float | None:
    """Return a number, also of an array or tensor with one element; None for anything else."""
    if hasattr(value, "item") and getattr(value, "size", 1) is not None:
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):  # it has several elements
            return None
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None
