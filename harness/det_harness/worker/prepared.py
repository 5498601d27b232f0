"""A worker with packages of its own: makes the environment that has them, once for all who ask, and goes on in there.

The environment has what this interpreter has, and the packages before it. It is known by what both are, so that another
trial with the same list finds it made. What is done is told in the output of the run, and so is why it fails.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from det_native.errors import WorkerEnvironmentError
from det_native.schema.packages import distributions_in
from det_native.schema.reports import ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason
from det_native.storage.room import lacks_room

_EXIT_FAILED = 3
_MADE = "made.json"
# One that nobody has used for so long is removed when the next one is made.
_KEPT_SECONDS = 30 * 86_400.0
_PIP = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off")
_SAID = "ERROR: "
_VERSIONS = re.compile(r"\(from versions: ([^()]*)\)")
_VERSIONS_SHOWN = 5
_ANY_VERSIONS = re.compile(r" \(from (?:versions: |\d+ versions, )[^()]*\)")


def main() -> None:
    """Run as ``python -m det_harness.worker.prepared --environments FOLDER --run FOLDER PACKAGE... -- ARGUMENT...``."""
    options = _options()
    run_folder: Path = options.run
    output = os.open(run_folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    try:
        python = environment_with(options.packages, options.environments)
    except (WorkerEnvironmentError, OSError) as error:
        print(_ANY_VERSIONS.sub("", str(error)), flush=True)  # pip's own line, above, names them
        _report(run_folder, error)
        sys.exit(_EXIT_FAILED)
    os.set_inheritable(options.status_fd, True)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(python, [str(python), "-P", "-m", "det_harness.worker.standby", *options.arguments])


def environment_with(packages: Sequence[str], root: Path) -> Path:
    """Return the interpreter of the environment that has these packages, made if need be.

    Raises
    ------
    WorkerEnvironmentError
        If it cannot be made, with the reason.
    """
    folder = root / key_of(packages)
    python = folder / "bin" / "python"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _held(folder.with_suffix(".lock")):
        if not (folder / _MADE).exists():
            _remove_unused(root)
            shutil.rmtree(folder, ignore_errors=True)
            begun = time.monotonic()
            print(f"Makes an environment with {', '.join(packages)}, once for all trials that want it:", flush=True)
            try:
                _make(folder, python, packages)
                (folder / _MADE).write_text(json.dumps({"packages": list(packages), "base": sys.prefix}))
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)  # a half is of no use, and may be what has filled the disk
                if not lacks_room(error):
                    raise
                raise WorkerEnvironmentError(
                    f"The environment with {', '.join(packages)} cannot be made on the worker: the disk is full, at "
                    f"{root} or where temporary files lie. Make room there, then submit again.",
                    [],
                ) from error
            print(f"The environment is made, in {time.monotonic() - begun:.1f} s.", flush=True)
        os.utime(folder / _MADE)
    return python


def key_of(packages: Sequence[str]) -> str:
    """Return by what an environment is known: this interpreter with all it has, and the list."""
    base = [(name, version) for folder in sys.path for name, version, _ in distributions_in(folder or ".")]
    text = json.dumps([sys.version, sys.prefix, base, sorted(packages)])
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _make(folder: Path, python: Path, packages: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], packages)
    [site_packages] = folder.glob("lib/python3*/site-packages")
    standard = {os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload")}
    places = [place for place in sys.path if place and place not in standard and os.path.isdir(place)]
    lines = [f"import site; site.addsitedir({place!r})\n" for place in places]
    (site_packages / "det_native_base.pth").write_text("".join(lines))
    if subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode != 0:
        _run([str(python), "-m", "ensurepip"], packages)
    _run([str(python), "-m", "pip", "install", *_PIP, *packages], packages)


def _run(command: Sequence[str], packages: Sequence[str]) -> None:
    """Run a step; what it says goes to the output as it comes."""
    said: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for text in process.stdout:
            line = _without_versions(text)
            print(line, end="", flush=True)
            said.append(line.strip())
    if process.returncode == 0:
        return
    if any(lacks_room(OSError(line)) for line in said):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    errors = [line.removeprefix(_SAID) for line in said if line.startswith(_SAID)]
    reason = (errors or [line for line in said if line] or [f"exit code {process.returncode}"])[0 if errors else -1]
    raise WorkerEnvironmentError(
        f"The environment with {', '.join(packages)} cannot be made on the worker: {reason.rstrip('.')}. Correct "
        "environment.packages, or mend pip's index there.",
        [],
    )


def _without_versions(line: str) -> str:
    """Return a line of pip's without the hundreds of versions that it names where it finds none that fits."""

    def shorten(match: re.Match[str]) -> str:
        versions = match[1].split(", ")
        few = len(versions) <= _VERSIONS_SHOWN
        return match[0] if few else f"(from {len(versions)} versions, the last being {', '.join(versions[-3:])})"

    return _VERSIONS.sub(shorten, line)


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Waits for another trial, which makes the environment.", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(root: Path) -> None:
    """Remove environments that nobody has used for a month, and those that nobody goes on making."""
    for lock in root.glob("*.lock"):
        folder = lock.with_suffix("")
        with lock.open("a") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.is_dir() and not (folder / _MADE).exists():  # its worker was killed
                shutil.rmtree(folder, ignore_errors=True)
    for noted in root.glob(f"*/{_MADE}"):
        if time.time() - noted.stat().st_mtime > _KEPT_SECONDS:
            noted.unlink()  # first: without it, it counts as none
            shutil.rmtree(noted.parent, ignore_errors=True)


def _report(run_folder: Path, error: Exception) -> None:
    info = UserErrorInfo(type=WorkerEnvironmentError.__name__, message=str(error), traceback="")
    report = ExitReport(seq=1, reason=ExitReason.HARNESS_ERROR, batch=0, error=info)
    temporary = run_folder / ".exit.json"
    temporary.write_text(report.model_dump_json())
    temporary.replace(run_folder / "exit.json")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="det_harness.worker.prepared", description=__doc__)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("packages", nargs="+")
    own, after = sys.argv[1:], []
    if "--" in own:
        own, after = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    options.arguments = after
    options.status_fd = int(after[after.index("--status-fd") + 1])
    return options


if __name__ == "__main__":
    main()
