"""Names that other versions of Determined gave to fields, turned into today's.

Before 0.13 a step was ``batches_per_step`` batches (100 if not given), and lengths were numbers of steps. 0.38 has
``time_metric`` and ``max_time`` for the length of a trial of ASHA.
"""

from __future__ import annotations

from typing import Any

from det_native.errors import Problem
from det_native.schema.lengths import Unit

#: Older fields of ``searcher``, with the names that they have now.
STEPS = {
    "max_steps": "max_length",
    "target_trial_steps": "max_length",
    "step_budget": "budget",
    "steps_per_round": "length_per_round",
}
#: Searchers that 0.38 has say so how long a trial trains.
_BY_TIME = ("adaptive_asha", "async_halving")
_PERIODS = ("min_validation_period", "min_checkpoint_period")
_DEFAULT_STEP = 100


class Modernised:
    """A configuration with today's names.

    Parameters
    ----------
    raw : dict
        A configuration as written; it is left as it is.

    Attributes
    ----------
    raw : dict
        The configuration with today's names.
    problems : list of Problem
        Older fields that are not valid, at the path where they were written.
    written_as : dict
        For a path of today's the older one that stands in the configuration.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = dict(raw)
        self.problems: list[Problem] = []
        self.written_as: dict[str, str] = {}
        step = self._step()
        searcher = self.raw.get("searcher")
        if isinstance(searcher, dict):
            self.raw["searcher"] = self._searcher(dict(searcher), step)
        if any(name != "searcher.max_time" for name in self.written_as.values()):
            self._periods(step)

    def _step(self) -> int:
        if self.raw.get("batches_per_step") is not None:
            given = self.raw.pop("batches_per_step")
            if self.raw.get("scheduling_unit") is not None:
                self._doubled("batches_per_step", "scheduling_unit")
            else:
                self.raw["scheduling_unit"] = given
                self.written_as["scheduling_unit"] = "batches_per_step"
        step = self.raw.get("scheduling_unit")
        return int(step) if step is not None and _counts(step) else _DEFAULT_STEP

    def _searcher(self, searcher: dict[str, Any], step: int) -> dict[str, Any]:
        for older, name in STEPS.items():
            steps = searcher.pop(older, None)
            if steps is None:
                continue
            if searcher.get(name) is not None:
                self._doubled(f"searcher.{older}", f"searcher.{name}")
                continue
            self.written_as[f"searcher.{name}"] = f"searcher.{older}"
            searcher[name] = {"batches": self._batches(f"searcher.{older}", steps, step)}
        if searcher.get("name") in _BY_TIME and not {"time_metric", "max_time"}.isdisjoint(searcher):
            self._time(searcher)
        return searcher

    def _time(self, searcher: dict[str, Any]) -> None:
        """Have a trial train so long; one that does not go on when it reaches a rung ends for good in 0.38."""
        metric, units = searcher.pop("time_metric", None), searcher.pop("max_time", None)
        if metric is None and units is None:
            return
        if metric not in list(Unit):
            names = ", ".join(Unit)
            what = f"must be one of {names}, not {metric!r}: other measures of time are not counted here."
            self.problems.append(Problem("searcher.time_metric", what))
        elif not _counts(units):
            what = f"must be a whole number of at least 1, not {units!r}: how many {metric} a trial trains at most."
            self.problems.append(Problem("searcher.max_time", what))
        elif searcher.get("max_length") is not None:
            self._doubled("searcher.max_time", "searcher.max_length")
        else:
            self.written_as["searcher.max_length"] = "searcher.max_time"
            searcher["max_length"] = {metric: units}
            if searcher.get("stop_once") is None:
                searcher["stop_once"] = True
            return
        searcher.setdefault("max_length", 1)  # nothing else is to be said of it

    def _periods(self, step: int) -> None:
        # Where steps are counted, a bare number is a number of steps too; by itself it would be one of batches.
        for name in _PERIODS:
            if _counts(self.raw.get(name)):
                self.raw[name] = {"batches": self.raw[name] * step}

    def _batches(self, where: str, steps: Any, step: int) -> int:
        if _counts(steps):
            return int(steps) * step
        self.problems.append(Problem(where, f"must be a whole number of steps of at least 1, not {steps!r}."))
        return step

    def _doubled(self, older: str, name: str) -> None:
        self.problems.append(Problem(older, f"is another name of {name}, which is given too.", f"Keep {name} only."))


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
