"""By which metric trials are compared, where only the training shows what a model reports."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from det_harness.trial.metrics import numbers_of
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.keras.metrics import certain_metrics, greater_is_better
from det_native.keras.native import FitCall
from det_native.schema.metric_names import suggestion

logger = logging.getLogger("det_native")

_VALIDATION = "val_"


class Comparison:
    """Looks at the first metrics of a training, and names the one to compare by where nobody has."""

    def __init__(self, call: FitCall, services: Services) -> None:
        self._call = call
        self._services = services
        self._looked = False

    def trained(self, logs: Mapping[str, Any]) -> None:
        """Look at what the first batch reported.

        Raises
        ------
        TrialDefinitionError
            If the configuration names a training metric that is not among it.
        """
        metric = self._services.environment.metric
        if self._looked or not metric or not logs:
            return
        if self._call.callbacks_may_add and self._call.context.metric_said:
            return  # the end of the epoch shows what there is
        self._looked = True
        names = list(logs)
        if self._call.validation is None:
            if metric in names:
                return
            if self._call.context.metric_said:
                raise TrialDefinitionError(
                    f"searcher.metric is '{metric}', but the training of model.fit() reports {', '.join(names)}. "
                    f"{suggestion(metric, names)}Set searcher.metric to one of these, or return that metric from "
                    "train_step()."
                )
            self._choose(names[0])
        elif metric.removeprefix(_VALIDATION) not in names and certain_metrics(self._call.model) is None:
            # A test_step() of the model's own most likely reports what its train_step() does; `validated` sees it.
            self._choose(_VALIDATION + names[0])

    def epoch_ended(self, logs: Mapping[str, Any]) -> None:
        """Look at what an epoch reports, with what callbacks have added.

        Raises
        ------
        TrialDefinitionError
            If the configuration names a metric that is not among it, and nothing validates that could have it.
        """
        metric = self._services.environment.metric
        if self._looked or not metric or not logs:
            return
        self._looked = True
        if self._call.validation is None and metric not in logs:
            raise TrialDefinitionError(
                f"searcher.metric is '{metric}', but the training of model.fit(), with its callbacks, reports "
                f"{', '.join(logs)}. {suggestion(metric, list(logs))}Set searcher.metric to one of these."
            )

    def check_within_epoch(self, found: Mapping[str, Any]) -> None:
        """See that a validation in the middle of an epoch has what trials are compared by.

        Raises
        ------
        TrialDefinitionError
            If a callback gives that, at the end of an epoch.
        """
        metric = self._services.environment.metric
        if metric and metric not in found and self._call.callbacks_may_add and self._call.context.metric_said:
            raise TrialDefinitionError(
                f"searcher.metric is '{metric}', and a validation before the end of an epoch reports "
                f"{', '.join(found) or 'no metrics'}: callbacks add theirs at its end. Give searcher.max_length and "
                "min_validation_period in epochs, and leave perform_initial_validation out."
            )

    def validated(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Look at what a validation gave, and choose by what trials are compared where nobody has said it."""
        metric = self._services.environment.metric
        if metric and found and metric not in found:
            self._choose(next(iter(numbers_of(found)), next(iter(found))))
        return dict(found)

    def _choose(self, name: str) -> None:
        if self._call.context.metric_said:
            return
        environment = self._services.environment
        before = environment.metric
        # What the configuration says stays; that smaller is better is what it says of itself.
        smaller = environment.smaller_is_better and not greater_is_better(name)
        self._services.compare_by(name, smaller_is_better=smaller)
        logger.warning(
            "fit() reports no '%s': trials are compared by its first metric, '%s'; a %s value is better. Set "
            "searcher.metric (and smaller_is_better) for another.",
            before,
            name,
            "smaller" if smaller else "greater",
        )
