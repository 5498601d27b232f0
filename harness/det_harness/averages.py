"""Training metrics as means over the ranks of a trial (``optimizations.average_training_metrics``)."""

from __future__ import annotations

from det_harness.exchange import Exchange

Columns = dict[str, list[float | None]]


def averaged(own: Columns, exchange: Exchange) -> Columns:
    """Return the columns whose numbers are the means over the ranks that have one; a collective call.

    Parameters
    ----------
    own : dict
        Of each metric a number, or None, for the same batches on every rank.
    exchange : Exchange
    """
    ranks: list[Columns] = exchange.gather(own)
    names = dict.fromkeys(name for columns in ranks for name in columns)
    return {
        name: [_mean(values) for values in zip(*(columns[name] for columns in ranks if name in columns), strict=True)]
        for name in names
    }


def _mean(values: tuple[float | None, ...]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
