"""Where a cell failed: told by the traceback of its error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Escapes of a terminal that colour a text.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

#: File names that IPython gives to code that a magic (``%time``, ``%%time``) compiles by itself.
MAGIC_FILES = frozenset({"<timed exec>", "<timed eval>"})


def top_line(error: BaseException, files: Mapping[str, int], source: str) -> tuple[int | None, bool]:
    """Line of the cell's own top level in the traceback of an error, and whether it is one of a cell magic's body."""
    line = None
    magic = source.lstrip().startswith("%%")
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_name in {"<module>", "<cell line: 1>"}:
            if magic and code.co_filename in MAGIC_FILES:
                return traceback.tb_lineno, True
            if line is None and code.co_filename in files:
                line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line, False


def told_line(error: dict[str, Any], number: int) -> int | None:
    """Line of the cell's top level in a traceback that IPython keeps as text."""
    text = COLOURS.sub("", "\n".join(map(str, error.get("traceback") or ())))
    match = re.search(rf"Cell In\[{number}\], line (\d+)", text)
    return int(match[1]) if match else None
