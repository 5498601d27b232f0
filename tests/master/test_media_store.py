"""What the store promises of logged media and logged metrics, on every kind of database; and the routes to them."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest
from master_parts import Master, Worker
from store_parts import Fixture

from det_native.errors import NotFoundError
from det_native.master.store import media, metrics, series
from det_native.master.store.database import Database
from det_native.master.store.pyramid import BASE
from det_native.schema.outputs import MediaKind
from det_native.schema.states import MetricKind
from det_native.storage.blobs import BlobStore


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def medium(batch: int, name: str = "samples", content: bytes = b"x", kind: str = "image") -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    return {"batch": batch, "kind": kind, "name": name, "sha256": sha256, "size": len(content), "format": "png"}


def report(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "media", "items": list(items)}


def logged(batches: list[int], kind: str = "logged", **columns: list[float | None]) -> dict[str, Any]:
    return {"type": "metrics", "kind": kind, "batches": batches, "metrics": columns}


def shown(fixture: Fixture, **options: Any) -> list[tuple[int, str]]:
    with fixture.database.read() as connection:
        return [(each.batch, each.name) for each in media.read(connection, fixture.trial_id, **options)]


def rows(fixture: Fixture, kind: MetricKind = MetricKind.LOGGED) -> list[tuple[int, dict[str, Any]]]:
    with fixture.database.read() as connection:
        return [(row.batch, row.metrics) for row in metrics.rows(connection, fixture.trial_id, kind)]


def test_media_are_shown_in_their_order_and_by_kind_name_and_id(fixture: Fixture) -> None:
    fixture.run().say(report(medium(2), medium(2, "matrix", kind="table")), report(medium(4)))
    assert shown(fixture) == [(2, "samples"), (2, "matrix"), (4, "samples")]
    assert shown(fixture, kind=MediaKind.TABLE) == [(2, "matrix")]
    assert shown(fixture, name="samples", limit=1) == [(2, "samples")]
    with fixture.database.read() as connection:
        first = media.read(connection, fixture.trial_id)[0]
        assert media.get(connection, fixture.trial_id, first.id) == first
        with pytest.raises(NotFoundError):
            media.get(connection, fixture.trial_id, 99)
        with pytest.raises(NotFoundError):
            media.read(connection, 99)
    assert shown(fixture, after=first.id) == [(2, "matrix"), (4, "samples")]


def test_a_report_that_comes_again_changes_nothing(fixture: Fixture) -> None:
    run = fixture.run()
    run.say_raw({"seq": 1, **report(medium(1))})
    run.say_raw({"seq": 1, **report(medium(1))})
    assert shown(fixture) == [(1, "samples")]


def test_a_run_owns_the_media_after_its_beginning(fixture: Fixture) -> None:
    fixture.run().say(report(medium(2), medium(4), medium(4, "other"), medium(6)))
    new = fixture.run(start_batch=4)
    assert shown(fixture) == [(2, "samples"), (4, "samples"), (4, "other")]
    new.say(report(medium(4), medium(5)))
    assert shown(fixture) == [(2, "samples"), (4, "other"), (4, "samples"), (5, "samples")]
    assert shown(fixture, limit=2) == [(2, "samples"), (4, "other")]


@pytest.mark.parametrize("kind", MetricKind)
def test_what_comes_after_one_batch_is_one_row_whenever_it_comes(fixture: Fixture, kind: MetricKind) -> None:
    run = fixture.run()
    run.say(
        logged([1, 3], kind, f1=[0.1, 0.3]),
        logged([3, 4], kind, recall=[0.7, 0.8], f1=[0.5, None]),
        logged([4], kind, f1=[0.9]),
    )
    assert rows(fixture, kind) == [(1, {"f1": 0.1}), (3, {"f1": 0.5, "recall": 0.7}), (4, {"recall": 0.8, "f1": 0.9})]


def test_what_is_logged_overwrites_no_rows_of_the_training(fixture: Fixture) -> None:
    training = {"type": "metrics", "kind": "training", "batches": [1, 2], "metrics": {"loss": [1.0, 2.0]}}
    fixture.run().say(training, logged([1, 2], loss=[5.0, 6.0]))
    assert rows(fixture, MetricKind.TRAINING) == [(1, {"loss": 1.0}), (2, {"loss": 2.0})]
    assert rows(fixture) == [(1, {"loss": 5.0}), (2, {"loss": 6.0})]


def test_values_that_are_not_finite_stay_what_they_are_when_rows_are_merged(fixture: Fixture) -> None:
    fixture.run().say(logged([1], a=[float("inf")], b=[float("nan")]), logged([1], c=[1.0]))
    assert rows(fixture) == [(1, {"c": 1.0, "a": "Infinity", "b": "NaN"})]


def test_parts_of_a_validation_may_be_anything(fixture: Fixture) -> None:
    def validation(metrics: dict[str, list[float | None]], values: dict[str, list[Any]]) -> dict[str, Any]:
        return {"type": "metrics", "kind": "validation", "batches": [1], "metrics": metrics, "values": values}

    run = fixture.run()
    run.say(validation({"loss": [1.0], "odd": [2.0]}, {"name": ["a"], "list": [[1, 2]]}))
    run.say(validation({"second": [3.0], "name": [4.0]}, {"odd": ["text"]}))
    assert rows(fixture, MetricKind.VALIDATION) == [
        (1, {"loss": 1.0, "second": 3.0, "name": 4.0, "odd": "text", "list": [1, 2]})
    ]


def test_a_run_that_continues_keeps_what_was_logged_at_its_beginning(fixture: Fixture) -> None:
    fixture.run().say(logged([2, 4, 6], f1=[0.2, 0.4, 0.6]))
    new = fixture.run(start_batch=4)
    assert rows(fixture) == [(2, {"f1": 0.2}), (4, {"f1": 0.4})]
    new.say(logged([4, 5], lr=[0.1, 0.2]), logged([6], f1=[0.9]))
    assert rows(fixture) == [(2, {"f1": 0.2}), (4, {"f1": 0.4, "lr": 0.1}), (5, {"lr": 0.2}), (6, {"f1": 0.9})]


@pytest.mark.long
@pytest.mark.parametrize(("seed", "kind"), list(enumerate(MetricKind)))
def test_curves_are_those_of_the_rows_however_often_rows_are_merged(
    fixture: Fixture, seed: int, kind: MetricKind
) -> None:
    chance = random.Random(seed)
    run = fixture.run()
    values: dict[int, float] = {}
    for batch in range(1, BASE * 9 + 3):
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            values[batch] = chance.random()
            run.say(logged([batch], kind, f1=[values[batch]]))
    with fixture.database.read() as connection:
        read = series.read(connection, fixture.trial_id, kind, "f1", points=4)
        (whole,) = series.curves(connection, fixture.trial_id, [kind], points=10_000)
    assert min(value for value in read.minimum if value is not None) == min(values.values())
    assert max(value for value in read.maximum if value is not None) == max(values.values())
    assert (whole.batch, whole.mean, whole.last) == (list(values), list(values.values()), [*values.values()][-1])


def test_the_route_gives_a_picture_that_no_browser_runs(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    trial_id = worker.job.trial_id
    content = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    BlobStore(worker.job.blobs).put(hashlib.sha256(content).hexdigest(), content)
    worker.start()
    worker.send(report(medium(3, "drawn", content) | {"format": "svg"}, medium(3, "lost", b"not there")))
    drawn, lost = master.get(f"/trials/{trial_id}/media")
    assert (drawn["name"], drawn["batch"], drawn["kind"], drawn["number"]) == ("drawn", 3, "image", 0)
    answer = master.client.get(f"/api/v1/trials/{trial_id}/media/{drawn['id']}/content")
    assert answer.content == content
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    gone = master.client.get(f"/api/v1/trials/{trial_id}/media/{lost['id']}/content")
    assert gone.status_code == 404
    assert "'lost'" in gone.json()["error"]
    assert [each["name"] for each in master.get(f"/trials/{trial_id}/media", after=drawn["id"])] == ["lost"]
