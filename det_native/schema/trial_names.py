"""How people name a trial: by its number inside its experiment. Its id on the master is for programs."""

from __future__ import annotations


def trial_name(experiment: int, number: int) -> str:
    """Return ``7.2`` for the second trial of experiment 7; ``2`` where no master has that, and it has no number."""
    return f"{experiment}.{number}" if experiment else str(number)
