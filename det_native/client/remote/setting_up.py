"""Makes an environment with det_native on a machine that is reached by SSH: first a plan, then its steps."""

from __future__ import annotations

import platform
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from det_native._version import __version__
from det_native.client.remote import slurm, wheels
from det_native.client.remote.asking import ENVIRONMENT
from det_native.client.remote.gpu_builds import LOOK as LOOK_AT_GPUS
from det_native.client.remote.gpu_builds import fitted
from det_native.client.remote.requirements import installed_size
from det_native.client.remote.ssh import Line
from det_native.client.remote.target import Target
from det_native.client.remote.wheels import NAME, pack_wheel
from det_native.errors import DiskFullError, MasterUnreachableError, RemoteSetupError

_LOOK_SECONDS = 60.0
_STEP_SECONDS = 3600.0
# What Debian's Python says, in a text of several lines.
_NO_ENSUREPIP = "ensurepip is not"
_NO_ROOM = ("No space left on device", "Disk quota exceeded")

_LOOK = f"""
environment={ENVIRONMENT}
echo "environment=$environment"
echo "home=$HOME"
version='import sys; print("%d.%d" % sys.version_info[:2])'
[ -x "$environment/bin/python" ] && echo "has=$("$environment/bin/python" -c "$version" </dev/null)"
"$environment/bin/python" -I -c "import pip" </dev/null 2>/dev/null && echo "pip=yes"
for place in "$(command -v uv)" "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv"; do
    [ -n "$place" ] && [ -x "$place" ] && echo "uv=$place"
done
for name in python3.11 python3.12 python3.13 python3 python; do
    place="$(command -v $name)" && echo "python=$("$place" -c "$version" </dev/null) $place"
done
{LOOK_AT_GPUS}
{wheels.LOOK}
{slurm.LOOK}
exit 0
"""

_ROOM = f"""
place={ENVIRONMENT}
while [ ! -d "$place" ]; do place="$(dirname "$place")"; done
df -Pk "$place" | tail -n 1 | awk '{{print $4}}'
"""
_LEAST_FREE = 10_000_000
# Builds for another machine differ in size; half of what they take here is less than they take anywhere.
_CERTAINLY_TOO_SMALL = 0.5
_TELL_SECONDS = 15.0
# Folder of the environment in which wheels wait that were sent.
_WHEELS = "det_native_wheels"


@dataclass(frozen=True)
class Step:
    """One thing to do there.

    Attributes
    ----------
    text : str
        As it is shown.
    command : str
        For a Bourne shell.
    body : Path or None
        A file that the command reads.
    """

    text: str
    command: str
    body: Path | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be done, what should be known before, and the command that removes what it makes anew."""

    steps: Sequence[Step]
    notes: Sequence[str]
    undo: str = ""


def plan(line: Line, requirements: Sequence[str], folder: Path, offline: Path | None = None) -> Plan:
    """Look at the machine and return what is to be done.

    Parameters
    ----------
    requirements : sequence of str
        Packages with their versions.
    folder : Path
        Where the wheel is written.
    offline : Path, optional
        A folder of wheels that are sent: the machine has no internet.

    Raises
    ------
    ArgumentError
        If that folder lacks a package.
    MasterUnreachableError
        If there is nothing to make an environment with.
    DiskFullError
        If there is by far no room for them.
    """
    printed = line.run(_LOOK, seconds=_LOOK_SECONDS).printed.splitlines()
    pairs = [text.partition("=")[::2] for text in printed if "=" in text]
    facts = dict(reversed(pairs))
    if offline is not None:  # it would fetch a Python, or pip
        facts.pop("uv", None)
    pythons = [value.partition(" ")[::2] for name, value in pairs if name == "python"]
    wheel = folder / NAME
    pack_wheel(wheel)
    target = line.target
    if target.python is not None:
        python, uv, place = _shell_path(target.python), "", facts["home"]
        made: list[Step] = []
        notes: list[str] = []
    else:
        uv, place = facts.get("uv", ""), facts["environment"]
        python = shlex.quote(f"{place}/bin/python")
        made, notes = _environment(target, facts, pythons)
    if made:
        notes += _check_room(line, installed_size(requirements), certain=not uv)
    fits = fitted(line, requirements, facts, offline=offline is not None)
    requirements = fits.requirements
    notes += [*fits.notes, *([slurm.NOTE] if "slurm" in facts else [])]
    sent = f"{place}/{NAME}"
    install = f"{shlex.quote(uv)} pip install --python {python}" if uv else f"{python} -m pip install"
    more = ""
    brought: list[Step] = []
    if offline is not None:
        interpreter = _python_here() if target.python is not None else _usable(pythons)[0][0]
        brought = _wheels_sent(wheels.checked(offline, requirements, interpreter, facts), place)
        more = f"--no-index --find-links {shlex.quote(f'{place}/{_WHEELS}')} "
    elif fits.indexes:
        more = " ".join(f"--extra-index-url {shlex.quote(index)}" for index in fits.indexes)
        more += " --index-strategy unsafe-best-match " if uv else " "
    again = "--reinstall-package det-native" if uv else "--force-reinstall"
    names = " ".join(shlex.quote(requirement) for requirement in requirements)
    quoted = shlex.quote(sent)
    steps = [
        *made,
        Step(
            f"send det_native {__version__} ({wheel.stat().st_size / 1e6:.1f} MB) to {sent}", f"cat > {quoted}", wheel
        ),
        *brought,
        Step(f"{install} {more}{names}", f"{install} {more}{names} </dev/null{_removed(place) if brought else ''}"),
        Step(
            f"{install} {again} --no-deps {sent}", f"{install} {again} --no-deps {quoted} </dev/null && rm -f {quoted}"
        ),
    ]
    undo = f"rm -rf {shlex.quote(place)}" if made else f"rm -f {quoted}{_removed(place)}"
    return Plan(steps, notes, undo)


def _wheels_sent(found: Sequence[Path], place: str) -> list[Step]:
    folder = shlex.quote(f"{place}/{_WHEELS}")
    return [
        Step(
            f"send {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)",
            f"mkdir -p {folder} && cat > {shlex.quote(f'{place}/{_WHEELS}/{wheel.name}')}",
            wheel,
        )
        for wheel in found
    ]


def _removed(place: str) -> str:
    return f" && rm -rf {shlex.quote(f'{place}/{_WHEELS}')}"


def _check_room(line: Line, wanted: int, *, certain: bool) -> list[str]:
    """Refuse a disk that packages do not fit on by far; return what should be known of one that is small.

    Where uv is, it links packages that it has fetched before, and they take no room.
    """
    free = _free(line)
    if free is None or free > wanted:
        return []
    told = f"The packages take {wanted / 1e6:,.0f} MB here, and {free / 1e6:,.0f} MB are free"
    if certain and free < wanted * _CERTAINLY_TOO_SMALL:
        raise _full(line, f"{told} there. ")
    return [f"{told} on {line.target.machine}: they may not fit."]


def carry_out(line: Line, plan: Plan, tell: Callable[[int, float], None]) -> None:
    """Do what was planned.

    Parameters
    ----------
    tell : callable
        Takes the number of each step, from 1, as it begins and every few seconds while it goes on, and these seconds.

    Raises
    ------
    DiskFullError
        If there is no room; what was made anew is removed, so that the disk is as it was.
    RemoteSetupError
        If a step fails; nothing else there was touched, and it can be done again.
    """
    for number, step in enumerate(plan.steps, 1):
        body = step.body or b""
        with _told(partial(tell, number)):
            done = line.run_command(f"sh -c {shlex.quote(step.command)}", body, seconds=_STEP_SECONDS)
        if done.code == 0:
            continue
        said = (done.complained.strip() or done.printed.strip() or f"exit code {done.code}").splitlines()
        if any(words in text for words in _NO_ROOM for text in said) or _is_full(line):
            with suppress(MasterUnreachableError):
                line.run(plan.undo, seconds=_LOOK_SECONDS)
            raise _full(line, "")
        if any(_NO_ENSUREPIP in text for text in said):
            raise RemoteSetupError(
                f"Python on {line.target.machine} cannot make environments: install its package there (`sudo apt "
                f"install python3-venv`), or uv; then run `det remote setup {line.target.name}` again."
            )
        errors = [text for text in said if text.lower().startswith("error")] or said
        raise RemoteSetupError(
            f"`{step.text}` failed on {line.target.machine}: {errors[-1].strip()}. Mend that there, then run "
            f"`det remote setup {line.target.name}` again."
        )


@contextmanager
def _told(tell: Callable[[float], None]) -> Iterator[None]:
    """Call `tell` now and every few seconds, with how long the block has taken."""
    begun, done = time.monotonic(), threading.Event()

    def go_on() -> None:
        while not done.wait(_TELL_SECONDS):
            tell(time.monotonic() - begun)

    tell(0.0)
    thread = threading.Thread(target=go_on, name="det-setup", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _full(line: Line, why: str) -> DiskFullError:
    return DiskFullError(
        f"The disk of {line.target.machine} is full: {why}Make room there, then run `det remote setup "
        f"{line.target.name}` again."
    )


def _is_full(line: Line) -> bool:
    """Whether there is no room where the environment is: not every tool says so."""
    free = _free(line)
    return free is not None and free < _LEAST_FREE


def _free(line: Line) -> int | None:
    """Return the bytes that are free where the environment is, None where that cannot be told."""
    told = line.run(_ROOM, seconds=_LOOK_SECONDS).printed.strip()
    return int(told) * 1024 if told.isdigit() else None


def _environment(
    target: Target, facts: dict[str, str], pythons: Sequence[tuple[str, str]]
) -> tuple[list[Step], list[str]]:
    """Return how the environment is made, and what should be known of its Python."""
    here = _python_here()
    place, has, uv = facts["environment"], facts.get("has"), facts.get("uv")
    usable = _usable(pythons)
    if uv is None and not usable:
        found = ", ".join(f"{version} ({path})" for version, path in pythons) or "none"
        raise MasterUnreachableError(
            f"There is no uv and no Python 3.11 or newer on {target.machine} (found: {found}): install one of them "
            "there; `curl -LsSf https://astral.sh/uv/install.sh | sh` installs uv, which brings its own Python."
        )
    wanted, path = usable[0] if uv is None else (here, "")
    notes = []
    if wanted != here:
        notes.append(f"Python there is {wanted}, here {here}: values of your cells may not load there.")
    complete = uv is not None or "pip" in facts
    if has == wanted and complete:
        return [], [f"The environment {place} is there already; it is brought up to date.", *notes]
    remove = ""
    if has is not None:
        # Without pip, as `venv` leaves it where it fails or is cut off.
        wrong = f"has Python {has}, not {wanted}" if has not in ("", wanted) else "is not complete"
        notes.append(f"The environment {place} {wrong}: it is made anew, and what still runs in it fails.")
        remove = f"rm -rf {shlex.quote(place)} && "
    # With pip in it, as messages on missing packages say to use it there.
    maker = f"{shlex.quote(path)} -m venv" if uv is None else f"{shlex.quote(uv)} venv --seed --python {here}"
    command = f"{maker} {shlex.quote(place)}"
    return [Step(command, f"{remove}{command} </dev/null")], notes


def _usable(pythons: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of the version of here, else those that are new enough."""
    return [pair for pair in pythons if pair[0] == _python_here()] or [
        pair for pair in pythons if _number(pair[0]) >= (3, 11)
    ]


def _python_here() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _shell_path(path: str) -> str:
    return f'"$HOME"/{shlex.quote(path[2:])}' if path.startswith("~/") else shlex.quote(path)


def wheel_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the wheel, for a ``with``."""
    return tempfile.TemporaryDirectory(prefix="det-wheel-")
