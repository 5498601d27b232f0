"""Uploading over real HTTP to a small server with the master's four routes, and through the master's own folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from det_native import PROTOCOL, __version__
from det_native.capture.bundle import assemble
from det_native.capture.hash_cache import HashCache
from det_native.capture.model import Bundle, Capture, CapturedValue, SourceFile
from det_native.client.session import Session
from det_native.client.upload import forget_bundle, note_checked, upload_bundle
from det_native.errors import CaptureError, RequestError, StorageError
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile
from det_native.schema.manifests import BundleManifest, Cell, Program
from det_native.schema.processes import start_mark
from det_native.schema.sockets import url_of
from det_native.storage.blobs import BlobStore
from det_native.storage.received_packs import receive


class Master:
    """The routes that an upload uses, over a real socket; `requests` are (path, bytes of the body)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = BlobStore(str(folder))
        self.bundles: dict[str, BundleManifest] = {}
        self.requests: list[tuple[str, int]] = []
        self.blobs_lost_once: list[str] = []
        routes = [
            Route("/api/v1/blobs/missing", self._missing, methods=["POST"]),
            Route("/api/v1/blobs", self._blobs, methods=["POST"]),
            Route("/api/v1/bundles", self._bundles, methods=["POST"]),
            Route("/api/v1/bundles/{id}/created", self._created),
        ]
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = folder.with_name("m.sock")
        config = uvicorn.Config(Starlette(routes=routes), uds=str(place), log_level="warning", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="master")
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        self.url = url_of(place)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def sent_to(self, path: str) -> list[int]:
        return [size for name, size in self.requests if name == path]

    async def _missing(self, request: Request) -> JSONResponse:
        body = await request.body()
        self.requests.append(("missing", len(body)))
        hashes = (await request.json())["hashes"]
        return JSONResponse({"hashes": await run_in_threadpool(self.store.missing, hashes)})

    async def _blobs(self, request: Request) -> JSONResponse:
        size = 0

        async def counted() -> object:
            nonlocal size
            async for chunk in request.stream():
                size += len(chunk)
                yield chunk

        try:
            stored = await receive(counted(), self.store)  # type: ignore[arg-type]
        except StorageError as error:
            return JSONResponse({"error": str(error)}, 400)
        finally:
            self.requests.append(("blobs", size))
        return JSONResponse({"hashes": stored})

    async def _bundles(self, request: Request) -> JSONResponse:
        body = await request.body()
        self.requests.append(("bundles", len(body)))
        manifest = BundleManifest.model_validate_json(body)
        while self.blobs_lost_once:
            self.store.delete(self.blobs_lost_once.pop())
        missing = self.store.missing(manifest.hashes())
        if missing:
            return JSONResponse({"error": "Blobs are missing.", "missing": missing}, 409)
        self.bundles[manifest.id] = manifest
        return JSONResponse({"id": manifest.id, "checked": False})

    async def _created(self, request: Request) -> JSONResponse:
        self.requests.append(("created", 0))
        bundle_id = request.path_params["id"]
        if bundle_id not in self.bundles:
            return JSONResponse({"error": "No such bundle."}, 404)
        return JSONResponse({"id": bundle_id, "checked": True})


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    master = Master(tmp_path / "master" / "blobs")
    yield master
    master.close()


@pytest.fixture
def session(master: Master) -> Iterator[Session]:
    session = Session(master.url, "token")
    yield session
    session.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    for index in range(30):
        (root / "pkg" / f"m{index}.py").write_bytes(b"x = %d\n" % index * 500)
    (root / "noise.bin").write_bytes(os.urandom(1_500_000))
    (root / "table.csv").write_text("0.25,0.5\n" * 200_000)
    return root


def build(project: Path | None, *, cell: str = "fit()", values: dict[str, bytes] | None = None) -> Bundle:
    program = Program(kind="cells", framework="keras", cells=(Cell(number=1, cell_id="a", source=cell),))
    found = [CapturedValue(name, content, 0, "an array") for name, content in (values or {}).items()]
    cache = HashCache(project.parent / "hashes.sqlite" if project else None, clock=lambda: time.time_ns() + 10**10)
    return assemble(Capture(program=program, values=found), context_dir=project, protocol=PROTOCOL, cache=cache)


def status(bundle: Bundle) -> dict[str, str]:
    return {row.what: row.status for row in bundle.report}


def test_first_time_everything_is_sent_compressed_in_one_request(
    master: Master, session: Session, project: Path
) -> None:
    bundle = build(project, values={"x": b"numbers"})
    created = upload_bundle(session, bundle)
    assert created.id == bundle.manifest.id
    assert master.bundles[created.id] == bundle.manifest
    assert [path for path, _ in master.requests] == ["created", "missing", "blobs", "bundles"]
    assert 1_500_000 < master.sent_to("blobs")[0] < 1_600_000
    for sha256, content in bundle.contents.items():
        assert master.store.read(sha256) == (content if isinstance(content, bytes) else content.read_bytes())
    assert set(status(bundle).values()) == {"new"}


def test_an_unchanged_submit_costs_no_request(master: Master, session: Session, project: Path) -> None:
    first = upload_bundle(session, build(project))
    assert not first.checked
    note_checked(session, first.id)
    first = first.model_copy(update={"checked": True})
    master.requests.clear()
    again = build(project)
    assert upload_bundle(session, again) == first
    assert master.requests == []
    assert set(status(again).values()) == {"already there"}
    forget_bundle(session, first.id)
    del master.bundles[first.id]
    upload_bundle(session, build(project))
    assert [path for path, _ in master.requests] == ["created", "bundles"]
    assert first.id in master.bundles


def test_after_a_change_only_the_change_is_sent(master: Master, session: Session, project: Path) -> None:
    upload_bundle(session, build(project))
    master.requests.clear()
    (project / "pkg" / "m3.py").write_text("changed = True\n")
    bundle = build(project, values={"x": b"numbers"})
    upload_bundle(session, bundle)
    assert master.sent_to("missing")[0] < 300
    assert master.sent_to("blobs")[0] < 300
    expected = {"1 cell": "new", "x": "new", "pkg/": "new", "noise.bin": "already there", "table.csv": "already there"}
    assert status(bundle) == expected


def test_another_kernel_sends_no_blob(master: Master, session: Session, project: Path) -> None:
    upload_bundle(session, build(project))
    master.requests.clear()
    upload_bundle(Session(master.url, "token"), build(project, cell="fit(epochs=2)"))
    assert [path for path, _ in master.requests] == ["created", "missing", "bundles"]


def test_a_bundle_of_cells_alone_asks_for_no_blob(master: Master, session: Session) -> None:
    upload_bundle(session, build(None))
    assert [path for path, _ in master.requests] == ["created", "bundles"]


def test_blobs_lost_at_the_master_are_sent_again(master: Master, session: Session, project: Path) -> None:
    first = build(project)
    upload_bundle(session, first)
    master.requests.clear()
    lost = [file.sha256 for file in first.manifest.files if file.path in ("pkg/m1.py", "noise.bin")]
    master.blobs_lost_once += lost
    second = build(project, cell="fit(epochs=2)")
    upload_bundle(session, second)
    assert [path for path, _ in master.requests] == ["created", "bundles", "missing", "blobs", "bundles"]
    assert all(sha256 in master.store for sha256 in lost)
    assert status(second)["noise.bin"] == "new"
    assert status(second)["table.csv"] == "already there"


def test_a_refusal_for_another_reason_is_passed_on(master: Master, session: Session, project: Path) -> None:
    master.blobs_lost_once.append("not a hash")
    with pytest.raises(RequestError) as caught:
        upload_bundle(session, build(project))
    assert caught.value.status == 500


def sent_file(master: Master, bundle_id: str, path: str) -> bytes:
    (sha256,) = [file.sha256 for file in master.bundles[bundle_id].files if file.path == path]
    return master.store.read(sha256)


@pytest.mark.parametrize("own", [False, True], ids=["by HTTP", "through its folder"])
@pytest.mark.parametrize("change", ["grows", "written anew"])
@pytest.mark.parametrize("read", ["for this bundle", "for an earlier one"])
def test_a_file_is_sent_as_it_was_when_it_was_read(
    master: Master,
    session: Session,
    project: Path,
    request: pytest.FixtureRequest,
    own: bool,
    change: str,
    read: str,
) -> None:
    if own:
        request.getfixturevalue("own_home")
    log = project / "log.txt"
    log.write_text("first line\n")
    (project / "same.txt").write_text("first line\n")
    bundle = build(project)
    if read == "for an earlier one":  # then only its hash is known, and the file is read when it is sent
        contents = {
            file.sha256: project / file.path for file in bundle.manifest.files if not file.path.startswith("same")
        }
        bundle = replace(bundle, contents=bundle.contents | contents)
    with log.open("a" if change == "grows" else "w") as stream:
        stream.write("second line\n")
    created = upload_bundle(session, bundle)
    kept = read == "for this bundle" or change == "grows"
    assert sent_file(master, created.id, "log.txt") == (b"first line\n" if kept else b"second line\n")
    assert sent_file(master, created.id, "same.txt") == b"first line\n"
    assert (created.id == bundle.manifest.id) is kept
    assert master.bundles[created.id].id == created.id
    assert status(bundle)["log.txt"] == "new"


def test_what_changes_at_each_attempt_is_sent_in_the_end(master: Master, project: Path) -> None:
    """Three files that are read when they are sent."""
    bundle = build(project)
    modules = [f"pkg/m{number}.py" for number in range(3)]
    contents = {file.sha256: project / file.path for file in bundle.manifest.files if file.path in modules}
    bundle = replace(bundle, contents=bundle.contents | contents)
    attempts = []

    class Busy(Session):
        def call(self, route, body=None, /, **more):  # type: ignore[no-untyped-def, override]
            if route is routes.PUT_BLOBS:
                attempts.append(b"changed for the %d. time\n" % len(attempts))
                for module in modules:
                    (project / module).write_bytes(attempts[-1])
            return super().call(route, body, **more)

    created = upload_bundle(Busy(master.url, "token"), bundle)
    assert len(attempts) > 1
    assert {sent_file(master, created.id, path) for path in modules} <= set(attempts)


def test_a_file_that_vanished_is_named(session: Session, project: Path) -> None:
    bundle = build(project)
    (table,) = [file.sha256 for file in bundle.manifest.files if file.path == "table.csv"]
    bundle.contents[table] = project / "table.csv"  # read when it is sent
    (project / "table.csv").unlink()
    with pytest.raises(CaptureError, match=r"table\.csv"):
        upload_bundle(session, bundle)


class Interrupted(Session):
    """Ctrl-C in the middle of the body."""

    def call(self, route, body=None, /, **more):  # type: ignore[no-untyped-def, override]
        def some() -> Iterator[bytes]:
            for number, chunk in enumerate(body):
                if number == 3:
                    raise KeyboardInterrupt
                yield chunk

        return super().call(route, some() if route is routes.PUT_BLOBS else body, **more)


def test_an_interrupted_upload_leaves_no_bundle_and_is_taken_up_again(
    master: Master, session: Session, project: Path, tmp_path: Path
) -> None:
    for index in range(8):
        (project / f"more{index}.bin").write_bytes(os.urandom(1_000_000))
    bundle = build(project)
    with pytest.raises(KeyboardInterrupt):
        upload_bundle(Interrupted(master.url, "token"), bundle)
    assert master.bundles == {}
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("det-pack")] == []
    upload_bundle(session, bundle)
    assert list(master.bundles) == [bundle.manifest.id]
    deadline = time.monotonic() + 10
    while list((master.folder / ".incoming").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert master.sent_to("blobs")[-1] < bundle.manifest.files[0].size + 11_000_000


@pytest.fixture
def own_home(master: Master, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Make the server the master that runs in the user's home."""
    home = Home(master.folder.parent)
    monkeypatch.setenv("DET_HOME", str(home.path))
    home.path.mkdir(exist_ok=True)
    mark = start_mark(os.getpid()) or ""
    runtime = RuntimeFile(
        url=master.url, pid=os.getpid(), start=mark, version=__version__, protocol=PROTOCOL, python="", started=""
    )
    home.runtime.write_text(runtime.model_dump_json())
    return home


def test_to_the_own_master_blobs_go_through_its_folder(
    master: Master, session: Session, project: Path, own_home: Home
) -> None:
    bundle = build(project, values={"x": b"numbers"})
    upload_bundle(session, bundle)
    assert [path for path, _ in master.requests] == ["created", "bundles"]
    assert list(master.bundles) == [bundle.manifest.id]
    for sha256, content in bundle.contents.items():
        assert master.store.read(sha256) == (content if isinstance(content, bytes) else content.read_bytes())
    assert set(status(bundle).values()) == {"new"}


def test_a_folder_that_is_not_the_masters_is_found_out(
    master: Master, session: Session, project: Path, own_home: Home, tmp_path: Path
) -> None:
    master.store = BlobStore(str(tmp_path / "elsewhere"))
    bundle = build(project)
    upload_bundle(session, bundle)
    assert list(master.bundles) == [bundle.manifest.id]
    assert master.store.missing(bundle.manifest.hashes()) == []


def test_a_folder_that_cannot_be_written_is_done_without(
    master: Master, session: Session, project: Path, own_home: Home, tmp_path: Path
) -> None:
    master.store = BlobStore(str(tmp_path / "elsewhere"))
    (own_home.path / "blobs").write_text("in the way")
    upload_bundle(session, build(project))
    assert len(master.bundles) == 1


def test_a_file_named_by_a_cell_is_sent_with_its_row(master: Master, session: Session, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    program = Program(kind="script", framework="torch", command=("train.py",))
    source = SourceFile(tmp_path / "data.csv", "data.csv", "read in cell [2]", "[2]")
    bundle = assemble(Capture(program=program, files=[source]), context_dir=None, protocol=PROTOCOL)
    upload_bundle(session, bundle)
    assert [path for path, _ in master.requests] == ["created", "missing", "blobs", "bundles"]
    assert master.store.read(bundle.manifest.files[0].sha256) == b"1,2"
