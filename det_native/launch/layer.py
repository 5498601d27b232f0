"""What launch layers have in common: their arguments, and the place of this machine in the trial."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from det_native.schema.job import TrialJob


class Arguments(NamedTuple):
    """What a layer was given: arguments for the launcher behind it, and the command to start on each slot."""

    launcher: list[str]
    command: list[str]


def arguments_of(words: Sequence[str], name: str) -> Arguments:
    """Return the arguments of a layer: ``[ARGUMENTS OF THE LAUNCHER... --] COMMAND...``.

    A script of Python may stand alone.
    """
    launcher, command = [], list(words)
    if "--" in command:
        split = command.index("--")
        launcher, command = command[:split], command[split + 1 :]
    if command[:1] == ["--trial"]:
        sys.exit(f"{name}: a Trial class is trained by  entrypoint: {' '.join(command[1:2])}  alone.")
    if not command or command[0].startswith("-"):
        sys.exit(f"usage: python3 -m {name} [[ARGUMENTS OF THE LAUNCHER...] --] COMMAND...")
    if command[0].endswith(".py"):
        command = [sys.executable, *command]
    return Arguments(launcher, command)


def job() -> TrialJob | None:
    """Return the job that this process works at; None outside of any."""
    place = os.environ.get("DET_JOB")
    return TrialJob.model_validate_json(Path(place).read_text(encoding="utf-8")) if place else None


def with_rank(variables: str, command: Sequence[str]) -> list[str]:
    """Return a command whose lines of output begin with the rank, which one of these variables has."""
    return [sys.executable, "-m", "det_native.launch.wrap_rank", variables, "--", *command]


def become(command: Sequence[str]) -> NoReturn:
    """Become another program, which gets the signals of this one."""
    sys.stdout.flush()
    os.execvp(command[0], list(command))
