"""Finds out what a machine that is reached by SSH has: Python, GPUs, room, versions, and how fast the line is."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from det_native._version import PROTOCOL, __version__
from det_native.client.remote import slurm
from det_native.client.remote.asking import ask, frameworks_there, packages_there
from det_native.client.remote.link import Connection
from det_native.client.remote.ssh import Line
from det_native.client.remote.there import versions_here
from det_native.errors import DetError, NoMasterError

#: What the same version of matters most.
COMPARED = ("torch", "tensorflow", "keras", "horovod", "numpy")
_FACT_SECONDS = 60.0
_LINE_SECONDS = 120.0
_PROBES = 3
_FEW_BYTES, _MANY_BYTES = 1_000_000, 32_000_000
_SHORT_SECONDS = 0.3
_LEAST_ROOM = 2_000_000_000
_UNITS = 1024

_FACTS = f"""
echo "system=$(uname -sm)"
echo "cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
place="${{DET_HOME:-${{XDG_DATA_HOME:-$HOME/.local/share}}/det_native}}"
echo "home=$place"
while [ ! -d "$place" ]; do place="$(dirname "$place")"; done
echo "free=$(df -Pk "$place" | tail -n 1 | awk '{{print $4}}')"
nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv,noheader 2>/dev/null | sed 's/^/gpu=/'
{slurm.LOOK}
exit 0
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    good : bool
        False where training there will not work.
    """

    name: str
    text: str
    good: bool = True


def check(connection: Connection, tell: Callable[[Finding], None]) -> bool:
    """Look at a machine; return whether one can train on it.

    Parameters
    ----------
    tell : callable
        Takes what was found, as it is found.

    Raises
    ------
    DetError
        If it cannot be reached.
    """
    found: list[Finding] = []

    def told(finding: Finding) -> None:
        found.append(finding)
        tell(finding)

    with connection.opened() as line:
        begun = time.monotonic()
        line.run(":", seconds=_FACT_SECONDS)
        told(Finding("connection", f"works; {1000 * (time.monotonic() - begun):.0f} ms for a command"))
        facts, gpus = _facts(line)
        for finding in facts:
            told(finding)
        has_package = _check_package(line, told)
        if has_package:
            told(_packages(line))
            for finding in _frameworks(line, gpus=gpus):
                told(finding)
        told(_speed(line))
    return all(finding.good for finding in found)


def _facts(line: Line) -> tuple[list[Finding], bool]:
    """Return what there is, and whether GPUs are among it."""
    printed = line.run(_FACTS, seconds=_FACT_SECONDS).printed
    pairs = [text.partition("=")[::2] for text in printed.splitlines() if "=" in text]
    facts, gpus = dict(pairs), [value for name, value in pairs if name == "gpu"]
    linux = facts.get("system", "").startswith("Linux")
    found = [
        Finding(
            "system",
            f"{facts.get('system')}, {facts.get('cores')} cores{'' if linux else '; a master needs Linux'}",
            linux,
        ),
        Finding("GPUs", "; ".join(gpus) if gpus else "none that `nvidia-smi` shows: trials use the processors"),
    ]
    if facts.get("free", "").isdigit():
        free = int(facts["free"]) * _UNITS
        low = "" if free >= _LEAST_ROOM else ": too little for checkpoints, make room there"
        found.append(Finding("disk", f"{free / 1e9:.1f} GB free in {facts['home']}{low}", free >= _LEAST_ROOM))
    if "slurm" in facts:
        found.append(Finding("Slurm", slurm.NOTE))
    return found, bool(gpus)


def _check_package(line: Line, tell: Callable[[Finding], None]) -> bool:
    """Tell of Python, package and master there; return whether the package is there."""
    try:
        there = ask(line, "find")
    except NoMasterError as error:
        tell(Finding("master", str(error)))
    except DetError as error:
        tell(Finding("det_native", str(error), good=False))
        return False
    else:
        runtime = there.runtime
        same = runtime.protocol == PROTOCOL
        text = (
            f"runs, version {runtime.version} (protocol {runtime.protocol}); here {__version__} (protocol {PROTOCOL})"
        )
        tell(Finding("master", text if same else f"{text}: they cannot work together", same))
    return True


def _packages(line: Line) -> Finding:
    there = packages_there(line)
    here = versions_here()
    differing = [
        f"{name} {there.get(name, 'missing')} (here {here[name]})"
        for name in COMPARED
        if name in here and there.get(name) != here[name]
    ]
    here_python = platform.python_version()
    python = f"Python {there['python']}"
    if there["python"].split(".")[:2] != here_python.split(".")[:2]:
        python += f" (here {here_python}: values of your cells may not load there)"
    same = ", ".join(f"{name} {there[name]}" for name in COMPARED if name in there and there[name] == here.get(name))
    text = "; ".join(
        [f"{python}{f', {same}' if same else ''}", *([f"differs: {', '.join(differing)}"] if differing else [])]
    )
    return Finding("packages", text)


def _frameworks(line: Line, *, gpus: bool) -> Iterator[Finding]:
    """Yield what each framework there sees of the GPUs."""
    for sees in frameworks_there(line):
        if sees.error:
            yield Finding(sees.module, f"does not start: {sees.error}", good=False)
        elif sees.gpus:
            yield Finding(sees.module, f"{sees.version} sees {sees.gpus} GPU{'s' if sees.gpus > 1 else ''}")
        elif gpus:
            text = f"{sees.version} sees no GPU: {sees.why_none}. Run there: {sees.remedy}".rstrip()
            yield Finding(sees.module, text if sees.remedy else text.removesuffix(" Run there:"), good=False)
        else:
            yield Finding(sees.module, f"{sees.version} sees no GPU, and there is none")


def _speed(line: Line) -> Finding:
    least = min(_timed(line, ":", b"") for _ in range(_PROBES))
    up = _rate(lambda size: _timed(line, "cat >/dev/null", os.urandom(size)) - least)
    down = _rate(lambda size: _timed(line, f"head -c {size} /dev/urandom", b"") - least)
    return Finding("line", f"{up:.1f} MB/s there, {down:.1f} MB/s back")


def _rate(seconds_for: Callable[[int], float]) -> float:
    """Return megabytes in a second; a fast line is tried with more, for it not to be the start that is measured."""
    size, seconds = _FEW_BYTES, seconds_for(_FEW_BYTES)
    if seconds < _SHORT_SECONDS:
        size, seconds = _MANY_BYTES, seconds_for(_MANY_BYTES)
    return size / 1e6 / max(seconds, 0.001)


def _timed(line: Line, command: str, body: bytes) -> float:
    begun = time.monotonic()
    line.run_command(command, body, seconds=_LINE_SECONDS)
    return time.monotonic() - begun
