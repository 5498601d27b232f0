"""What the program of an experiment is made of: its cells or command, its files, what was sent along. By hash.

Texts are read only where they are wanted: parts with the same hash are the same.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from det_native.errors import DetError
from det_native.schema.manifests import BundleManifest, CallSite, FileEntry

CELL = "# %%"
CELLS, COMMAND = "cells", "command"
#: Files up to this size are compared as text, if they are text.
LARGEST_TEXT = 256 << 10
# So much is read of files for a diff; further ones are compared by hash and size.
_MOST_FILES = 500
_MOST_BYTES = 16 << 20
_SHORT_HASH = 12
# Why a text is not shown.
_BINARY, _LINKED = "binary", "in the store of data"


@dataclass(frozen=True)
class Part:
    """A part of a program.

    Attributes
    ----------
    identity : str
        Two parts are the same where theirs are: a hash, mostly.
    what : str
        Kind and size, for those who cannot read its text.
    text : str, optional
        Its text, where no blob has it.
    is_file : bool
        Whether a blob, `identity`, has its content.
    """

    identity: str
    what: str
    text: str | None = None
    size: int = 0
    is_file: bool = False


@dataclass(frozen=True)
class Code:
    """The program of an experiment, by its parts; `problem` says why there is none.

    Attributes
    ----------
    parts : dict
        By name: cells, the command of a script, paths of files.
    sent : dict
        Values and weights that were sent along, by name.
    call : str
        Where the training call is.
    read : callable
        Returns a blob's content by its hash.
    """

    parts: dict[str, Part] = field(default_factory=dict)
    sent: dict[str, Part] = field(default_factory=dict)
    call: str = ""
    read: Callable[[str], bytes] = lambda _: b""
    problem: str = ""


def code_of(bundle: BundleManifest, read_blob: Callable[[str], bytes]) -> Code:
    """Return the parts of a program."""
    program = bundle.program
    parts: dict[str, Part] = {}
    if program.kind == "cells":
        parts[CELLS] = _written("\n\n".join(f"{CELL}\n{cell.source.rstrip()}" for cell in program.cells))
    else:
        parts[COMMAND] = _written(program.command_line)
    linked = {file.path: Part(file.sha256, _size(file), size=file.size) for file in bundle.links}
    sent = {file.path: Part(file.sha256, _size(file), size=file.size, is_file=True) for file in bundle.files}
    parts |= dict(sorted((linked | sent).items()))
    return Code(parts, dict(_sent(bundle)), "" if program.call is None else _place(program.call), read_blob)


def text_of(content: bytes) -> str | None:
    """Return the text of a file; None if it is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def diff_of(first: Code, second: Code, names: tuple[str, str]) -> str:
    """Return a unified diff of two programs, and lines for what differs and is no text; empty where they are the same.

    Parameters
    ----------
    names : tuple of str
        What the experiments are called.
    """
    for code, name in zip((first, second), names, strict=True):
        if code.problem:
            return f"The program of {name} cannot be compared: {code.problem}"
    reader = _Reader()
    texts: list[str] = []
    others: list[str] = []
    data_only = True
    for part in _differing(first.parts, second.parts):
        one, other = first.parts.get(part), second.parts.get(part)
        (before, why), (after, why_after) = reader.text(first, one), reader.text(second, other)
        if why or why_after or before.splitlines() == after.splitlines():
            others.append(_line(part, one, other, why or why_after))
            data_only &= (why or why_after) in (_BINARY, _LINKED)
            continue
        titles = [name if part == CELLS else f"{name}: {part}" for name in names]
        texts += difflib.unified_diff(before.splitlines(), after.splitlines(), titles[0], titles[1], lineterm="")
    sent = _differing(first.sent, second.sent)
    # Equal objects, such as sets, may be pickled in another order.
    others += [_line(name, first.sent.get(name), second.sent.get(name), "in its pickled bytes") for name in sent]
    if texts or others:
        if not texts and data_only:
            others.insert(0, f"The code of {names[1]} is that of {names[0]}, but what was sent with it differs:")
        return "\n".join([*texts, *others])
    if first.call != second.call:
        return f"The training call of {names[0]} is {first.call}, that of {names[1]} {second.call}."
    return ""


def text_diff(first: str, second: str, names: tuple[str, str]) -> str:
    """Return a unified diff of two texts."""
    return "\n".join(difflib.unified_diff(first.splitlines(), second.splitlines(), names[0], names[1], lineterm=""))


class _Reader:
    """Reads texts of files, up to a limit for all of them."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0

    def text(self, code: Code, part: Part | None) -> tuple[str, str]:
        """Return the text of a part, empty where there is no such part; and why it is not shown, if it is not."""
        if part is None:
            return "", ""
        if not part.is_file:
            return part.text or "", "" if part.text is not None else _LINKED
        if part.size > LARGEST_TEXT:
            return "", f"larger than {LARGEST_TEXT >> 10} KiB"
        if self._files >= _MOST_FILES or self._bytes + part.size > _MOST_BYTES:
            return "", "not read, as one of many"
        self._files += 1
        self._bytes += part.size
        try:
            text = text_of(code.read(part.identity))
        except DetError:
            return "", "not to be read"
        return text or "", _BINARY if text is None else ""


def _differing(first: Mapping[str, Part], second: Mapping[str, Part]) -> list[str]:
    """Return names of parts that are not the same in both."""

    def identity(parts: Mapping[str, Part], name: str) -> str | None:
        return parts[name].identity if name in parts else None

    return [name for name in dict.fromkeys([*first, *second]) if identity(first, name) != identity(second, name)]


def _line(name: str, one: Part | None, other: Part | None, why: str = "") -> str:
    """Return what has become of a part whose text is not shown."""
    how = ", ".join(filter(None, ("added" if one is None else "removed" if other is None else "changed", why)))
    return f"{name}: {how} ({' -> '.join(part.what for part in (one, other) if part is not None)})"


def _written(text: str) -> Part:
    return Part(hashlib.sha256(text.encode()).hexdigest(), f"{len(text):,} characters", text, len(text))


def _size(file: FileEntry) -> str:
    return f"{file.size:,} bytes, {file.sha256[:_SHORT_HASH]}"


def _sent(bundle: BundleManifest) -> Iterator[tuple[str, Part]]:
    """Yield what was sent beside code and files; a name that is there again has its place behind it."""
    seen: dict[str, int] = {}
    for value in bundle.values:
        seen[value.name] = seen.get(value.name, 0) + 1
        again = f" ({seen[value.name]})" if seen[value.name] > 1 else ""
        what = f"{value.size:,} bytes, {value.sha256[:_SHORT_HASH]}"
        yield f"sent value {value.name}{again}", Part(value.sha256, what, size=value.size)
    for number, earlier in enumerate(bundle.program.earlier, 1):
        what = f"checkpoint {earlier.checkpoint} of experiment {earlier.experiment_id}"
        yield f"weights of earlier training {number}", Part(earlier.checkpoint, what)


def _place(call: CallSite) -> str:
    """Return where a call is, in words; the same cells have other numbers in brackets when they run again."""
    where = call.file if call.cell is None else f"cell number {call.cell + 1}"
    again = f", time {call.occurrence}" if call.occurrence > 1 else ""
    return f"{call.kind}() of {where}, line {call.line}{again}"
