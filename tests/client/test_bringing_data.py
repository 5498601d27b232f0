"""Bringing a folder into the store: all that is in it, or an error that names what cannot be brought."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from det_native.client.datasets import bring, files_to_bring
from det_native.client.session import Session
from det_native.errors import ArgumentError, CaptureError, RequestError
from det_native.schema import routes
from det_native.schema.datasets import MissingFiles, Received
from det_native.storage.datasets import DataStore


class StoreSession:
    """A master's store, reached without a master.

    Attributes
    ----------
    before : callable
        Called before the body of each request is read.
    """

    route = None

    def __init__(self, folder: Path) -> None:
        self.store = DataStore(folder)
        self.before: Callable[[], None] = lambda: None
        self.requests = 0

    def call(self, route: routes.Route[Any, Any], body: Any, **_: object) -> Any:
        """Answer as the routes do."""
        if route is routes.FIND_MISSING_DATA:
            return MissingFiles(files=self.store.missing(body.files))
        if route is routes.CREATE_DATA:
            return self.store.create(body)
        self.before()
        self.requests += 1

        async def stream() -> AsyncIterator[bytes]:
            for block in body:
                yield block

        return Received(size=asyncio.run(self.store.receive(stream())))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreSession:
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    return StoreSession(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file."""
    place = tmp_path / "data"
    place.mkdir()
    (place / "one").write_text("1" * 100)
    return place


def brought(session: StoreSession, folder: Path) -> dict[str, str]:
    """Bring a folder; return what is in the store."""
    bring(cast(Session, session), folder, "data", lambda what, size: None)
    return {file.path: session.store.path_of(file.sha256).read_text() for file in session.store.files_of("data")}


def test_what_links_lead_to_comes_along(session: StoreSession, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "inner" / "two").write_text("2")
    (folder / "train").symlink_to(elsewhere)
    (folder / "again").symlink_to(elsewhere / "inner")
    (folder / "three").symlink_to(folder / "one")
    assert brought(session, folder) == {
        "again/two": "2",
        "one": "1" * 100,
        "three": "1" * 100,
        "train/inner/two": "2",
    }


def test_a_link_that_leads_nowhere_or_round_is_named(folder: Path, tmp_path: Path) -> None:
    link = folder / "link"
    link.symlink_to("gone")
    with pytest.raises(ArgumentError, match=f"{link} is a link to gone, which is not there"):
        files_to_bring(folder)
    link.unlink()
    other = tmp_path / "other"
    other.mkdir()
    link.symlink_to(other)
    (other / "back").symlink_to(folder)
    with pytest.raises(ArgumentError, match=f"{link}/back is a link back to {folder}"):
        files_to_bring(folder)


def test_a_folder_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "closed").mkdir()
    scan = os.scandir

    def refusing(place: Path) -> Any:
        if Path(place).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scan(place)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(ArgumentError, match=r"/closed cannot be read \(Permission denied\)"):
        files_to_bring(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: (path.write_text("2" * 100), os.utime(path, (1, 1))), "changed while it was sent"),
        (lambda path: path.write_text("2" * 10), "became shorter meanwhile"),
        (lambda path: path.unlink(), "cannot be read any more: No such file"),
    ],
    ids=["other content", "shorter", "gone"],
)
def test_a_file_that_changes_meanwhile_is_named_at_once(
    session: StoreSession, folder: Path, change: Callable[[Path], object], says: str
) -> None:
    session.before = lambda: change(folder / "one")
    with pytest.raises(CaptureError, match=f"{folder / 'one'}: {says}"):
        brought(session, folder)
    assert session.requests == 1
    session.before = lambda: None
    (folder / "one").write_text("3" * 100)
    assert brought(session, folder) == {"one": "3" * 100}


def test_another_conflict_is_tried_again(session: StoreSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.client.datasets._CONFLICT_PAUSE", 0.0)

    def refuse() -> None:
        session.before = lambda: None
        raise RequestError(409, "The same file is being sent by another process; try again later.")

    session.before = refuse
    assert brought(session, folder) == {"one": "1" * 100}
