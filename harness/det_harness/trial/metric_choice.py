"""By which metric trials are compared, where the configuration does not say it: the first reports show the names."""

from __future__ import annotations

import logging
from collections.abc import Collection

from det_harness.trial.services import Services
from det_native.schema.metric_names import PREFIXES, greater_is_better

logger = logging.getLogger("det_harness")


class MetricChoice:
    """Looks at the first metrics of a training, and names the one to compare by where nobody has.

    That is the first one, and one that begins with ``val_`` before others. Where the name that stands for it until
    then (``loss``, ``val_loss``) is among these, it is that.

    Parameters
    ----------
    services : Services
        Its environment has the metric from then on.
    owner : str
        What reports them, for the message: ``context.train()``.
    said : bool
        Whether the configuration names a metric: nothing is chosen then.
    """

    def __init__(self, services: Services, owner: str, *, said: bool) -> None:
        self._services = services
        self._owner = owner
        self._said = said
        self._looked = False

    @property
    def metric(self) -> str | None:
        """The metric that trials are compared by, as far as that is known."""
        return self._services.environment.metric

    def look(self, names: Collection[str]) -> str | None:
        """Choose among the metrics of the first report; return the metric that trials are compared by.

        A collective call: on all ranks with the same names.
        """
        if self._said or self._looked or not names:
            return self.metric
        self._looked = True
        candidates = [name for name in names if name.startswith(PREFIXES)] or list(names)
        if self.metric not in candidates:
            self._choose(candidates[0])
        return self.metric

    def _choose(self, name: str) -> None:
        # What the configuration says stays; that smaller is better is what it says of itself.
        smaller = self._services.environment.smaller_is_better and not greater_is_better(name)
        self._services.compare_by(name, smaller_is_better=smaller)
        if self._services.communicator.rank == 0:
            logger.warning(
                "%s: trials are compared by '%s'; a %s value is better. Set searcher.metric (and smaller_is_better) "
                "for another.",
                self._owner,
                name,
                "smaller" if smaller else "greater",
            )
