"""Every route, by whoever has no business there: strangers, foreign pages, the run of another trial, another user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import master_parts
import pytest
from master_parts import Master, Worker, configuration, running_master
from test_access import all_requests, paths_of

from det_native import PROTOCOL
from det_native.master.api import app as interface
from det_native.master.api.gate import OPEN, SAFE_METHODS
from det_native.master.connections import UnknownConnections, counted_by

pytestmark = pytest.mark.slow  # a whole master


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Give a master with an experiment of two trials, of which one has a checkpoint."""
    with running_master(tmp_path_factory.mktemp("known") / "home") as running:
        running.create({"searcher": {"name": "random", "max_trials": 2}})
        worker = Worker(running, running.world.wait_for_jobs(2)[0])
        worker.start()
        worker.train(1, 3)
        worker.validate(3, loss=0.5)
        worker.checkpoint(3)
        yield running


def test_a_port_in_the_clear_opens_no_route_to_any_token(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_parts, "_Trusting", counted_by(UnknownConnections()))
    with running_master(tmp_path / "home") as master:
        requests = all_requests(master)
        assert len(requests) >= 25
        with httpx.Client(base_url=str(master.client.base_url), timeout=60, verify=False) as client:
            for method, path in requests:
                headers = {"Authorization": f"Bearer {master.token}"}
                assert client.request(method, path, headers=headers).status_code == 426, path
            for headers, expected in (({"Authorization": "Bearer wrong"}, 426), ({"Host": "evil.example"}, 403)):
                assert client.get("/api/v1/experiments", headers=headers).status_code == expected
            for method, path in requests:
                if (method, path) not in OPEN:
                    assert client.request(method, path).status_code == 401, path
                    answer = client.request(method, path, headers={"Origin": "http://evil.example"})
                    assert answer.status_code == (401 if method in SAFE_METHODS else 403), path


def test_a_foreign_name_or_page_gets_nothing_with_the_token_either(known: Master) -> None:
    for method, path in all_requests(known):
        answer = known.client.request(method, path, headers={"Host": "127.0.0.1.evil.example"})
        assert answer.status_code == 403, path
        if method not in SAFE_METHODS:
            answer = known.client.request(method, path, headers={"Origin": "http://evil.example"})
            assert answer.status_code == 403, path
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_run_reaches_no_other_run_and_nothing_else(known: Master) -> None:
    first, second = known.world.wait_for_jobs(2)
    before = known.get("/trials/2"), known.get("/trials/2/metrics")
    paths = [path for _, path in all_requests(known)] + [
        f"/api/v1/runs/{second.run_id}/{name}" for name in ("best", "proof")
    ]
    forms = ("{}", "{}/.", "{}%2f")
    for path in paths:
        for form in forms:
            answer = known.client.get(form.format(path), headers={"Authorization": f"Bearer {first.token}"})
            assert answer.status_code == 401 or ("GET", path) in OPEN, path
    for path in (f"{first.run_id}/../{second.run_id}", f"{first.run_id}%2f..%2f{second.run_id}", second.run_id.lower()):
        answer = known.client.post(
            f"/api/v1/runs/{path}/reports", json={"reports": []}, headers={"Authorization": f"Bearer {first.token}"}
        )
        assert answer.status_code in (401, 404, 422), path
    assert (known.get("/trials/2"), known.get("/trials/2/metrics")) == before


BODIES = {
    ("PATCH", "/checkpoints/{uuid}"): {"pinned": True},
    ("PATCH", "/experiments/{experiment_id}"): {"resources": {"priority": 1}},
    ("POST", "/experiments/{experiment_id}/fork"): {},
    ("POST", "/experiments/{experiment_id}/continue"): {"unit": "batches", "length": 3},
    ("PUT", "/experiments/{experiment_id}/gc-policy"): {
        "save_experiment_best": 0,
        "save_trial_best": 1,
        "save_trial_latest": 1,
    },
}


def body_for(method: str, route: str) -> Any:
    return BODIES.get((method, route.removeprefix("/api/v1")))


def test_another_user_sees_and_changes_nothing(known: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "OWNER", "another")
    foreign = interface.create_app(known.service)
    [checkpoint] = known.get("/experiments/1/checkpoints")
    values = {
        "experiment_id": "1",
        "trial_id": "1",
        "uuid": checkpoint["uuid"],
        "path:path": "weights",
        "path": "weights",
        "medium_id": "1",
    }
    before = known.get("/experiments/1")
    tried = []
    with master_parts.served_beside(foreign) as url, httpx.Client(base_url=url, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {known.token}"
        for method, route in paths_of(foreign.routes):
            names = set(re.findall(r"\{([\w:]+)\}", route))
            if not names or not names <= set(values) or "series" in route:
                continue
            path = re.sub(r"\{([\w:]+)\}", lambda name: values[name[1]], route)
            body = body_for(method, route)
            query = {"path": "weights"} if route.endswith("artifacts/content") else None
            answer = client.request(method, path, json=body, params=query)
            assert answer.status_code == 404, (method, path, answer.text)
            tried.append(path)
        assert len(tried) >= 15
        assert {"/api/v1/trials/1/media/1/content", "/api/v1/trials/1/artifacts/content"} <= set(tried)
        assert client.get("/api/v1/experiments").json() == []
        assert client.get("/api/v1/events", params={"experiment_id": 1}).status_code == 404
        assert client.get("/api/v1/trials/1/series", params={"name": "loss"}).status_code == 404
    assert known.get("/experiments/1") == before


FOREIGN = [
    {"type": "shared_fs", "host_path": "file:///etc"},
    {"type": "shared_fs", "host_path": "http://169.254.169.254/latest"},
    {"type": "shared_fs", "host_path": "s3://bucket"},
    {"type": "shared_fs", "host_path": "relative"},
    {"type": "shared_fs", "host_path": "/shared", "storage_path": "../../etc"},
    {"type": "shared_fs", "host_path": "/shared", "storage_path": "/etc"},
    {"type": "shared_fs", "host_path": "/shared\0/x"},
    {"type": "shared_fs", "host_path": "/shared", "storage_path": "x\0"},
    {"type": "directory", "container_path": "etc"},
    {"type": "url", "url": "https://169.254.169.254/latest"},
    {"type": "url", "url": "simplecache::s3://bucket"},
    {"type": "url", "url": "s3://name:word@bucket/x"},
    {"type": "url", "url": "relative/folder"},
    {"type": "hdfs", "hdfs_url": "http://169.254.169.254", "hdfs_path": "/x"},
    {"type": "http", "url": "http://169.254.169.254"},
    "file://",
    "http://169.254.169.254/latest/meta-data",
]


@pytest.mark.parametrize("storage", FOREIGN, ids=str)
def test_a_master_asks_nothing_that_is_no_place_for_checkpoints(known: Master, storage: Any) -> None:
    before = len(known.get("/experiments"))
    body = {"protocol": PROTOCOL, "config": configuration(checkpoint_storage=storage), "bundle_id": known.bundle()}
    answer = known.client.post("/api/v1/experiments", json=body)
    assert answer.status_code == 422, answer.text
    assert "checkpoint_storage" in answer.text
    assert len(known.get("/experiments")) == before
