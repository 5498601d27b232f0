"""The arithmetic of rungs and brackets: how many trials train how long.

The rules are those of Determined 0.13 (reference/determined.md 3.3), so that a configuration runs the same trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from det_native.schema.searcher import Mode


def rung_units(max_length: int, divisor: float, rungs: int) -> list[int]:
    """Return how long a trial has trained in total when it reaches the end of each rung, at least 1.

    Examples
    --------
    >>> rung_units(900, 3, 3)
    [100, 300, 900]
    """
    units = [max(int(max_length / divisor ** (rungs - rung - 1)), 1) for rung in range(rungs)]
    return [max(units[: rung + 1]) for rung in range(rungs)]


def rungs_of_mode(mode: Mode, max_rungs: int) -> list[int]:
    """Return the number of rungs of each bracket, most first: the more rungs, the more trials are stopped early."""
    match mode:
        case "aggressive":
            return [max_rungs]
        case "standard":
            return list(range(max_rungs, (max_rungs - 1) // 2, -1))
        case "conservative":
            return list(range(max_rungs, 0, -1))


def useful_rungs(max_rungs: int, max_length: int, max_trials: int, divisor: float) -> int:
    """Return how many rungs there may be, so that the first has a unit of length and the last one a trial."""
    return min(max_rungs, _powers(max_length, divisor) + 1, _powers(max_trials, divisor) + 1)


def trials_by_weight(max_trials: int, divisor: float, brackets: Sequence[int]) -> list[int]:
    """Divide trials among brackets so that each costs about the same; what is left over goes to the first.

    Examples
    --------
    >>> trials_by_weight(100, 4, [4, 3, 2])
    [70, 22, 8]
    """
    weights = [divisor ** (rungs - 1) / rungs for rungs in brackets]
    whole = sum(weights)
    trials = [max(int(weight / whole * max_trials), 1) for weight in weights]
    trials[0] += max(max_trials - sum(trials), 0)
    return trials


def trials_evenly(max_trials: int, brackets: int) -> list[int]:
    """Divide trials among brackets evenly, at least one to each; the first ones have one more of what is left over."""
    least, more = divmod(max_trials, brackets)
    return [max(least + (bracket < more), 1) for bracket in range(brackets)]


def at_once_by_bracket(max_concurrent: int, divisor: float, trials: Sequence[int]) -> list[int]:
    """Return how many trials of each bracket may be open at the same time; `max_concurrent` 0 sets no limit itself."""
    if max_concurrent == 0:
        return [max(trials[-1], int(divisor))] * len(trials)
    least, more = divmod(max(max_concurrent, len(trials)), len(trials))
    return [least + (bracket < more) for bracket in range(len(trials))]


def trials_of_budget(budget: int, max_length: int, divisor: float, rungs: int) -> list[int]:
    """Return how many trials reach each rung of a synchronous search that trains about `budget` in all.

    Raises
    ------
    ValueError
        If the budget does not pay for one trial.
    """
    units = rung_units(max_length, divisor, rungs)
    shape = [max(int(divisor ** (rungs - rung - 1)), 1) for rung in range(rungs)]
    times = budget / cost(units, shape)
    trials = [max(int(times * count), 1) for count in shape]
    return _never_more(trials)


def trials_of_number(trials: int, divisor: float, rungs: int) -> list[int]:
    """Return how many of `trials` reach each rung of a synchronous search."""
    return _never_more([max(int(trials / divisor**rung), 1) for rung in range(rungs)])


def cost(units: Sequence[int], trials: Sequence[int]) -> int:
    """Return how much training it is that so many trials reach each rung."""
    added = [units[0], *(after - before for before, after in pairwise(units))]
    return sum(more * count for more, count in zip(added, trials, strict=True))


def _never_more(trials: list[int]) -> list[int]:
    """No rung has more trials than the one before."""
    return [min(trials[: rung + 1]) for rung in range(len(trials))]


def _powers(number: int, divisor: float) -> int:
    """Return how often `number` can be divided, exactly where the logarithm is a hair below a whole number."""
    powers = int(math.log(number) / math.log(divisor))
    return powers + 1 if divisor ** (powers + 1) <= number else powers
