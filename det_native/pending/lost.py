"""Names that a training changes, and whose values have not come from the worker: said where code reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from det_native.client import rendering

_sentences: dict[str, str] = {}


def note(experiment_id: Any, lost: Mapping[str, str]) -> None:
    """Note what of an experiment's training has stayed on the worker, each name with the reason."""
    for name, why in lost.items():
        _sentences[name] = (
            f"`{name}`, which the training of experiment {experiment_id} has set or changed, {why}: it has stayed on "
            f"the worker, and here it is as it was. Let the training keep less of it, or write it to a file."
        )


def note_of_trials(experiment_id: Any, names: Iterable[str]) -> None:
    """Note which names the trials of an experiment change, each by itself."""
    for name in names:
        _sentences[name] = (
            f"`{name}` is changed by the code of experiment {experiment_id}, which runs in its trials: here it is as "
            "it was. Report what you need as a metric, log it (det.log), or write it to a file."
        )


def forget(names: Iterable[str]) -> None:
    """Say nothing of names any more, as they were bound anew."""
    for name in names:
        _sentences.pop(name, None)


def tell(names: Iterable[str]) -> None:
    """Say of each of these names that code reads, once, that it has not come."""
    for name in names:
        sentence = _sentences.pop(name, None)
        if sentence is not None:
            rendering.current().line_in_place().say(sentence)


def known() -> bool:
    """Whether there are such names."""
    return bool(_sentences)
