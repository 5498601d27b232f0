"""Hashes are remembered as long as, and only as long as, the file is the same."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from det_native.capture.hash_cache import FileStat, HashCache, default_cache_path
from det_native.errors import CaptureError

LATER = 10_000_000_000


def later() -> int:
    """A clock for which everything that lies on the disk is old."""
    return time.time_ns() + LATER


def hashes(cache: HashCache, *paths: Path) -> list[str]:
    return [one.sha256 for one in cache.hash_files([(str(path), None) for path in paths])]


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "hashes.sqlite"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for index, content in enumerate([b"", b"a", os.urandom(3_000_000), *(b"%d" % n for n in range(50))]):
        paths.append(tmp_path / f"file{index}")
        paths[-1].write_bytes(content)
    return paths


def test_hashes_are_right_and_in_order(store: Path, files: list[Path]) -> None:
    assert hashes(HashCache(store), *files) == [sha(path.read_bytes()) for path in files]


def test_unchanged_files_are_not_read_again_here_or_in_the_next_process(store: Path, files: list[Path]) -> None:
    cache = HashCache(store, clock=later)
    first = hashes(cache, *files)
    assert cache.files_read == len(files)
    assert hashes(cache, *files) == first
    assert cache.files_read == len(files)
    fresh = HashCache(store, clock=later)
    assert hashes(fresh, *files) == first
    assert fresh.files_read == 0


def test_a_file_changed_within_two_seconds_of_hashing_is_not_trusted(store: Path, files: list[Path]) -> None:
    cache = HashCache(store)
    (one,) = cache.hash_files([(str(files[1]), None)])
    assert not one.settled
    hashes(cache, files[1])
    assert cache.files_read == 2
    assert HashCache(store).hash_files([(str(files[1]), None)])[0].sha256 == one.sha256


def test_every_change_is_seen(store: Path, files: list[Path]) -> None:
    cache = HashCache(store, clock=later)
    path = files[2]
    hashes(cache, path)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert hashes(cache, path) == [sha(bytes(content))]
    other = path.with_name("other")
    other.write_bytes(b"z" * len(content))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert hashes(cache, path) == [sha(b"z" * len(content))]
    assert hashes(HashCache(store, clock=later), path) == [sha(b"z" * len(content))]


def test_what_cannot_be_read_is_listed_at_once(store: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    known = FileStat(1, 1, 1, 1, 0o100644)
    wanted = [(str(tmp_path / "folder"), None), (str(tmp_path / "gone"), known), (str(tmp_path / "gone2"), None)]
    with pytest.raises(CaptureError) as caught:
        HashCache(store).hash_files([*wanted, (str(tmp_path / "pipe"), None)])
    assert {Path(problem.where).name for problem in caught.value.problems} == {"folder", "gone", "gone2", "pipe"}


@pytest.mark.parametrize("content", [b"no database at all " * 100, b"SQLite format 3\0" + os.urandom(4000)])
def test_a_damaged_cache_is_replaced(store: Path, files: list[Path], content: bytes) -> None:
    store.parent.mkdir()
    store.write_bytes(content)
    expected = [sha(path.read_bytes()) for path in files]
    assert hashes(HashCache(store, clock=later), *files) == expected
    assert hashes(HashCache(store, clock=later), *files) == expected
    fresh = HashCache(store, clock=later)
    assert hashes(fresh, *files) == expected
    assert fresh.files_read == 0


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, files: list[Path]) -> None:
    (tmp_path / "occupied").write_text("a file where a folder should be")
    cache = HashCache(tmp_path / "occupied" / "hashes.sqlite")
    assert hashes(cache, files[1]) == [sha(b"a")]


def test_a_busy_cache_is_done_without(store: Path, files: list[Path]) -> None:
    hashes(HashCache(store, clock=later), files[0])
    with sqlite3.connect(store, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        cache = HashCache(store, clock=later, busy_seconds=0.05)
        assert hashes(cache, files[1]) == [sha(b"a")]
        other.execute("ROLLBACK")
    other.close()
    assert store.exists()


def test_the_cache_is_the_users_alone(store: Path, files: list[Path]) -> None:
    hashes(HashCache(store, clock=later), *files)
    assert store.stat().st_mode & 0o777 == 0o600
    assert store.parent.stat().st_mode & 0o077 == 0


def test_it_lies_in_det_home_or_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    assert default_cache_path().is_relative_to(tmp_path)
    monkeypatch.delenv("DET_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_path().is_relative_to(tmp_path / "xdg")


PROGRAM = """
import os, sys, time
from det_native.capture.hash_cache import HashCache
from pathlib import Path
cache = HashCache(Path(sys.argv[1]), clock=lambda: time.time_ns() + 10**10)
for _ in range(5):
    print(cache.hash_files([(path, None) for path in sys.argv[2:]])[1].sha256)
    for path in sys.argv[2:]:
        os.utime(path)
"""


def test_several_kernels_share_it(store: Path, files: list[Path]) -> None:
    command = [sys.executable, "-c", PROGRAM, str(store), *map(str, files)]
    kernels = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [kernel.communicate(timeout=60)[0].split() for kernel in kernels]
    assert outputs == [[sha(b"a")] * 5] * 3
    assert [kernel.returncode for kernel in kernels] == [0, 0, 0]


def test_what_was_read_is_kept_to_be_sent_and_only_once(store: Path, files: list[Path]) -> None:
    cache = HashCache(store, clock=later)
    wanted: list[tuple[str, FileStat | None]] = [(str(path), None) for path in files]
    assert [one.content for one in cache.hash_files(wanted)] == [path.read_bytes() for path in files]
    assert [one.content for one in cache.hash_files(wanted)] == [None] * len(files)


def test_of_a_large_file_only_the_hash_is_kept(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.capture.hash_cache._KEPT_FILE", 3)
    monkeypatch.setattr("det_native.capture.hash_cache._KEPT_TOTAL", 5)
    for size in (1, 2, 3, 4):
        (tmp_path / str(size)).write_bytes(b"x" * size)
    found = HashCache(store).hash_files([(str(tmp_path / str(size)), None) for size in (1, 2, 3, 4)])
    assert [one.content for one in found] == [b"x", b"xx", None, None]
    assert [one.sha256 for one in found] == [sha(b"x" * size) for size in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [("grows", b"first" * 500_000), ("shrinks", b"")],
)
def test_a_file_that_changes_at_each_reading_is_hashed_as_it_was_read(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, expected: bytes
) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"first" * 500_000)
    read = os.readv

    def busy(descriptor: int, buffers: list[memoryview]) -> int:
        if change == "grows":
            with path.open("ab") as stream:
                stream.write(b"more")
        else:
            os.truncate(path, 0)
        return read(descriptor, buffers)

    monkeypatch.setattr(os, "readv", busy)
    (found,) = HashCache(store, clock=later).hash_files([(str(path), None)])
    assert (found.content, found.sha256, found.stat.size) == (expected, sha(expected), len(expected))
    assert found.settled is (change == "shrinks")
