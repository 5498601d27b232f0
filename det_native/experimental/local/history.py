"""Keras's ``History`` of a run of this process, which shows its experiment in a notebook."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from det_native.client.handles import Experiment
from det_native.errors import DetError


def show_last_state(history: Any, experiment: Experiment) -> None:
    """Have a ``History`` show itself in IPython as the last state of its experiment; type and contents stay.

    Parameters
    ----------
    history : keras.callbacks.History
        What a model class of the user's own has in its place is left as it is, if it takes no attribute.
    experiment : Experiment
        It has ended.
    """
    with suppress(AttributeError, TypeError):
        history._repr_mimebundle_ = LastState(experiment)


class LastState:
    """What IPython asks an object for: its display data by MIME type.

    It lies in the instance. Pickle leaves None in its place, so that a pickled ``History`` is plain Keras.

    Parameters
    ----------
    experiment : Experiment
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    def __call__(self, include: object = None, exclude: object = None) -> dict[str, Any] | None:
        """Return the curves and one line; None, which leaves it to Keras, if the run's files are gone."""
        from det_native.display.fallback import last_state

        try:
            return last_state(self._experiment)
        except (DetError, OSError):
            return None

    def __copy__(self) -> LastState:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LastState:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()
