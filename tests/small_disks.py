"""Disks of a few megabytes, which are really full once they are: a mounted tmpfs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own.

    Parameters
    ----------
    path : Path
        Where it is mounted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    @property
    def free(self) -> int:
        """Bytes that can be written."""
        return shutil.disk_usage(self.path).free

    def fill(self, leave: int = 0) -> None:
        """Take all the room that there is, but for so many bytes."""
        with self._filler.open("ab", buffering=0) as stream:
            if leave:
                os.posix_fallocate(stream.fileno(), 0, self.free - leave)
                return
            try:
                while True:
                    stream.write(bytes(1 << 16))
            except OSError:
                pass
            while self.free:  # the last write was cut short, or not begun
                stream.write(bytes(min(self.free, 4096)))

    def empty(self) -> None:
        """Give back what was taken."""
        self._filler.unlink()


@contextmanager
def small_disk(path: Path, size: str = "4m") -> Iterator[SmallDisk]:
    """Mount one for the block; the test is skipped where that is not allowed."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


class FailingDisk:
    """A file system that turns read-only under those who have its files open, as after an error of the disk.

    Parameters
    ----------
    path : Path
        Where it is mounted.
    image : Path
        The file that it lies in.
    """

    def __init__(self, path: Path, image: Path) -> None:
        self.path = path
        self._image = image

    def mount(self) -> None:
        """Mount it; the test is skipped where that is not allowed."""
        command = ["mount", "-o", "loop", str(self._image), str(self.path)]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")

    def sync(self) -> None:
        """Have it write what was given to it."""
        subprocess.run(["sync", "--file-system", str(self.path)], check=True)

    def fail(self) -> None:
        """Have it take nothing more."""
        subprocess.run(["mount", "-o", "remount,abort", str(self.path)], check=True)

    def unmount(self) -> None:
        """Take it away, whoever has files of it open."""
        subprocess.run(["umount", "-l", str(self.path)], check=True)

    def mend(self) -> None:
        """Have it be mounted anew; from a copy, since one that somebody has open stays as it is."""
        self.unmount()
        copy = self._image.with_name("copy")
        shutil.copyfile(self._image, copy)
        self._image = copy
        self.mount()


@contextmanager
def failing_disk(folder: Path, size: str = "64M") -> Iterator[FailingDisk]:
    """Make one for the block."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed here")
    folder.mkdir()
    disk = FailingDisk(folder / "disk", folder / "image")
    disk.path.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(folder / "image"), size], check=True)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()
