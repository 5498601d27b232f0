"""The disk of a master is full when a bundle is sent: one sentence says so, and nothing half of it is there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from master_parts import Master, running_master
from small_disks import SmallDisk, small_disk

from det_native import PROTOCOL, __version__
from det_native.capture.bundle import assemble
from det_native.capture.hash_cache import HashCache
from det_native.capture.model import Bundle, Capture
from det_native.client.session import Session
from det_native.client.upload import upload_bundle
from det_native.errors import RequestError
from det_native.schema.home import Home, RuntimeFile
from det_native.schema.manifests import Cell, Program
from det_native.schema.processes import start_mark
from det_native.storage.blobs import BlobStore

pytestmark = pytest.mark.slow


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "48m") as mounted:
        yield mounted


@pytest.fixture
def master(disk: SmallDisk) -> Iterator[Master]:
    with running_master(disk.path / "home") as running:
        yield running


def bundle_of(project: Path) -> Bundle:
    program = Program(kind="cells", framework="torch", cells=(Cell(number=1, cell_id="a", source="fit()"),))
    return assemble(Capture(program=program), context_dir=project, protocol=PROTOCOL, cache=HashCache(None))


@pytest.mark.parametrize("way", ["by HTTP", "through its folder"])
def test_it_is_said_and_the_next_submit_takes_it_up(
    way: str, master: Master, disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(master.client.base_url).rstrip("/")
    home = disk.path / "home"
    if way == "through its folder":
        mark = start_mark(os.getpid()) or ""
        running = RuntimeFile(
            url=url, pid=os.getpid(), start=mark, version=__version__, protocol=PROTOCOL, python="", started=""
        )
        Home(home).runtime.write_text(running.model_dump_json())
        monkeypatch.setenv("DET_HOME", str(home))
    project = tmp_path / "project"
    project.mkdir()
    for number in range(4):
        (project / f"noise{number}.bin").write_bytes(os.urandom(2_000_000))
    bundle = bundle_of(project)
    session = Session(url, master.token)
    disk.fill(leave=5_000_000)  # some of the files have room
    with pytest.raises(RequestError) as refused:
        upload_bundle(session, bundle)
    assert refused.value.status == 507
    assert f"The disk of the master is full, at {home}." in str(refused.value)
    assert "free some space there and try again" in str(refused.value)
    assert master.client.get(f"/api/v1/bundles/{bundle.manifest.id}").status_code == 404
    store = BlobStore(str(home / "blobs"))
    for path in (home / "blobs").glob("??/*"):
        store.read(path.name.partition(".")[0])  # what has arrived is whole
    deadline = time.monotonic() + 60
    while any((home / "blobs" / ".incoming").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    disk.empty()
    created = upload_bundle(session, bundle_of(project))
    assert store.missing(bundle.manifest.hashes()) == []
    assert created.id == bundle.manifest.id
    session.close()
