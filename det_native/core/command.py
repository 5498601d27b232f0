"""A command that is an experiment's ``entrypoint``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from det_native.schema.manifests import Framework

#: The launch layers of Determined, by their modules.
LAUNCHERS = re.compile(r"(determined|det_native)\.launch\.\w+")
_PYTHON = re.compile(r"python[\d.]*")
# What a shell does with a text, and nobody else.
_OF_SHELL = re.compile(r"[$&|;<>()`*?~\n#]|(^|\s)\w+=")


@dataclass(frozen=True)
class CommandCall:
    """A command, as it is started.

    Attributes
    ----------
    words : tuple of str
    """

    framework: ClassVar[Framework] = "core"
    kind: ClassVar[Literal["command"]] = "command"

    words: tuple[str, ...]

    @property
    def title(self) -> str:
        """The command as a user writes it."""
        return self.words[2] if self.words[:2] == ("sh", "-c") else " ".join(self.words)


def words_of(entrypoint: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of an entrypoint; a text that is for a shell is given to one.

    Raises
    ------
    ValueError
        If a quotation mark is not closed.
    """
    if not isinstance(entrypoint, str):
        return tuple(str(word) for word in entrypoint)
    words = tuple(shlex.split(entrypoint))
    return ("sh", "-c", entrypoint) if _OF_SHELL.search(entrypoint) else words


def launched(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return what a command has one of Determined's launch layers start; None if it starts none.

    Examples
    --------
    >>> launched(("python3", "-m", "determined.launch.torch_distributed", "--", "python3", "train.py"))
    ('python3', 'train.py')
    """
    if len(words) < 3 or not is_python(words[0]) or words[1] != "-m" or not LAUNCHERS.fullmatch(words[2]):
        return None
    rest = tuple(words[3:])
    return rest[rest.index("--") + 1 :] if "--" in rest else rest


def script_of(words: Sequence[str]) -> str | None:
    """Return the path of the script that a command has Python run, where that is plain to see."""
    inner = launched(words)
    if inner is not None:
        return script_of(inner)
    if words and is_python(words[0]):
        words = words[1:]
        while words and words[0] in ("-u", "-O", "-B"):
            words = words[1:]
    elif not words or not words[0].endswith(".py"):
        return None
    return words[0] if words and words[0].endswith(".py") else None


def is_python(word: str) -> bool:
    """Return whether a word is a Python: ``python3``, or the path of one."""
    return _PYTHON.fullmatch(PurePosixPath(word).name) is not None
