"""A folder with a checkpoint's files is filled once; what is in it is verified, and never written over."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from det_native.client import checkpoint_folder
from det_native.errors import CheckpointError
from det_native.schema.manifests import CheckpointFile, CheckpointManifest

CONTENT = {"model.bin": b"weights", "state/rng.npz": b"numbers"}
UUID = "11111111-aaaa"


def manifest(uuid: str = UUID) -> CheckpointManifest:
    files = [
        CheckpointFile(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        for path, content in CONTENT.items()
    ]
    return CheckpointManifest(
        uuid=uuid,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=1,
        experiment_id=1,
        trial_id=1,
        run_id=None,
        bundle_id=None,
        hparams={},
        created="",
        files=files,
    )


class Source:
    """Counts how often files are fetched."""

    def __init__(self) -> None:
        self.fetched = 0

    def __call__(self, folder: Path) -> None:
        assert not any(folder.iterdir())
        self.fetched += 1
        for path, content in CONTENT.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        (folder / "manifest.json").write_text(json.dumps({"uuid": UUID}))


def content_of(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in CONTENT}


def test_a_folder_that_it_filled_is_verified_and_not_fetched_again(tmp_path: Path) -> None:
    source = Source()
    for _ in range(2):
        checkpoint_folder.fill(tmp_path, manifest(), source)
    assert source.fetched == 1
    (tmp_path / "notes.txt").write_text("mine, beside it")
    checkpoint_folder.fill(tmp_path, manifest(), source)
    assert source.fetched == 1
    assert content_of(tmp_path) == CONTENT


@pytest.mark.parametrize("lacking", ["model.bin", "state/rng.npz", "manifest.json"])
def test_what_is_not_there_any_more_or_did_not_come_is_fetched(tmp_path: Path, lacking: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    checkpoint_folder.fill(folder, manifest(), Source())
    (folder / lacking).unlink()
    checkpoint_folder.fill(folder, manifest(), Source())
    assert content_of(folder) == CONTENT
    assert (folder / "manifest.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_other_content_is_refused_and_stays(tmp_path: Path) -> None:
    source = Source()
    (tmp_path / "best.keras").write_text("mine")
    with pytest.raises(CheckpointError, match=r"is not empty: best\.keras is not of this checkpoint\. Give download"):
        checkpoint_folder.fill(tmp_path, manifest(), source)
    (tmp_path / "best.keras").unlink()
    checkpoint_folder.fill(tmp_path, manifest(), source)
    with pytest.raises(CheckpointError, match=f"has the files of checkpoint {UUID}"):
        checkpoint_folder.fill(tmp_path, manifest("2222"), source)
    (tmp_path / "model.bin").write_bytes(b"changed")
    with pytest.raises(CheckpointError, match=r"model\.bin was changed after it was downloaded\. Move it away"):
        checkpoint_folder.fill(tmp_path, manifest(), source)
    assert (tmp_path / "model.bin").read_bytes() == b"changed"
    assert source.fetched == 1


def test_the_cache_mends_what_was_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    source = Source()
    files = checkpoint_folder.cached(manifest(), source)
    assert checkpoint_folder.cached(manifest(), source) == files
    assert source.fetched == 1
    (files / "model.bin").write_bytes(b"changed")
    assert content_of(checkpoint_folder.cached(manifest(), source)) == CONTENT
    assert source.fetched == 2
    assert [path.name for path in files.parent.iterdir()] == ["files"]
