"""Names that Determined gave to fields before version 0.13, turned into today's.

A step was ``batches_per_step`` batches (100 if not given), and lengths were numbers of steps.
"""

from __future__ import annotations

from typing import Any

from det_native.errors import Problem

#: Older fields of ``searcher``, with the names that they have now.
STEPS = {
    "max_steps": "max_length",
    "target_trial_steps": "max_length",
    "step_budget": "budget",
    "steps_per_round": "length_per_round",
}
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
        if self.written_as:
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
        return searcher

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
        self.problems.append(Problem(older, f"is the older name of {name}, which is given too.", f"Keep {name} only."))


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
