"""A folder of wheels for a machine without internet: what it lacks is told with the command that brings it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from det_native._version import __version__
from det_native.errors import ArgumentError
from det_native.schema.packages import normal_name

#: For the script that looks at a machine: for what its wheels are built.
LOOK = """
echo "machine=$(uname -m)"
echo "libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)"
"""
_OLDEST_MINOR = 17
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def checked(folder: Path, requirements: Sequence[str], python: str, facts: dict[str, str]) -> list[Path]:
    """Return the wheels of a folder.

    Parameters
    ----------
    requirements : sequence of str
        What has to be among them; what these depend on is looked for there.
    python : str
        Version of Python there.
    facts : dict of str to str
        What :data:`LOOK` has printed.

    Raises
    ------
    ArgumentError
        If it lacks some; the message has the command that downloads them.
    """
    wheels = sorted(folder.glob("*.whl"))
    versions: dict[str, set[str]] = {}
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        versions.setdefault(normal_name(name), set()).add(version)
    missing = [requirement for requirement in requirements if not _has(versions, requirement)]
    if missing:
        command = " ".join([*_download(folder, python, facts), *(shlex.quote(text) for text in requirements)])
        raise ArgumentError(
            f"{folder} lacks {', '.join(missing)}. Where there is internet, run `{command}`, then this command again."
        )
    return wheels


def _has(versions: dict[str, set[str]], requirement: str) -> bool:
    match = _NAME.match(requirement)
    built = versions.get(normal_name(match[0]), set()) if match is not None else set()
    _, pinned, version = requirement.partition("==")
    if not pinned:
        return bool(built)
    return any(version in (one, one.partition("+")[0]) for one in built)


def _download(folder: Path, python: str, facts: dict[str, str]) -> list[str]:
    machine, libc = facts.get("machine", "x86_64"), facts.get("libc", "").rpartition(" ")[2]
    minor = libc.partition(".")[2]
    newest = int(minor) if minor.isdigit() else _OLDEST_MINOR
    platforms = [f"manylinux_2_{number}_{machine}" for number in range(newest, _OLDEST_MINOR - 1, -1)]
    return [
        *("pip", "download", "--dest", shlex.quote(str(folder)), "--only-binary", ":all:", "--python-version", python),
        *(word for platform in [*platforms, f"manylinux2014_{machine}"] for word in ("--platform", platform)),
    ]


_PACKAGES = ("det_native", "det_harness", "det_jupyter")
_HEAD = "Wheel-Version: 1.0\nGenerator: det_native\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
NAME = f"det_native-{__version__}-py3-none-any.whl"


def pack_wheel(path: Path) -> None:
    """Write the wheel of the packages that are imported here; the front end of JupyterLab is not in it.

    Parameters
    ----------
    path : Path
        A file called :data:`NAME`.
    """
    found = distribution("det-native")
    folder = f"det_native-{__version__}.dist-info"
    own = {
        "METADATA": found.read_text("METADATA") or "",
        "entry_points.txt": found.read_text("entry_points.txt") or "",
        "WHEEL": _HEAD,
    }
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        contents = [*_files(), *((f"{folder}/{name}", text.encode()) for name, text in own.items())]
        for name, content in contents:
            wheel.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
        wheel.writestr(f"{folder}/RECORD", "".join([*record, f"{folder}/RECORD,,\n"]))


def _files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        [root] = [Path(place) for place in spec.submodule_search_locations]
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package}/{path.relative_to(root).as_posix()}", path.read_bytes()
