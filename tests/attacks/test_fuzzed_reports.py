"""What a worker that is not ours may report: it is refused in a sentence or kept, and the master goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from attack_parts import ANYTHING, NUMBERS, TEXTS, assert_refused_or_taken, cheaply, deep, json_text
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, Worker, publish, running_master

from det_native.schema.job import TrialJob

pytestmark = pytest.mark.slow  # a whole master

KINDS = ["started", "metrics", "checkpoint", "warning", "comparison", "rows", "system", "exit"]
FIELDS = [
    *("seq", "batch", "length", "notice", "kind", "batches", "metrics", "location", "manifest", "text", "name", "rows"),
    *("smaller_is_better", "samples", "reason", "error", "early", "last_row", "uuid", "files"),
]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Give one master for all reports, with two trials that run."""
    with running_master(tmp_path_factory.mktemp("attacked") / "home") as running:
        running.create({"searcher": {"name": "random", "max_trials": 2}, "max_restarts": 0})
        running.world.wait_for_jobs(2)
        yield running


@pytest.fixture(scope="module")
def job(attacked: Master) -> TrialJob:
    """Give the run that the attacker has."""
    return attacked.world.wait_for_jobs(2)[0]


def send(master: Master, job: TrialJob, body: bytes) -> Any:
    answer = master.client.post(
        f"/api/v1/runs/{job.run_id}/reports",
        content=body,
        headers={"Authorization": f"Bearer {job.token}", "Content-Type": "application/json"},
    )
    assert_refused_or_taken(answer)
    return answer


def reading(master: Master) -> None:
    """See that all that is stored can still be read, and that nobody else has changed."""
    for path in ("/experiments", "/experiments/1", "/experiments/1/trials", "/experiments/1/curves"):
        master.get(path)
    for trial in (1, 2):
        for path in ("metrics", "curves", "system", "logs", "checkpoints"):
            master.get(f"/trials/{trial}/{path}")


METRICS = st.fixed_dictionaries(
    {
        "type": st.just("metrics"),
        "kind": st.sampled_from(["training", "validation"]),
        "batches": st.lists(st.integers(-1, 2**64) | NUMBERS, max_size=3),
        "metrics": st.dictionaries(TEXTS, st.lists(NUMBERS | st.none() | ANYTHING, max_size=3), max_size=4),
    }
)
REPORTS = st.one_of(
    METRICS,
    st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=6).flatmap(
        lambda fields: st.sampled_from(KINDS).map(lambda kind: {**fields, "type": kind})
    ),
    st.fixed_dictionaries({"type": st.just("warning"), "text": TEXTS}, optional={"x": ANYTHING}),
    st.fixed_dictionaries({"type": st.just("started"), "batch": NUMBERS, "length": NUMBERS, "notice": TEXTS}),
    st.fixed_dictionaries(
        {
            "type": st.just("system"),
            "samples": st.lists(
                st.fixed_dictionaries({"time": NUMBERS, "rank": NUMBERS, "metrics": st.dictionaries(TEXTS, NUMBERS)}),
                max_size=2,
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("rows"),
            "rows": st.lists(st.fixed_dictionaries({"what": TEXTS, "how": TEXTS, "size": NUMBERS}), max_size=3),
        }
    ),
    st.fixed_dictionaries({"type": st.just("comparison"), "name": TEXTS}),
    ANYTHING,
)


@given(reports=st.lists(REPORTS, max_size=3), seq=st.booleans(), more=st.dictionaries(TEXTS, ANYTHING, max_size=1))
def test_any_report_is_refused_in_a_sentence_or_kept(
    attacked: Master, job: TrialJob, reports: list[Any], seq: bool, more: dict[str, Any]
) -> None:
    through = send(attacked, job, b'{"reports": []}').json()["through"]
    for number, report in enumerate(reports, through + 1):
        if seq and isinstance(report, dict):
            report["seq"] = number
    with cheaply():
        send(attacked, job, json_text({"reports": reports, **more}))
    reading(attacked)


def report(**fields: Any) -> bytes:
    return json_text({"reports": [{"seq": 1, **fields}]})


def metrics(**columns: Any) -> bytes:
    return report(type="metrics", kind="training", batches=[1], metrics=columns)


BODIES = {
    "no JSON": b"\x00\xff\xfe",
    "no UTF-8": b'{"reports": [], "waiting": "\xff\xfe"}',
    "UTF-16": '{"reports": []}'.encode("utf-16"),
    "lists within lists": b'{"reports": ' + deep(200_000).encode() + b"}",
    "objects within objects": b'{"reports": [' + deep(100_000, "{").encode() + b"]}",
    "a nested metric": metrics(loss=[json.loads(deep(900))]),
    "a number of a million digits": b'{"reports": [], "progress": ' + b"9" * 1_000_000 + b"}",
    "a number beyond the database": b'{"reports": [], "progress": 99999999999999999999}',
    "a batch beyond the database": report(type="started", batch=2**63),
    "a length beyond the database": report(type="started", batch=0, length=2**64),
    "a row beyond the database": report(type="metrics", kind="training", batches=[2**70], metrics={"loss": [1.0]}),
    "a million names": metrics(**{f"m{number}": [1.0] for number in range(300_000)}),
    "a text for a number": metrics(loss=["nan(0x1)"]),
    "half a pair": b'{"reports": [{"seq": 1, "type": "warning", "text": "\\ud800"}]}',
    "half a pair in a name": metrics(**{"\ud800": [1.0]}),
    "rows that go backwards": report(type="metrics", kind="training", batches=[5, 4], metrics={"loss": [1.0, 2.0]}),
    "a row twice": report(type="metrics", kind="training", batches=[5, 5], metrics={"loss": [1.0, 2.0]}),
    "columns of two lengths": report(type="metrics", kind="training", batches=[1, 2], metrics={"loss": [1.0]}),
    "a report that is numbered 0": b'{"reports": [{"seq": 0, "type": "started", "batch": 0}]}',
    "a report from the future": b'{"reports": [{"seq": 1000000, "type": "started", "batch": 0}]}',
    "the same key many times": b"{" + b'"reports": [], ' * 50_000 + b'"reports": []}',
}


@pytest.mark.parametrize("what", BODIES)
def test_a_report_that_no_worker_sends_is_refused_in_a_sentence(attacked: Master, job: TrialJob, what: str) -> None:
    through = send(attacked, job, b'{"reports": []}').json()["through"]
    body = BODIES[what]
    with cheaply():
        answer = send(attacked, job, body.replace(b'"seq": 1,', b'"seq": %d,' % (through + 1)))
    taken = ("the same key many times", "a number beyond the database")
    assert answer.status_code in (400, 413, 422) or what in taken
    if answer.status_code == 200:  # what a refused one has stored is found by the last test of this file
        reading(attacked)


def test_a_checkpoint_of_another_trial_is_not_taken(attacked: Master, job: TrialJob) -> None:
    other = attacked.world.wait_for_jobs(2)[1]
    mine, theirs = Worker(attacked, job), Worker(attacked, other)
    mine.seq, theirs.seq = (send(attacked, one, b'{"reports": []}').json()["through"] for one in (job, other))
    uuid, described = publish(other, 3)
    for forged in (
        described,
        {**described, "manifest": {**described["manifest"], "run_id": job.run_id}},
        {**described, "manifest": {**described["manifest"], "trial_id": job.trial_id}},
    ):
        answer = mine.post({"seq": mine.seq + 1, **forged})
        assert answer.status_code == 400, answer.text
    theirs.send(described)
    stolen = {**described["manifest"], "run_id": job.run_id, "trial_id": job.trial_id, "files": []}
    answer = mine.post({"seq": mine.seq + 1, **described, "manifest": stolen})
    assert answer.status_code == 409, answer.text
    assert attacked.get(f"/checkpoints/{uuid}")["trial_id"] == other.trial_id


@pytest.mark.parametrize(
    "path", ["../../token", "/etc/passwd", "..\\token", "%2e%2e/token", "weights/../../../token", "a\0b"]
)
def test_a_checkpoint_that_names_files_elsewhere_gives_none_of_them(attacked: Master, job: TrialJob, path: str) -> None:
    worker = Worker(attacked, job)
    worker.seq = send(attacked, job, b'{"reports": []}').json()["through"]
    uuid, described = publish(job, 4)
    described["manifest"]["files"] = [{"path": path, "sha256": "0" * 64, "size": 43}]
    described["location"] = "file:///etc"
    answer = worker.post({"seq": worker.seq + 1, **described})
    assert_refused_or_taken(answer)
    for name in (path, path.replace("/", "%2f"), path.replace(".", "%2e"), path.replace(".", "%252e")):
        if "\0" in name:
            continue
        found = attacked.client.get(f"/api/v1/checkpoints/{uuid}/files/{name}")
        assert found.status_code in (400, 404, 409), (name, found.text)
        assert attacked.token not in found.text
        assert "root:" not in found.text
    reading(attacked)
