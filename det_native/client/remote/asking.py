"""Asks the other machine for its master: finds a Python with det_native there, which answers with one line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from det_native._version import __version__
from det_native.client.addresses import Verb
from det_native.client.remote.ssh import Line
from det_native.client.remote.target import Target
from det_native.client.remote.there import MARK
from det_native.errors import (
    AuthenticationError,
    DetError,
    MasterError,
    MasterStartError,
    MasterUnreachableError,
    NoMasterError,
    ProtocolMismatchError,
    error_class,
)
from det_native.schema.home import RuntimeFile
from det_native.schema.sockets import is_socket, path_of

# Where `det remote setup` makes the environment, there.
ENVIRONMENT = '"${XDG_DATA_HOME:-$HOME/.local/share}"/det_native_environment'
_SECONDS = 120.0
_NOTHING = 9

# Run by whatever Python there is, so no newer than it must be. It says by its exit code whether another one is tried.
_CODE = f"""
import sys
sys.path[:] = [place for place in sys.path if place]
import json
def answer(**facts):
    print("{MARK}" + json.dumps(dict(facts, python=sys.executable)))
if sys.version_info < (3, 11):
    answer(kind="python", found="%d.%d" % sys.version_info[:2])
    sys.exit(9)
try:
    import det_native
except ImportError:
    answer(kind="package")
    sys.exit(9)
try:
    from det_native.client.remote import there
except ImportError:
    answer(kind="old", version=det_native.__version__)
else:
    there.main(*sys.argv[1:])
"""

_SCRIPT = """
code={code}
ask() {{
    [ -n "$1" ] && [ -x "$1" ] || return 0
    "$1" -c "$code" {words} </dev/null
    status=$?
    [ $status = 9 ] || exit $status
}}
{candidates}
exit 9
"""
_CANDIDATES = """
ask {environment}/bin/python
for name in python3 python python3.13 python3.12 python3.11; do ask "$(command -v $name)"; done
for name in python3 python; do
    ask "$("${{SHELL:-/bin/sh}}" -lc "command -v $name" </dev/null 2>/dev/null | tail -n 1)"
done
"""


class MasterThere(BaseModel):
    """The master that runs on the other machine."""

    model_config = ConfigDict(frozen=True)

    runtime: RuntimeFile
    home: str
    token: str
    python: str
    version: str
    fresh: bool = False

    @property
    def socket(self) -> Path:
        """Where it listens, as seen there."""
        return path_of(self.runtime.url)


def ask(line: Line, verb: Verb) -> MasterThere:
    """Return the master of the other machine.

    Parameters
    ----------
    verb : str
        ``start`` starts one where none runs; ``stop`` and ``kill``, which ends its workers too, say who has ended.

    Raises
    ------
    MasterUnreachableError
        If the connection is lost, no Python or package is there, or no master runs and none is to be started.
    MasterStartError
        If it was to be started and did not get ready.
    DetError
        What else is wrong there.
    """
    target = line.target
    answer = _answer(line, verb)
    if answer["kind"] == "none":
        raise no_master(target, answer["home"])
    if not answer["token"]:
        raise AuthenticationError(
            f"On {target.machine}: the token in {answer['home']} is gone; `det -m {target.name} down` and `up`."
        )
    found = MasterThere.model_validate(answer)
    if verb in ("find", "start") and not is_socket(found.runtime.url):
        raise ProtocolMismatchError(
            f"The master on {target.machine} is version {found.runtime.version}, from before this client "
            f"({__version__}), and listens at a port, where others may listen too: it is told nothing. "
            f"`det remote setup {target.name}` brings this version there; `det -m {target.name} down` ends the older "
            "master, running trials go on, and the next submit starts the new one."
        )
    return found


def home_there(line: Line) -> str:
    """Return the home of the user's master there, whether it runs or not; raises as `ask` does."""
    home: str = _answer(line, "find")["home"]
    return home


def packages_there(line: Line) -> dict[str, str]:
    """Return the version of every package there, by their normal names, and of ``python``; raises as `ask` does."""
    versions: dict[str, str] = _answer(line, "packages")["versions"]
    return versions


class FrameworkThere(BaseModel):
    """What a framework on the other machine sees of its GPUs.

    `why_none` says why it may see none, `remedy` is the command that mends that; `error` says why it does not start.
    """

    model_config = ConfigDict(frozen=True)

    module: str
    gpus: int = 0
    version: str = ""
    why_none: str = ""
    remedy: str = ""
    error: str = ""


def frameworks_there(line: Line) -> list[FrameworkThere]:
    """Return what each framework that is installed there sees; an older det_native there tells nothing."""
    return [FrameworkThere.model_validate(sees) for sees in _answer(line, "frameworks").get("frameworks", ())]


class CommandThere(BaseModel):
    """What a command of ``det`` has printed there, and its exit code."""

    model_config = ConfigDict(frozen=True)

    code: int
    printed: str
    complained: str


def command_there(line: Line, words: Sequence[str]) -> CommandThere:
    """Run a command of ``det`` there; raises as `ask` does."""
    return CommandThere.model_validate(_of_this_version(line, "det", *words))


class ServiceThere(BaseModel):
    """The unit with which the system there starts its master, as it would be written."""

    model_config = ConfigDict(frozen=True)

    path: str
    text: str
    commands: list[list[str]]
    removal: str
    running: bool


def planned_service(line: Line) -> ServiceThere:
    """Return what would be written and run there; raises as `ask` does."""
    return ServiceThere.model_validate(_of_this_version(line, "unit"))


def install_service(line: Line) -> list[str]:
    """Have it written and run there; return sentences on what it cannot do.

    Raises
    ------
    MasterStartError
        If there is no systemd for the user there.
    """
    sentences: list[str] = _of_this_version(line, "service")["notes"]
    return sentences


def _of_this_version(line: Line, verb: str, *arguments: str) -> dict[str, Any]:
    answer = _answer(line, verb, *arguments)
    if answer["kind"] != verb:
        raise ProtocolMismatchError(
            f"det_native on {line.target.machine} is older than this client ({__version__}) and does not know this: "
            f"`det remote setup {line.target.name}` brings the same version there."
        )
    return answer


def _answer(line: Line, verb: str, *arguments: str) -> dict[str, Any]:
    target = line.target
    done = line.run(_script(target, verb, *arguments), seconds=_SECONDS)
    answers = _answers(done.printed)
    answer = next((found for found in answers if found["kind"] not in ("python", "package")), None)
    if answer is None and done.code != _NOTHING:
        said = (done.complained.strip() or done.printed.strip() or f"exit code {done.code}").splitlines()[-1]
        raise MasterStartError(f"det_native does not start on {target.machine}: {said}")
    if answer is None:
        raise _nothing_there(target, answers)
    if answer["kind"] == "old":
        raise ProtocolMismatchError(
            f"{target.machine} has det_native {answer['version']}, which cannot be reached by SSH yet; here is "
            f"{__version__}. `det remote setup {target.name}` brings the same version there."
        )
    if answer["kind"] == "failed":
        raise (error_class(answer["error"]) or MasterStartError)(f"On {target.machine}: {answer['message']}")
    return answer


def no_master(target: Target, home: str) -> MasterError:
    """Return the error for a machine on which no master runs."""
    return NoMasterError(
        f"No master runs on {target.machine} in {home}. A submit starts it, or `det -m {target.name} up`."
    )


def _script(target: Target, *words: str) -> str:
    if target.python is None:
        candidates = _CANDIDATES.format(environment=ENVIRONMENT)
    elif target.python.startswith("~/"):
        candidates = f'ask "$HOME"/{shlex.quote(target.python[2:])}'
    else:
        candidates = f"ask {shlex.quote(target.python)}"
    return _SCRIPT.format(code=shlex.quote(_CODE), words=shlex.join(words), candidates=candidates)


def _answers(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line.partition(MARK)[2]) for line in printed.splitlines() if MARK in line]


def _nothing_there(target: Target, answers: list[dict[str, Any]]) -> DetError:
    setup = f"`det remote setup {target.name}` installs it there"
    without = [answer["python"] for answer in answers if answer["kind"] == "package"]
    if without:
        return MasterUnreachableError(
            f"det_native is not installed on {target.machine} (looked at {', '.join(dict.fromkeys(without))}): "
            f"{setup}; or name the Python that has it, {_with_python(target)}."
        )
    if target.python is not None:
        return MasterUnreachableError(f"There is no Python {target.python} on {target.machine}: mend the address.")
    too_old = sorted({answer["found"] for answer in answers})
    found = f" (found: {', '.join(too_old)})" if too_old else ""
    return MasterUnreachableError(
        f"There is no Python 3.11 or newer on {target.machine}{found}: install one there, or name it, "
        f"{_with_python(target)}."
    )


def _with_python(target: Target) -> str:
    plain = Target(target.host, target.user, target.port)
    return f"{plain.name}?python=/path/to/python"
