"""Training metrics as means over the ranks of a trial (``optimizations.average_training_metrics``)."""

from __future__ import annotations

from det_harness.ranks.communicator import Communicator

Columns = dict[str, list[float | None]]
Rows = tuple[list[int], Columns]


def averaged(batches: list[int], own: Columns, communicator: Communicator) -> Rows:
    """Return batches, and columns whose numbers are the means over the ranks that have one; a collective call.

    Parameters
    ----------
    batches : list of int
        Those that this rank has rows of: a loop of the user's own may report on some ranks only.
    own : dict
        Of each metric a number, or None, for each of the batches.
    """
    ranks: list[Rows] = communicator.all_gather_object((batches, own))
    every = batches
    if any(others != batches for others, _ in ranks):
        every = sorted({batch for others, _ in ranks for batch in others})
        ranks = [(every, _spread(others, columns, every)) for others, columns in ranks]
    names = dict.fromkeys(name for _, columns in ranks for name in columns)
    return every, {
        name: [
            _mean(values) for values in zip(*(columns[name] for _, columns in ranks if name in columns), strict=True)
        ]
        for name in names
    }


def _spread(batches: list[int], columns: Columns, every: list[int]) -> Columns:
    """Return columns with a row for every one of more batches."""
    spread: Columns = {}
    for name, values in columns.items():
        known = dict(zip(batches, values, strict=True))
        spread[name] = [known.get(batch) for batch in every]
    return spread


def _mean(values: tuple[float | None, ...]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
