"""Names of what is logged. They are no paths; a reader may make folders and files of them all the same."""

from __future__ import annotations

import re
from typing import Any

from det_native.schema.outputs import NAME_LENGTH

# Controls, halves of surrogate pairs, and what turns the direction of text.
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def checked_name(given: Any) -> str:
    """Return the name under which something is kept: `given`, unless that has parts that no name should have.

    It is text without control characters; between slashes, which group names, nothing is empty, ``.`` or ``..``. It is
    empty where nothing is left.
    """
    try:
        text = given if type(given) is str else str(given)
    except Exception:  # noqa: BLE001 (the user's class may raise anything)
        return ""
    if text.isalnum() and len(text) <= NAME_LENGTH and text.isascii():
        return text
    text = _ODD.sub("_", text).replace("\\", "/")
    parts = (part.strip() for part in text.split("/"))
    return "/".join(part for part in parts if part not in ("", ".", ".."))[:NAME_LENGTH].strip("/ ")


def series_name(title: str) -> str:
    """Return the name of a series of pictures by the title of one: numbers differ from one to the next."""
    return re.sub(r"\d+(?:[.,]\d+)*", "#", title)
