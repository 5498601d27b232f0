"""Reading the growing output file of a worker."""

from __future__ import annotations

from pathlib import Path

from det_native.master.launch.base import Output

MAXIMUM_READ = 1 << 20


def read_output(path: Path, offset: int, *, ended: bool, maximum: int = MAXIMUM_READ) -> Output:
    """Return what was written since `offset` bytes, at most `maximum` bytes of it.

    Whole lines only while the worker may still write, except for a line longer than `maximum`, which comes in parts.
    Bytes that are no UTF-8 are replaced.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(maximum)
    except FileNotFoundError:
        return Output("", offset)
    full = len(data) == maximum
    whole = data.rfind(b"\n") + 1
    if (full or not ended) and whole:
        data = data[:whole]
    elif full:
        data = data[: _character_boundary(data)]
    elif not ended:
        return Output("", offset)
    return Output(data.decode("utf-8", errors="replace"), offset + len(data))


def tail(path: Path, lines: int, *, since: int = 0, maximum: int = 1 << 16) -> str:
    """Return the last lines of a text file, of what was written since byte `since`; empty if there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(since, path.stat().st_size - maximum))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _character_boundary(data: bytes) -> int:
    """Return where to cut so that no UTF-8 character is split."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
    return len(data)
