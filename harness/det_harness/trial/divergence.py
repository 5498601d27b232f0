"""Looks at the training loss, and at what trials are compared by: NaN is a warning, or the trial ends there."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from det_harness.trial.services import PassingReporter, Reporter
from det_native.errors import DivergedError
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_harness")

CAUSES = (
    "Likely causes: a learning rate that is too high, gradients that explode (clip them), NaN in the data, or a "
    "logarithm or division of 0 in the loss."
)
_LOSS = "loss"


class LossWatch(PassingReporter):
    """Looks at the training loss that is reported, and at the validation metrics that trials are compared by.

    The loss is the metric ``loss``; where there is none of that name, the metrics whose last word is ``loss``, when all
    of them are bad in the same batch: NaN may stand for a loss that is not computed in every batch.

    Parameters
    ----------
    environment : TrialEnvironment
        Its configuration says whether a trial ends with such a loss.
    """

    def __init__(self, reporter: Reporter, environment: TrialEnvironment) -> None:
        super().__init__(reporter)
        self._stops = environment.stops_at_nan
        self._compared = {environment.metric, *environment.metrics}
        self._told = False

    def compare_by(self, metric: str, *, smaller_is_better: bool) -> None:
        """Pass on by which metric trials are compared."""
        self._compared.add(metric)
        self._reporter.compare_by(metric, smaller_is_better=smaller_is_better)

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Pass on the metrics of a validation, and look at those that trials are compared by.

        Raises
        ------
        DivergedError
            If one is NaN, and the configuration ends such trials.
        """
        self._reporter.validation(batch, metrics)
        names = (name for name, value in metrics.items() if name in self._compared and isinstance(value, float))
        name = next((name for name in names if math.isnan(metrics[name])), None)
        if name is not None:
            self._tell(f"The metric '{name}' became NaN", batch)

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Pass on rows of training metrics, and look at them.

        Raises
        ------
        DivergedError
            If the loss is NaN or infinite, and the configuration ends such trials.
        """
        self._reporter.training(batches, metrics)
        found = None if self._told else _first_bad(metrics)
        if found is not None:
            row, name, value = found
            self._tell(f"The {name} became {_shown(value)}", batches[row])

    def _tell(self, what: str, batch: int) -> None:
        if self._told:
            return
        self._told = True
        if self._stops:
            raise DivergedError(what, f". {CAUSES}", batch)
        text = f"{what} at batch {batch}; the training goes on (nan: warn). {CAUSES}"
        logger.warning("%s", text)
        self._reporter.warning(text)


def _first_bad(metrics: Mapping[str, list[float | None]]) -> tuple[int, str, float] | None:
    """Return the first row with a loss that is not finite, the loss and its value."""
    names = [_LOSS] if _LOSS in metrics else [name for name in metrics if name.split("_")[-1].lower() == _LOSS]
    columns = [metrics[name] for name in names]
    # Nearly always all values of a column are finite: then so is their sum, which is soon known.
    if not columns or any(math.isfinite(sum(filter(None, column))) for column in columns):
        return None
    for row, values in enumerate(zip(*columns, strict=True)):
        if all(value is not None and not math.isfinite(value) for value in values):
            value = values[0]
            assert value is not None
            return row, names[0], value
    return None


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else "infinite"
