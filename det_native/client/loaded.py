"""Which models of this process have the weights of which experiment: views and texts of the experiment say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from det_native.client.handles import Experiment

_names: dict[tuple[str, int | str], list[str]] = {}


def note_loaded_into(experiment: Experiment, names: Sequence[str]) -> None:
    """Note that the weights of an experiment are in models of this process.

    Parameters
    ----------
    experiment : Experiment
    names : sequence of str
        What the user calls each model; empty where that is not known.
    """
    _names[experiment.source.url, experiment.id] = list(names)


def loaded_text(experiment: Experiment) -> str:
    """Return "weights loaded into `model`"; empty for an experiment whose weights were not loaded."""
    names = _names.get((experiment.source.url, experiment.id))
    return "" if names is None else loaded_sentence(names)


def loaded_sentence(names: Sequence[str]) -> str:
    """Return what is said of models whose names are these."""
    models = [f"`{name}`" for name in names if name]
    if not models:
        return "weights loaded"
    if unnamed := len(names) - len(models):
        models.append("another model" if unnamed == 1 else f"{unnamed} other models")
    return f"weights loaded into {joined(models)}"


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence has them: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
