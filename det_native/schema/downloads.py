"""What a browser calls a file that it saves."""

from __future__ import annotations

from urllib.parse import quote

# RFC 5987, attr-char: what stands as it is in an encoded value.
_PLAIN = "!#$&+-.^_`|~"
_LONGEST = 200


def attachment(path: str) -> str:
    """Return the ``Content-Disposition`` of a file that is saved under the last part of its path (RFC 6266).

    The name is given encoded, and in ASCII for what reads no other; nothing in it can end the header or name a folder.
    """
    last = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    # A lone surrogate stands for bytes that are no UTF-8.
    whole = last.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    name = "".join(sign if sign.isprintable() else "_" for sign in whole).strip(". ")
    if len(name) > _LONGEST:
        stem, dot, kind = name.rpartition(".")
        ending = dot + kind if stem and len(kind) < 20 else ""
        name = name[: _LONGEST - len(ending)] + ending
    if not name:
        return "attachment"
    ascii_name = "".join(sign if sign.isascii() and sign not in '"\\%' else "_" for sign in name)
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe=_PLAIN)}"
