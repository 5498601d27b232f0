"""Whether the master that runs on this machine has the options that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from det_native.schema.launchers import LOCAL
from det_native.schema.resources import SLOTS_SETTING

if TYPE_CHECKING:
    from det_native.schema.home import RuntimeFile
    from det_native.schema.rest import MasterInfo, SlotInfo


def lacking(asked: Mapping[str, str], runtime: RuntimeFile, info: MasterInfo) -> list[str]:
    """Return those of the options, ``--port`` and the like with their values, that a running master does not have.

    Its slots and launcher are compared, and where it listens; what they do not show, its certificate, by its command
    line. An option without a value has an empty one.
    """
    place = urlsplit(runtime.tcp or "")
    shown = {"--port": str(place.port or ""), "--host": place.hostname or "", "--storage": runtime.storage}
    command = _command_of(runtime.pid)

    def has(name: str, value: str) -> bool:
        if name == "--slots" and info.launcher == LOCAL:
            return _are_slots(value, info.slots)
        if name == "--launcher":
            return value == info.launcher
        if not value:
            return name in command
        return value == shown.get(name) or (name, value) in pairwise(command)

    return [name for name, value in asked.items() if not has(name, value)]


def _are_slots(setting: str, slots: Sequence[SlotInfo]) -> bool:
    match = SLOTS_SETTING.fullmatch(setting.strip().lower())
    if match is None or int(match[2]) != len(slots):
        return False
    return match[1] is None or all(slot.device == match[1] for slot in slots)


def _command_of(pid: int) -> list[str]:
    import psutil

    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []
