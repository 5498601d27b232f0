"""Hyperparameters in words, and which of them tell the trials of an experiment apart."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from det_native.client.handles import Trial
from det_native.client.short_forms import format_value
from det_native.schema import rest


@dataclass(frozen=True)
class HparamTexts:
    """In words: of each trial, by its number, what differs from others (`own`), and what is the same in all."""

    own: Mapping[int, str]
    common: str


def format_hparams(hparams: Mapping[str, Any]) -> str:
    """Return hyperparameters as ``name=value`` pairs; those of a group by their whole names, ``optimizer.rate``."""
    return ", ".join(f"{name}={format_value(value)}" for name, value in _flattened(hparams))


def flat_hparams(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters by their whole names, ``optimizer.rate``, in order of the names."""
    return dict(_flattened(hparams))


def hparam_texts(trials: Sequence[Trial | rest.Trial]) -> HparamTexts:
    """Tell the hyperparameters that differ between trials from the others; of a single trial, all are its own."""
    flat = {trial.id: {_key(pair): pair for pair in _flattened(trial.hparams)} for trial in trials}
    counts = Counter(key for pairs in flat.values() for key in pairs)
    common = {key for key, count in counts.items() if count == len(trials) > 1}
    own = {
        number: format_hparams(dict(pair for key, pair in pairs.items() if key not in common))
        for number, pairs in flat.items()
    }
    first = next(iter(flat.values()), {})
    return HparamTexts(own, format_hparams(dict(pair for key, pair in first.items() if key in common)))


def _natural(name: str) -> tuple[str, str]:
    """Return what sorts ``h2`` before ``h10``, as in the live view."""
    return re.sub("[0-9]+", lambda digits: digits[0].rjust(9, "0"), name), name


def _key(pair: tuple[str, Any]) -> str:
    """Return what tells values apart whose texts are the same."""
    return json.dumps(pair, default=repr)


def _flattened(hparams: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in sorted(hparams.items(), key=lambda item: _natural(item[0])):
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
