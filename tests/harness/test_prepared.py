"""Environments of trials with packages of their own: what fails or is killed leaves nothing, a full disk is told."""

from __future__ import annotations

import fcntl
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from det_harness.worker import prepared
from small_disks import small_disk

from det_native.errors import WorkerEnvironmentError


def make_quickly(folder: Path, python: Path, packages: Sequence[str]) -> None:
    """Make what stands for an environment; one of the package "half" fails on the way."""
    (folder / "bin").mkdir(parents=True)
    python.touch()
    if "half" in packages:
        raise WorkerEnvironmentError("It cannot be made.", [])


def test_what_was_left_half_made_goes_and_what_is_being_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_make", make_quickly)
    made = prepared.environment_with(["one"], tmp_path)
    with pytest.raises(WorkerEnvironmentError):
        prepared.environment_with(["half"], tmp_path)
    killed, making = tmp_path / "killed", tmp_path / "making"
    for folder in (killed, making):
        folder.mkdir()
        folder.with_suffix(".lock").touch()
    with making.with_suffix(".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        other = prepared.environment_with(["two"], tmp_path)
    found = {path for path in tmp_path.iterdir() if path.is_dir()}
    assert found == {made.parents[1], other.parents[1], making}


def test_the_versions_that_pip_names_are_told_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wheels = tmp_path / "wheels"
    for number in range(40):
        wheel(wheels, 10, version=f"1.{number}")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(WorkerEnvironmentError) as caught:
        prepared.environment_with(["large-pack==9.9"], tmp_path / "environments")
    short = "(from 40 versions, the last being 1.37, 1.38, 1.39)"
    assert short in str(caught.value)
    printed = capfd.readouterr().out
    assert short in printed
    assert "1.20" not in printed + str(caught.value)


def test_a_full_disk_is_told_and_gets_its_room_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "wheels", 20_000_000)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with small_disk(tmp_path / "disk", size="8m") as disk:
        free = disk.free
        with pytest.raises(WorkerEnvironmentError, match=r"the disk is full, at .*Make room there") as caught:
            prepared.environment_with(["large-pack"], disk.path)
        assert "\n" not in str(caught.value)
        assert free - disk.free < 100_000


def wheel(folder: Path, size: int, version: str = "1.0") -> None:
    """Make the wheel of a package with a large file."""
    folder.mkdir(exist_ok=True)
    own = f"large_pack-{version}.dist-info"
    with zipfile.ZipFile(folder / f"large_pack-{version}-py3-none-any.whl", "w") as file:
        file.writestr("large_pack/weights.bin", random.Random(0).randbytes(size))
        file.writestr(f"{own}/METADATA", f"Metadata-Version: 2.1\nName: large-pack\nVersion: {version}\n")
        file.writestr(f"{own}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{own}/RECORD", "")
