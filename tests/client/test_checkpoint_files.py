"""Files of a checkpoint arrive verified, or not at all."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from det_native.client.loading import ArrivingFile
from det_native.errors import CheckpointCorruptError
from det_native.schema.manifests import CheckpointFile


def file(path: str, content: bytes) -> CheckpointFile:
    return CheckpointFile(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def receive(entry: CheckpointFile, chunks: Iterable[bytes], folder: Path) -> None:
    arriving = ArrivingFile("u1", entry, folder)
    try:
        arriving.take(chunks)
        arriving.finish()
    finally:
        arriving.forget()


def test_one_that_is_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    def cut() -> Iterator[bytes]:
        yield b"abc"
        raise ConnectionError

    arriving = ArrivingFile("u1", file("model.bin", b"abcdef"), tmp_path)
    with pytest.raises(ConnectionError):
        arriving.take(cut())
    assert arriving.offset == 3
    assert not (tmp_path / "model.bin").exists()
    arriving.take([b"def"])
    arriving.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["model.bin"]
    assert (tmp_path / "model.bin").read_bytes() == b"abcdef"


def test_a_file_arrives_in_pieces(tmp_path: Path) -> None:
    receive(file("state/model.bin", b"abcdef"), [b"ab", b"", b"cdef"], tmp_path)
    assert (tmp_path / "state/model.bin").read_bytes() == b"abcdef"


@pytest.mark.parametrize("chunks", [[b"abcdeX"], [b"abcde"], [b"abcdef", b"g"], []])
def test_damage_is_named(tmp_path: Path, chunks: list[bytes]) -> None:
    with pytest.raises(CheckpointCorruptError, match=r"u1: the content of the file .model\.bin. is not what was"):
        receive(file("model.bin", b"abcdef"), chunks, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\x", "c:x", ".", "a\0b"])
def test_paths_stay_inside(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointCorruptError, match="leaves its folder"):
        receive(file(path, b"x"), [b"x"], tmp_path / "inside")
