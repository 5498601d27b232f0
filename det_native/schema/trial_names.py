"""How people name a trial: by its number inside its experiment. Its id on the master is for programs."""

from __future__ import annotations


def trial_name(experiment: int | str, number: int) -> str:
    """Return ``7.2`` for the second trial of experiment 7; of a run of a machine's own, ``local-3/2``.

    Parameters
    ----------
    experiment : int or str
        As the user knows it: ``7`` or ``local-3``.
    number : int
        That of the trial in it, from 1.
    """
    return f"{experiment}.{number}" if isinstance(experiment, int) else f"{experiment}/{number}"
