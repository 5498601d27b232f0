"""Checks on metrics that the frameworks share."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any

from det_native.errors import TrialDefinitionError
from det_native.schema.metric_names import suggestion
from det_native.schema.reports import LONGEST_NAMES, MOST_METRICS

# Characters of a value in a message.
_DESCRIBED = 60


def scalar(value: Any) -> float | None:
    """Return a number out of a Python number, a tensor or array of one element, None for anything else."""
    if type(value) is float:
        return value  # `Real` is asked at ten times the cost, and this is done for every batch
    if isinstance(value, Real):
        return float(value)
    item = getattr(value, "item", None)
    if item is None:
        return None
    size = getattr(value, "numel", None)
    count = size() if callable(size) else getattr(value, "size", 1)
    if count != 1:
        return None
    number = item()
    return float(number) if isinstance(number, Real) else None


def numbers_of(metrics: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics that are numbers: trials can be compared by these."""
    return [name for name, value in metrics.items() if scalar(value) is not None]


def check_names(names: Collection[str], batch: int | None, owner: str = "The code", verb: str = "return") -> None:
    """Refuse metrics of one batch that a report of it cannot have: too many, or names that are no text."""
    place = "" if batch is None else f" for batch {batch}"
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise TrialDefinitionError(
            f"{owner} {verb}ed a metric by the name {wrong!r} ({type(wrong).__name__}){place}; names of "
            f"metrics are text: write {str(wrong)!r}, or a word that says what it is."
        )
    if len(names) > MOST_METRICS:
        raise TrialDefinitionError(
            f"{owner} {verb}ed {len(names):,} metrics{place}; at most {MOST_METRICS:,} names can be "
            "reported of a batch. Leave some out, or report one number for many of them: a mean, or a largest value."
        )


def refuse_long_names(names: Collection[str], batch: int) -> None:
    """Refuse metrics whose names together are longer than a report of them can be."""
    length = sum(map(len, names))
    if length > LONGEST_NAMES:
        longest = max(names, key=len)
        raise TrialDefinitionError(
            f"The names of the metrics of batch {batch} have {length:,} characters together; at most "
            f"{LONGEST_NAMES:,} can be reported. The longest begins with {longest[:40]!r} and has {len(longest):,}."
        )


def checked_validation(
    metrics: Mapping[str, Any],
    searcher_metric: str | None,
    owner: str,
    verb: str = "return",
    batch: int | None = None,
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the validation metrics; those that trials are compared by are numbers, the others may be anything.

    Parameters
    ----------
    metrics : mapping
        Name to value, as reduced over the validation data.
    searcher_metric : str or None
        ``searcher.metric``; None if trials are not compared.
    owner : str
        What computed them, for the message (``Digits.evaluate_batch()``).
    batch : int, optional
        After which batch, for the message.
    others : sequence of str
        Metrics that trials are compared by too.

    Raises
    ------
    TrialDefinitionError
        If a metric that trials are compared by is missing or not one number, or there are too many metrics.
    """
    check_names(metrics, batch, owner, verb)
    if searcher_metric and searcher_metric not in metrics:
        found = ", ".join(map(str, metrics)) or "no metrics"
        raise TrialDefinitionError(
            f"searcher.metric is '{searcher_metric}', but {owner} {verb}ed {found}. "
            f"{suggestion(searcher_metric, list(metrics))}{verb.capitalize()} that metric, or set searcher.metric to "
            "one of these; with test=True, a run of a few seconds shows whether they agree."
        )
    missing = next((name for name in others if name not in metrics), None)
    if missing is not None:
        raise TrialDefinitionError(
            f"searcher.metrics names '{missing}', but {owner} {verb}ed {', '.join(map(str, metrics))}. "
            f"{suggestion(missing, list(metrics))}{verb.capitalize()} that metric, or leave it out of searcher.metrics."
        )
    checked: dict[str, Any] = {}
    for name, value in metrics.items():
        if name != searcher_metric and name not in others:
            checked[name] = value
            continue
        checked[name] = compared_number(name, value, owner)
    return checked


def compared_number(name: str, value: Any, owner: str) -> float:
    """Return the value of a metric that trials are compared by, which may be of one batch, as a number.

    Raises
    ------
    TrialDefinitionError
        If it is anything but one number.
    """
    number = scalar(value)
    if number is None:
        raise TrialDefinitionError(
            f"{owner} returned {described(value)} for the searcher's metric '{name}'; return one number."
        )
    return number


def is_best(value: float, best: float | None, *, smaller_is_better: bool) -> bool:
    """Return whether `value` is at least as good as the best so far.

    An equal value counts as the best: `best` may already contain it, if its report has reached the master. An infinite
    one is better than none only.
    """
    if best is None or not math.isfinite(best):
        return True
    if not math.isfinite(value):
        return False
    return value <= best if smaller_is_better else value >= best


def described(value: Any) -> str:
    """Return a value in a few words, for messages: the shape of an array, the beginning of anything else."""
    shape = getattr(value, "shape", None)
    if shape is not None and tuple(shape):
        return f"a {type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= _DESCRIBED else f"{text[:_DESCRIBED]}..."
