"""Files of a checkpoint arrive verified, or not at all."""

import hashlib
from pathlib import Path

import pytest

from det_native.client.loading import receive_file
from det_native.errors import CheckpointCorruptError
from det_native.schema.manifests import CheckpointFile


def file(path: str, content: bytes) -> CheckpointFile:
    return CheckpointFile(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def test_a_file_arrives_in_pieces(tmp_path: Path) -> None:
    receive_file("u1", file("state/model.bin", b"abcdef"), [b"ab", b"", b"cdef"], tmp_path)
    assert (tmp_path / "state/model.bin").read_bytes() == b"abcdef"


@pytest.mark.parametrize("chunks", [[b"abcdeX"], [b"abcde"], [b"abcdef", b"g"], []])
def test_damage_is_named(tmp_path: Path, chunks: list[bytes]) -> None:
    with pytest.raises(CheckpointCorruptError, match=r"u1: the content of the file .model\.bin. is not what was"):
        receive_file("u1", file("model.bin", b"abcdef"), chunks, tmp_path)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\x", "c:x", ".", "a\0b"])
def test_paths_stay_inside(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointCorruptError, match="leaves its folder"):
        receive_file("u1", file(path, b"x"), [b"x"], tmp_path / "inside")
