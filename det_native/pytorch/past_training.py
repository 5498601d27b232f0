"""Random numbers of a model that is trained again: it goes on with those at the end of its training before.

A training leaves the streams of the kernel as they were, here as on the cluster. Trained again right after it, in a
loop over epochs, a model would get the order and the dropout of the first training once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from det_native.inspection.streams import current_streams


@dataclass
class PastTraining:
    """The last training of a context.

    Attributes
    ----------
    models : list
        Those that it trained.
    began : dict
        Where the streams stood when it was called, in the short form.
    after : dict or None
        Where they stood at its end, in the form of checkpoints; None as long as that is not known.
    """

    models: list[Any]
    began: dict[str, Any]
    after: dict[str, Any] | None = None


def next_training(past: PastTraining | None, models: Sequence[Any]) -> tuple[PastTraining, dict[str, Any] | None]:
    """Return a training that begins now, and the states with which it begins; None where it draws on from here.

    Parameters
    ----------
    past : PastTraining or None
        The one before it.
    models : sequence
        Those that are trained.
    """
    training = PastTraining(list(models), current_streams())
    if past is None or training.began != past.began:
        return training, None
    same = len(models) == len(past.models) and all(a is b for a, b in zip(models, past.models, strict=True))
    return training, past.after if same else None
