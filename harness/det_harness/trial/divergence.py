"""Looks at the training loss that is reported: if it is NaN or infinite that is told, or the trial ends there."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

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
    """Looks at the training loss that is reported.

    The loss is the metric ``loss``; where there is none of that name, the metrics whose last word is ``loss``, when all
    of them are bad in the same batch: NaN may stand for a loss that is not computed in every batch.

    Parameters
    ----------
    reporter : Reporter
    environment : TrialEnvironment
        Its configuration says whether a trial ends with such a loss.
    """

    def __init__(self, reporter: Reporter, environment: TrialEnvironment) -> None:
        super().__init__(reporter)
        self._stops = environment.stops_at_nan
        self._told = False

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Pass on rows of training metrics, and look at them.

        Raises
        ------
        DivergedError
            If the loss is NaN or infinite, and the configuration ends such trials.
        """
        self._reporter.training(batches, metrics)
        if self._told:
            return
        found = _first_bad(metrics)
        if found is None:
            return
        self._told = True
        row, name, value = found
        what = f"The {name} became {_shown(value)}"
        if self._stops:
            raise DivergedError(what, f". {CAUSES}", batches[row])
        text = f"{what} at batch {batches[row]}; the training goes on (nan: warn). {CAUSES}"
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
