"""What the store promises of the files that the code of a trial has written."""

from __future__ import annotations

from typing import Any

import pytest
from store_parts import OWNER, Fixture

from det_native.errors import NotFoundError
from det_native.master.store import artifacts, events
from det_native.master.store.database import Database


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def file(path: str, content: str = "0", batch: int = 1, **more: Any) -> dict[str, Any]:
    return {"path": path, "sha256": content * 64, "size": 10, "batch": batch, **more}


def report(*files: dict[str, Any], removed: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "artifacts", "files": list(files), "removed": list(removed)}


def started(batch: int = 0) -> dict[str, Any]:
    return {"type": "started", "batch": batch}


def shown(fixture: Fixture) -> dict[str, tuple[str | None, int]]:
    with fixture.database.read() as connection:
        found = artifacts.of_trial(connection, fixture.trial_id)
    return {artifact.path: (artifact.sha256, artifact.batch) for artifact in found}


def test_a_file_is_shown_as_it_was_written_last(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(started(), report(file("b/log.csv"), file("a.pt", batch=3)))
    run.say(report(file("b/log.csv", "1", batch=9)))
    assert shown(fixture) == {"a.pt": ("0" * 64, 3), "b/log.csv": ("1" * 64, 9)}
    assert list(shown(fixture)) == ["a.pt", "b/log.csv"]
    run.say(report(removed=("a.pt", "never")))
    assert list(shown(fixture)) == ["b/log.csv"]


def test_the_files_of_a_trial_are_those_of_its_newest_run_that_has_begun(fixture: Fixture) -> None:
    fixture.run().say(started(), report(file("early"), file("late", batch=8)))
    new = fixture.run(start_batch=5)
    assert set(shown(fixture)) == {"early", "late"}  # it has not begun: nothing is lost if it never does
    new.say(started(5))
    assert shown(fixture) == {}
    new.say(report(file("early", batch=5)))
    assert set(shown(fixture)) == {"early"}


def test_a_file_that_was_not_kept_has_a_note_and_no_hash(fixture: Fixture) -> None:
    fixture.run().say(report({"path": "huge", "size": 10**10, "batch": 1, "note": "Not kept."}))
    with fixture.database.read() as connection:
        found = artifacts.get(connection, fixture.trial_id, "huge")
    assert (found.sha256, found.size, found.note) == (None, 10**10, "Not kept.")


def test_those_who_listen_are_told_the_paths(fixture: Fixture) -> None:
    with fixture.database.read() as connection:
        before = events.last_id(connection)
    fixture.run().say(report(*(file(f"{number:02}") for number in range(60)), removed=("gone",)))
    with fixture.database.read() as connection:
        told = events.after(connection, OWNER, before)
    assert [(event.type, event.trial_id) for event in told] == [("artifacts", fixture.trial_id)]
    assert told[0].data == {"paths": [f"{number:02}" for number in range(50)]}


def test_a_report_of_very_many_files_is_taken_and_replaced(fixture: Fixture) -> None:
    run = fixture.run()
    for content in ("0", "1"):
        run.say(report(*(file(f"{number}", content) for number in range(500))))
    assert {sha256 for sha256, _ in shown(fixture).values()} == {"1" * 64}
    assert len(shown(fixture)) == 500


def test_there_is_no_file_of_a_trial_that_is_not_there(fixture: Fixture) -> None:
    with fixture.database.read() as connection:
        with pytest.raises(NotFoundError, match="no file 'x'"):
            artifacts.get(connection, fixture.trial_id, "x")
        with pytest.raises(NotFoundError):
            artifacts.of_trial(connection, 99)
