"""Values as texts that are the same in every process."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import tempfile
from typing import Any

_COUNTED_NAME = re.compile(r"_\d+(?=['/:])")
#: Devices of a machine, as libraries write them: each process has its own.
_DEVICE = re.compile(r"(?i)(?:/?device:|/)?(?:cpu|gpu|cuda|mps|xpu)(?::\d+)?")
_LONGEST_PATH = 4_096  # characters; a longer text is data


class Texts:
    """Values as texts that are the same in every process: without folders and temporary files."""

    def __init__(self, folder: str, temporary: str = "") -> None:
        folders = (folder, os.path.realpath(folder)) if folder else ()
        self._folders = [*dict.fromkeys((*folders, os.getcwd(), os.path.realpath(os.getcwd())))]
        self._own = temporary or tempfile.gettempdir()
        places = "|".join(map(re.escape, {self._own, os.path.realpath(self._own), "/tmp"}))
        self._temporary = re.compile(f"(?:{places})/[^'\"\\s]*")

    def of(self, value: Any) -> str:
        """Return a value as a text."""
        cls = type(value)
        if cls is str:
            return self._of_text(value)
        if issubclass(cls, pathlib.PurePath):
            return f"path {self._of_text(str(value))}"
        if cls.__module__ == "torch" and cls.__name__ == "device":
            return self._of_text(str(value))
        if cls in (set, frozenset):
            return repr(sorted(map(self.of, value)))
        if cls in (tuple, list):
            kinds = {*map(type, value)}
            if kinds <= {int, bool, type(None), float, bytes}:
                return repr(value)
            return f"({', '.join(map(self.of, value))})"
        if cls is dict:
            return repr(sorted((self.of(key), self.of(held)) for key, held in value.items()))
        text = repr(value)
        if cls.__module__.startswith("tensorflow"):
            text = _COUNTED_NAME.sub("", text)
        return self.masked(text) if " at 0x" not in text else cls.__qualname__

    def _of_text(self, text: str) -> str:
        if len(text) > _LONGEST_PATH:
            return repr(text)
        if _DEVICE.fullmatch(text):
            return "device"
        if os.path.isabs(text) and "\n" not in text:
            for folder in self._folders:
                if text == folder or text.startswith(f"{folder}{os.sep}"):
                    return repr(f".{text[len(folder) :]}")
            return "temporary" if self._temporary.fullmatch(text) else f"elsewhere {os.path.basename(text)!r}"
        if text.startswith("tmp") and os.path.lexists(os.path.join(self._own, text)):
            return "temporary"
        return self.masked(repr(text))

    def masked(self, text: str) -> str:
        """Return a text without folders of this process."""
        if os.sep not in text:
            return text
        for folder in self._folders:
            text = text.replace(folder, ".")
        return self._temporary.sub("temporary", text)


@functools.lru_cache(maxsize=4)
def texts_within(folder: str, temporary: str) -> Texts:
    """Return what writes values as texts for a folder of the user's files and one of temporary files."""
    return Texts(folder, temporary)
