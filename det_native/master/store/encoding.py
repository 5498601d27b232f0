"""JSON and times as they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from det_native.schema.numbers import words
from det_native.schema.query.moments import stored


def now() -> str:
    """Return the present time as ISO 8601 text in UTC, to the millisecond (for display; nothing is ordered by it)."""
    return stored(datetime.now(UTC))


def dumps(value: Any) -> str:
    """Write JSON that every reader accepts: never a bare ``NaN``."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(words(value), separators=(",", ":"), allow_nan=False)


def not_before(time: str | None, *earlier: str | None) -> str | None:
    """Return a time as it is shown beside earlier ones, for a clock may have been set back between them."""
    return None if time is None else max([time, *filter(None, earlier)])


def check_text(value: Any) -> None:
    """Refuse text that no reader could be sent.

    Raises
    ------
    UnicodeEncodeError
        If a string in `value` holds half of a surrogate pair.
    """
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def column_texts(values: Sequence[float | None]) -> list[str | None]:
    """Return the JSON text of every value of a column; None stays None."""
    if None in values:
        return [None if value is None else dumps(value) for value in values]
    try:
        return [*json.dumps(values, allow_nan=False)[1:-1].split(", ")]
    except ValueError:
        return [dumps(value) for value in values]


def row_texts(
    columns: dict[str, Sequence[float | None]], rows: int, others: dict[str, Sequence[Any]] | None = None
) -> list[str]:
    """Return one JSON object of text for every row of `columns`; a None is left out of its row.

    Parameters
    ----------
    columns : dict
        Values by name, all of length `rows`.
    others : dict, optional
        Values that are not numbers, by name. Where a row has both for a name, the number counts.
    """
    by_name = {name: column_texts(values) for name, values in columns.items()}
    for name, values in (others or {}).items():
        own = [None if value is None else dumps(value) for value in values]
        numbers = by_name.get(name)
        by_name[name] = (
            own if numbers is None else [a if a is not None else b for a, b in zip(numbers, own, strict=True)]
        )
    if not by_name:
        return ["{}"] * rows
    names = [json.dumps(name) for name in by_name]
    texts = list(by_name.values())
    if not any(None in column for column in texts):
        template = "{" + ",".join(name.replace("%", "%%") + ":%s" for name in names) + "}"
        return [template % row for row in zip(*texts, strict=True)]
    return [
        "{" + ",".join(f"{name}:{text}" for name, text in zip(names, row, strict=True) if text is not None) + "}"
        for row in zip(*texts, strict=True)
    ]
