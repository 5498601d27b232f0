"""Wheels of a tiny package, made for a test: pip installs them without any index."""

from __future__ import annotations

import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """Write a wheel whose one module of that name has ``VERSION``; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}.py": f'VERSION = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/top_level.txt": f"{name}\n",
    }
    record = "".join(f"{file},,\n" for file in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**contents, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


def unpack_wheel(wheel: Path, into: Path) -> None:
    """Install a wheel by hand."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)
