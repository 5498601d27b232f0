"""Names of metrics: which one was meant by a name that is none of those there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PREFIXES = ("val_", "validation_")

# A training metric that is a mean over its epoch so far has a companion, which is drawn in its place.
PER_BATCH = "batch_"
PER_EPOCH = "epoch_"

# The common measures of how much is right.
_GREATER = frozenset({"acc", "accuracy", "auc", "auroc", "f1", "precision", "recall", "iou", "dice", "r2", "bleu"})


def without_prefix(name: str) -> str:
    """Return the name of a metric without what says that it is of a validation."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


def companions(names: Iterable[str]) -> dict[str, str]:
    """Return the metrics that are drawn in place of others, by the name of these: ``batch_loss`` by ``loss``."""
    known = set(names)
    return {name: prefix + name for prefix in (PER_EPOCH, PER_BATCH) for name in known if prefix + name in known}


def greater_is_better(name: str) -> bool:
    """Return whether the words of a metric's name say that its greater values are better: shares of what is right.

    Examples
    --------
    >>> [greater_is_better(name) for name in ("val_accuracy", "acc_top5", "loss", "scores")]
    [True, True, False, False]
    """
    return not _GREATER.isdisjoint(without_prefix(name.lower()).split("_"))


def closest_metric(name: str, known: Sequence[str]) -> str | None:
    """Return the one of the known metrics that was meant, None if that cannot be told.

    ``validation_accuracy``, ``val_acc`` and ``accuracy`` are meant for ``val_accuracy``.

    Parameters
    ----------
    name : str
        As the user wrote it.
    """
    wanted = without_prefix(name.lower())
    bases = {one: without_prefix(one.lower()) for one in known}
    for one, base in bases.items():
        if base == wanted:
            return one
    short = [one for one, base in bases.items() if wanted and any(word.startswith(wanted) for word in _parts(base))]
    if len(short) == 1:
        return short[0]
    close = difflib.get_close_matches(wanted, list(bases.values()), n=1, cutoff=0.6)
    return next(one for one, base in bases.items() if base == close[0]) if close else None


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return ``Did you mean 'val_accuracy'? ``, with a space after it; empty if nothing is close."""
    meant = closest_metric(name, known)
    return f"Did you mean '{meant}'? " if meant else ""


def _parts(base: str) -> list[str]:
    """Return the name and its words: ``acc`` is short for ``accuracy``, and for ``categorical_accuracy``."""
    return [base, *base.split("_")]


def metric_names(config: Mapping[str, Any]) -> list[str]:
    """Return the metrics that trials are compared by where there are several; empty else.

    Parameters
    ----------
    config : mapping
        The experiment configuration, or what of it is there.
    """
    searcher = config.get("searcher") or {}
    return [metric["name"] for metric in searcher.get("metrics") or ()]
