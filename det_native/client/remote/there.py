"""What is run on the machine that SSH leads to: finds the master of its user, or starts it, and says where it is."""

from __future__ import annotations

import errno
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from importlib.util import find_spec
from typing import Any

from det_native._version import PROTOCOL, __version__
from det_native.client.home import read_token
from det_native.client.service import Service, install, plan_service, removal, require_systemd
from det_native.client.starting import ensure_master
from det_native.client.stopping import stop_master
from det_native.errors import DetError
from det_native.frameworks import Description, known_frameworks
from det_native.schema.home import Home, read_runtime

# What begins the line of the answer: a shell there may print lines of its own.
MARK = "det_native answers: "
_FRAMEWORK_SECONDS = 50.0


def main(verb: str, *arguments: str) -> None:
    """Print the answer to ``find``, ``start``, ``stop``, ``kill`` (which ends the workers too), ``packages``,
    ``frameworks``, ``unit`` (how the system would start the master), ``service`` (have it do so) or ``det``, whose
    arguments are those of a command of ``det``.
    """
    if verb == "det":
        print(MARK + json.dumps(_det(arguments)), flush=True)
        return
    others = {"packages": _packages, "frameworks": _frameworks, "unit": _unit, "service": _service}
    print(MARK + json.dumps(others[verb]() if verb in others else _answer(verb)), flush=True)


def _det(arguments: Sequence[str]) -> dict[str, Any]:
    """Run a command of ``det`` here; return what it has printed, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "det_native.client.command", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return {"kind": "det", "code": done.returncode, "printed": done.stdout, "complained": done.stderr}


def _packages() -> dict[str, Any]:
    """Return the version of every package here, and of Python."""
    return {"kind": "packages", "versions": {**versions_here(), "python": platform.python_version()}}


def versions_here() -> dict[str, str]:
    """Return the packages of this interpreter, by their normal names, without a local part such as ``+cpu``."""
    return {
        found.metadata["Name"].lower().replace("_", "-"): found.version.partition("+")[0]
        for found in distributions()
        if found.metadata["Name"]
    }


def _unit() -> dict[str, Any]:
    planned, running = _planned()
    try:
        require_systemd(planned)
    except DetError as error:
        return {"kind": "failed", "error": type(error).__name__, "message": str(error)}
    return {
        "kind": "unit",
        "path": str(planned.path),
        "text": planned.text,
        "commands": planned.commands,
        "removal": removal(planned),
        "running": running,
    }


def _service() -> dict[str, Any]:
    planned, running = _planned()
    try:
        return {"kind": "service", "notes": install(planned, Home.default(), running=running)}
    except DetError as error:
        return {"kind": "failed", "error": type(error).__name__, "message": str(error)}
    except OSError as error:
        return {"kind": "failed", "error": "MasterStartError", "message": f"{planned.path}: {error.strerror}"}


def _planned() -> tuple[Service, bool]:
    home = Home.default()
    running = read_runtime(home) is not None
    return plan_service(home, running=running), running


def _frameworks() -> dict[str, Any]:
    """Return what each framework that is installed here sees of the GPUs: each in a process of its own."""
    asked: dict[str, tuple[Description, subprocess.Popen[str]]] = {}
    for framework in known_frameworks():
        if framework.module not in asked and find_spec(framework.module) is not None:
            command = [sys.executable, "-P", "-m", "det_harness.frameworks.ask_gpus", framework.name]
            asked[framework.module] = (
                framework,
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                ),
            )
    answers = [(module, framework, _answer_of(process)) for module, (framework, process) in asked.items()]
    return {
        "kind": "frameworks",
        "frameworks": [
            {"module": module, **sees, "remedy": framework.gpu_command(sys.executable, str(sees.get("version", "")))}
            for module, framework, sees in answers
            if sees is not None
        ],
    }


def _answer_of(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    try:
        printed, complained = process.communicate(timeout=_FRAMEWORK_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"error": f"it has not answered after {_FRAMEWORK_SECONDS:.0f} s"}
    if process.returncode != 0:
        return {"error": (complained.strip() or f"exit code {process.returncode}").splitlines()[-1]}
    sees: dict[str, Any] | None = json.loads(printed.splitlines()[-1])
    return None if sees is None else {name: sees[name] for name in ("gpus", "version", "why_none")}


def _answer(verb: str) -> dict[str, Any]:
    home = Home.default()
    own = {"version": __version__, "protocol": PROTOCOL, "python": sys.executable, "home": str(home.path)}
    fresh = False
    try:
        runtime = read_runtime(home)
        if verb == "start" and runtime is None:
            started = ensure_master(home)
            runtime, fresh = started.runtime, started.fresh
        elif verb in ("stop", "kill") and runtime is not None:
            stop_master(runtime, home, kill=verb == "kill")
        token = read_token(home) if runtime is not None else None
    except DetError as error:
        return {**own, "kind": "failed", "error": type(error).__name__, "message": str(error)}
    except OSError as error:
        return {**own, "kind": "failed", "error": "MasterStartError", "message": _unusable(home, error)}
    if runtime is None:
        return {**own, "kind": "none"}
    return {**own, "kind": "master", "token": token, "runtime": runtime.model_dump(mode="json"), "fresh": fresh}


def _unusable(home: Home, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"The master's home {home.path} belongs to another user. Set DET_HOME to a folder of yours."
    return f"The master's home {home.path} cannot be used: {error.strerror}."


if __name__ == "__main__":
    main(*sys.argv[1:])
