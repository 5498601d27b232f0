"""Where the random numbers of the notebook stand after a training, the same here and on the cluster.

The process goes on with the numbers at the end of the training, as the plain loop does, unless it has drawn others
since the submit. The same model trained again right after that begins where its training before has ended: it would get
the order and the dropout of that one once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from det_native.inspection.streams import current_streams, put_back

_LIBRARIES = ("random", "numpy", "torch")


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
    went_on : bool
        Whether the process went on with the numbers at its end.
    """

    models: list[Any]
    began: dict[str, Any]
    after: dict[str, Any] | None = None
    went_on: bool = False

    def end(self, after: dict[str, Any] | None) -> None:
        """Note where the streams stood at its end; the process goes on from there."""
        self.after = after
        if after is not None and current_streams() == self.began:
            put_back(after, _LIBRARIES)
            self.went_on = True


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
