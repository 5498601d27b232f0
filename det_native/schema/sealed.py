"""Lines of a file that are not believed once they are damaged: each ends with a checksum of its text.

A line is its text, a tab, and the text's CRC-32 as eight digits. JSON has no tab of its own in it, so a line without
one is of an earlier version, and is taken as it is.
"""

from __future__ import annotations

import zlib

_TAB = b"\t"


def seal(text: str) -> bytes:
    """Return the line of a text without tabs and line breaks."""
    content = text.encode()
    return b"%s\t%08x\n" % (content, zlib.crc32(content))


def unseal(line: bytes) -> str:
    """Return the text of a complete line.

    Raises
    ------
    ValueError
        If it is not what was written.
    """
    content, tab, checksum = line.rstrip(b"\n").partition(_TAB)
    sealed = checksum == b"%08x" % zlib.crc32(content) if tab else content.endswith(b"}")
    if not sealed:
        raise ValueError("A line is not what was written: its checksum is another one.")
    return content.decode()
