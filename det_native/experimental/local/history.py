"""Keras's ``History`` of a run of this process, which shows its experiment in a notebook."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from det_native.client.handles import Experiment
from det_native.display.environment import in_notebook
from det_native.errors import DetError


def show_its_experiment(history: Any, experiment: Experiment) -> None:
    """Have a ``History`` show itself in IPython as its experiment does; type and contents stay.

    Parameters
    ----------
    history : keras.callbacks.History
        What a model class of the user's own has in its place is left as it is, if it takes no attribute.
    experiment : Experiment
    """
    with suppress(AttributeError, TypeError):
        history._ipython_display_ = LiveView(experiment)
        history._repr_mimebundle_ = LastState(experiment)


class _Display:
    """What IPython asks an object for.

    It lies in the instance. Pickle leaves None in its place, so that a pickled ``History`` is plain Keras.

    Parameters
    ----------
    experiment : Experiment
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    def __copy__(self) -> _Display:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Display:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class LiveView(_Display):
    """The view of the experiment, where a notebook can show one; nothing where it stands under the same cell."""

    def __call__(self) -> None:
        """Show it.

        Raises
        ------
        NotImplementedError
            If it cannot be shown, which is how IPython is told to ask for display data.
        """
        from det_native.display.live import show_once

        try:
            shown = in_notebook() and show_once(self._experiment)
        except (DetError, OSError):
            shown = False
        if not shown:
            raise NotImplementedError


class LastState(_Display):
    """Its display data by MIME type."""

    def __call__(self, include: object = None, exclude: object = None) -> dict[str, Any] | None:
        """Return the curves and one line; None, which leaves it to Keras, if the run's files are gone."""
        from det_native.display.fallback import last_state

        try:
            return last_state(self._experiment)
        except (DetError, OSError):
            return None
