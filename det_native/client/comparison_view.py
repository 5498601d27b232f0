"""A comparison as text and as HTML. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from det_native.client.differences import Key, Table
from det_native.client.short_forms import format_value
from det_native.client.tables import plain, table

#: A heading, and the rows below it.
Section = tuple[str, Table]

# Lines of a diff that are shown; the whole one is in the comparison's `cells`.
MOST_LINES = 200
_LONGEST = 60
_FEW = 4
_NONE = "-"
_CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"


def as_text(sections: Sequence[Section], keys: Sequence[Key], diffs: Mapping[Key, str]) -> str:
    """Return a comparison as a table with a column for each experiment, and the diffs of their programs below it."""
    rows: list[list[object]] = []
    for heading, values in sections:
        rows += [[f"[{heading}]", *("" for _ in keys)]] if heading and values else []
        rows += [[name, *_entries(row, keys)] for name, row in values.items()]
    parts = [table(["", *(f"experiment {key}" for key in keys)], rows)]
    for key, diff in diffs.items():
        parts.append(_shortened(diff) if diff else f"The program of {key} is that of {keys[0]}.")
    return "\n\n".join(parts)


def as_html(sections: Sequence[Section], keys: Sequence[Key], diffs: Mapping[Key, str]) -> str:
    """Return a comparison as HTML, without script; all that comes from outside is escaped."""
    head = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in ["", *(f"experiment {key}" for key in keys)])
    lines = [f"<tr>{head}</tr>"]
    for heading, values in sections:
        if heading and values:
            lines.append(f'<tr><th style="{_CELL}" colspan="{len(keys) + 1}">{escape(heading)}</th></tr>')
        for name, row in values.items():
            cells = "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in _texts(name, row, keys))
            lines.append(f"<tr>{cells}</tr>")
    parts = [f'<table style="border-collapse:collapse;font-size:12px">{"".join(lines)}</table>']
    for key, diff in diffs.items():
        text = _shortened(diff) if diff else f"The program of {key} is that of {keys[0]}."
        parts.append(f'<pre style="font-size:12px;white-space:pre-wrap">{_coloured(text)}</pre>')
    return f'<div style="overflow-x:auto">{"".join(parts)}</div>'


def _texts(name: str, row: Mapping[Key, Any], keys: Sequence[Key]) -> list[str]:
    return [plain(name), *map(plain, _entries(row, keys))]


def _entries(row: Mapping[Key, Any], keys: Sequence[Key]) -> list[str]:
    """Return the cells of a row: in short, but with as many digits as it takes that what differs looks different."""
    whole = [_entry(row, key) for key in keys]
    for digits in (_FEW, 6, 9, 12):
        short = [_entry(row, key, digits) for key in keys]
        if len(set(short)) == len(set(whole)):
            return short
    return whole


def _entry(row: Mapping[Key, Any], key: Key, digits: int | None = None) -> str:
    if key not in row or row[key] is None:
        return _NONE
    value = row[key]
    if isinstance(value, float) and digits is not None:
        return format_value(value) if digits == _FEW else f"{value:.{digits}g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"{text[: _LONGEST - 3]}..." if digits == _FEW and len(text) > _LONGEST else text


def _shortened(diff: str) -> str:
    lines = diff.splitlines()
    if len(lines) <= MOST_LINES:
        return diff
    rest = lines[MOST_LINES:]
    titles = [line.partition(": ")[2] for line in rest if line.startswith("+++ experiment ")]
    of = f" ({', '.join(filter(None, titles))})" if any(titles) else ""
    return "\n".join([*lines[:MOST_LINES], f"... {len(rest)} more lines{of}; .cells has all"])


def _coloured(diff: str) -> str:
    """Return the lines of a diff, what is new and what is gone in colours that both themes show."""
    shown = []
    for line in diff.splitlines():
        colour = {"+": "#3f9142", "-": "#d9534f"}.get(line[:1])
        text = escape(line)
        shown.append(f'<span style="color:{colour}">{text}</span>' if colour else text)
    return "\n".join(shown)
