"""Local runs as the server extension tells them: a real process trains, no master runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_parts import PATIENCE, Events, Jupyter
from local_experiments import write_experiment
from local_program import BATCHES, WAITS_AT, Running, local_training

from det_native.local.artifacts import WrittenHere, keep_written
from det_native.local.log import LogWriter
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.downloads import attachment
from det_native.schema.home import Home, read_runtime
from det_native.schema.outputs import MediaKind
from det_native.storage.blobs import BlobStore

pytestmark = pytest.mark.slow

SAMPLES = [rest.SystemSample(time=5, metrics={"cpu_percent": 10.0}), rest.SystemSample(time=6, metrics={})]


async def body(jupyter: Jupyter, path: str, **query: Any) -> Any:
    """Return what a path answers."""
    answer = await jupyter.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_run_that_goes_on_is_told_and_stopped(jupyter: Jupyter, tmp_path: Path) -> None:
    with local_training(tmp_path) as run:
        [listed] = await body(jupyter, "local/experiments")
        assert (listed["id"], listed["name"], listed["state"]) == ("local-1", "a line", "ACTIVE")
        assert listed["local"] == {"running": True, "in_kernel": False, "kernel_id": None, "can_stop": True}
        assert listed["progress"] == WAITS_AT / BATCHES
        detail = await body(jupyter, "local/experiments/1")
        assert detail["report"] == []
        [trial] = await body(jupyter, "local/experiments/1/trials")
        assert (trial["experiment_id"], trial["state"], trial["batches"]) == ("local-1", "RUNNING", WAITS_AT)
        assert trial == await body(jupyter, "local/experiments/1/trials/1")
        expected = {("training", "loss"): WAITS_AT, ("validation", "error"): 2}
        async with asyncio.timeout(PATIENCE):  # rows of a kind are written after those of the other
            while True:
                curves = await body(jupyter, "local/experiments/1/curves")
                if {(curve["kind"], curve["name"]): len(curve["batch"]) for curve in curves} == expected:
                    break
        [curve] = await body(jupyter, "local/experiments/1/trials/1/curves", kind="training", buckets=5)
        assert len(curve["mean"]) == 5
        log = await body(jupyter, "local/experiments/1/trials/1/logs", last=50)
        assert [line["text"] for line in log] == ["at batch 0", "at batch 10", "waiting"]
        LocalStore.find("local-1").write_samples(1, SAMPLES)
        measured = await body(jupyter, "local/experiments/1/trials/1/system")
        assert [(one["time"], one["metrics"]) for one in measured] == [(5.0, {"cpu_percent": 10.0}), (6.0, {})]
        [merged] = await body(jupyter, "local/experiments/1/trials/1/system", points=1)
        assert merged == {"time": 6.0, "rank": 0, "metrics": {"cpu_percent": 10.0}}
        await stopped_by_its_button(jupyter, run)


async def stopped_by_its_button(jupyter: Jupyter, run: Running) -> None:
    """Stop a run as the front end does, and have the stream of events tell its end."""
    for action, word in (("pause", "paused"), ("resume", "resumed"), ("activate", "resumed")):
        refused = await jupyter.post(f"local/experiments/1/{action}")
        assert refused.status_code == 409
        assert f"local-1 is a local run, which cannot be {word}" in refused.json()["error"]
    async with local_events(jupyter, experiment_id="local-1") as events:
        stopped = await jupyter.post("local/experiments/1/stop")
        assert stopped.status_code == 200, stopped.text
        await asyncio.to_thread(run.go_on)
        told = await events_until_the_end(events)
    assert told[-1]["data"]["state"] == "CANCELED"
    error = told[-1]["data"]["error"]
    assert error["type"] == "Stopped"
    assert error["message"].startswith("interrupted (by Ctrl-C, Stop, or a restart of its kernel) after batch 21 of 40")
    assert {event["experiment_id"] for event in told} == {"local-1"}
    [last] = [event for event in told if event["type"] == "metrics" and event["data"]["kind"] == "training"][-1:]
    assert last["data"]["batch"] == WAITS_AT + 1
    found = await body(jupyter, "local/experiments/1/checkpoints")
    assert found[-1]["batch"] == WAITS_AT + 1
    await its_files_and_no_others(jupyter, found[-1], run.folder)
    assert read_runtime(Home.default()) is None


async def its_files_and_no_others(jupyter: Jupyter, checkpoint: dict[str, Any], folder: Path) -> None:
    """Read the files of a checkpoint, and try to read what it does not list."""
    path = f"local/experiments/1/checkpoints/{checkpoint['uuid']}/files"
    names = [file["path"] for file in checkpoint["manifest"]["files"]]
    for name in names:
        answer = await jupyter.get(f"{path}/{name}")
        lies = folder / "trials/1/files" / checkpoint["uuid"] / name
        assert answer.content == lies.read_bytes()
        assert answer.headers["Content-Disposition"] == attachment(name)
    for name in ("manifest.json", "../../trial.json", "%2e%2e/%2e%2e/trial.json", "/etc/passwd", "x%00y"):
        assert (await jupyter.get(f"{path}/{name}")).status_code == 404
    lies.unlink()
    lies.symlink_to(folder / "experiment.json")
    assert (await jupyter.get(f"{path}/{name}")).status_code == 404


async def test_a_run_whose_process_was_killed_is_stopped_and_says_why(jupyter: Jupyter, tmp_path: Path) -> None:
    with local_training(tmp_path) as run:
        async with local_events(jupyter) as events:
            await asyncio.to_thread(run.kill)
            told = await events_until_the_end(events)
    [listed] = await body(jupyter, "local/experiments")
    assert listed == told[-1]["data"]
    assert listed["state"] == "CANCELED"
    reason = f"its process ({run.process.pid}) ended in the middle of it, after batch {WAITS_AT} of {BATCHES}."
    assert listed["error"]["message"] == reason
    assert listed["ended"] is not None
    [trial] = await body(jupyter, "local/experiments/1/trials")
    assert (trial["state"], trial["batches"]) == ("CANCELED", WAITS_AT)
    assert (await jupyter.post("local/experiments/1/kill")).status_code == 200  # there is nothing left to do


async def test_what_a_run_has_logged_and_written_is_told(jupyter: Jupyter) -> None:
    write_experiment()
    store = LocalStore.find("local-1")
    picture = b"\x89PNG\r\n\x1a\n"
    sha256 = hashlib.sha256(picture).hexdigest()
    BlobStore(str(store.folder.parent / "blobs")).put(sha256, picture)
    facts = {"trial_id": 1, "batch": 4, "name": "samples", "sha256": sha256, "size": len(picture), "created": ""}
    media = [
        rest.Medium(id=1, kind=MediaKind.IMAGE, format="png", **facts),
        rest.Medium(id=2, kind=MediaKind.IMAGE, format="html", **facts),
    ]
    store.write_media(1, media)
    path = "local/experiments/1/trials/1"
    assert [each["id"] for each in await body(jupyter, f"{path}/media")] == [1, 2]
    assert [each["id"] for each in await body(jupyter, f"{path}/media", after=1)] == [2]
    assert [each["id"] for each in await body(jupyter, f"{path}/media", limit=1)] == [1]
    answer = await jupyter.get(f"{path}/media/1/content")
    assert (answer.content, answer.headers["Content-Type"]) == (picture, "image/png")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    odd = await jupyter.get(f"{path}/media/2/content")
    assert odd.headers["Content-Type"] == "application/octet-stream"
    assert (await jupyter.get(f"{path}/media/3/content")).status_code == 404
    assert await body(jupyter, f"{path}/artifacts") == []
    file = rest.Artifact(trial_id=1, path="log.csv", size=3, batch=4, created="")
    keep_written(store.trial_folder(1), [WrittenHere.at(file, store.folder / "log.csv")])
    [found] = await body(jupyter, f"{path}/artifacts")
    assert (found["path"], found["note"]) == ("log.csv", f"It is {store.folder / 'log.csv'}.")


async def test_logs_are_paged(jupyter: Jupyter) -> None:
    experiment = write_experiment()
    folder = LocalStore.find(str(experiment.id)).trial_folder(1)
    with closing(LogWriter(folder, 1, "run")) as log:
        for number in range(10):
            log.write(f"line {number}", "stdout")
    path = "local/experiments/1/trials/1/logs"
    newest = await body(jupyter, path, last=3)
    assert [line["text"] for line in newest] == ["line 7", "line 8", "line 9"]
    earlier = await body(jupyter, path, last=2, before=newest[0]["id"])
    assert [line["text"] for line in earlier] == ["line 5", "line 6"]
    assert [line["text"] for line in await body(jupyter, path, after=earlier[-1]["id"], limit=2)] == [
        "line 7",
        "line 8",
    ]
    rows = await body(jupyter, "local/experiments/1/trials/1/metrics", kind="training", after_batch=2, limit=1)
    assert rows == [{"batch": 3, "metrics": {"loss": 2.0 / 3}}]


async def test_what_is_not_there_or_not_meant_is_refused(jupyter: Jupyter, tmp_path: Path) -> None:
    write_experiment()
    (tmp_path / "experiment.json").write_text("secret")
    for path in (
        "2",
        "1/trials/2",
        "1/trials/2/logs",
        "1/bundle.json",
        "..",
        "%2e%2e",
        "1%2f..",
        "٣",
        "1/trials/%2e%2e",
    ):
        answer = await jupyter.get(f"local/experiments/{path}")
        assert answer.status_code == 404, path
        assert "secret" not in answer.text
    for path, query in (
        ("1/curves", {"buckets": "0"}),
        ("1/curves", {"kind": "test"}),
        ("1/trials/1/logs", {"last": "x"}),
    ):
        answer = await jupyter.get(f"local/experiments/{path}", params=query)
        assert answer.status_code == 400, path
        assert next(iter(query)) in answer.json()["error"]
    headers = {"Authorization": "token wrong"}
    async with httpx.AsyncClient(base_url=str(jupyter.client.base_url), headers=headers) as stranger:
        for path in ("experiments", "experiments/1", "events", "experiments/1/trials/1/logs"):
            assert (await stranger.get(f"local/{path}")).status_code == 403, path
        assert (await stranger.post("local/experiments/1/kill")).status_code == 403


async def test_damaged_and_missing_records_do_not_hide_the_others(jupyter: Jupyter) -> None:
    assert await body(jupyter, "local/experiments") == []
    write_experiment()
    write_experiment()
    (Home.default().path / "local/1/experiment.json").write_text("{")
    assert [each["id"] for each in await body(jupyter, "local/experiments")] == ["local-2"]
    answer = await jupyter.get("local/experiments/1")
    assert answer.status_code == 500
    assert "cannot be read" in answer.json()["error"]


class local_events:  # noqa: N801 (used as a function)
    """The stream of events about local runs, opened."""

    def __init__(self, jupyter: Jupyter, **parameters: str) -> None:
        headers = {"Accept": "text/event-stream"}
        self._opening = jupyter.client.stream("GET", "local/events", params=parameters, headers=headers)

    async def __aenter__(self) -> Events:
        answer = await self._opening.__aenter__()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        events = Events(answer)
        await anext(events._lines)  # from here on nothing is missed
        return events

    async def __aexit__(self, *error: Any) -> None:
        await self._opening.__aexit__(*error)


async def events_until_the_end(events: Events) -> list[dict[str, Any]]:
    """Return the events up to that which tells that an experiment has ended."""
    told: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while not told or told[-1]["type"] != "experiment" or told[-1]["data"]["ended"] is None:
            told += await events.take(1)
    assert json.dumps(told)
    return told
