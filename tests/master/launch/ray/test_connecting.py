"""Why a cluster is not used: a sentence each, that says what to do."""

from __future__ import annotations

import platform

from det_native.master.launch.ray.bridge.addresses import Address
from det_native.master.launch.ray.bridge.connecting import Connection, exposure, refusal

HEAD = Address("head", 6379, client=False)
PYTHON = ".".join(platform.python_version_tuple()[:2])


def _mismatch(ray: str, python: str) -> str:
    return (
        "Version mismatch: The cluster was started with:\n"
        f"    Ray: {ray}\n    Python: {python}.4\n"
        "This process on node 10.0.0.2 was started with:\n"
        f"    Ray: 2.60.0\n    Python: {PYTHON}.7\n"
    )


def test_another_version_of_ray_is_named_with_what_installs_it() -> None:
    assert refusal(_mismatch("2.40.0", PYTHON), HEAD, "2.60.0") == (
        "The cluster at head:6379 runs Ray 2.40.0, and here is Ray 2.60.0: install the same version on both sides "
        "(pip install 'ray[client]==2.40.0')."
    )


def test_another_python_is_named() -> None:
    assert refusal(_mismatch("2.60.0", "3.9"), HEAD, "2.60.0") == (
        f"The cluster at head:6379 runs Python 3.9, and here is Python {PYTHON}: both sides need the same minor "
        "version."
    )


def test_what_nobody_knows_is_told_by_its_first_line() -> None:
    begin = "Connecting to the Ray cluster at head:6379 failed, as it does while its head starts: "
    assert refusal("\n  It rains.\n  And more.\n", HEAD, "2.60.0") == f"{begin}It rains."
    traced = refusal("It failed:\nTraceback\n  line 3\nRuntimeError: no room\n", HEAD, "2.60.0")
    assert traced == f"{begin}It failed: RuntimeError: no room"


def test_a_cluster_that_lets_in_everybody_is_refused_where_others_reach_it() -> None:
    assert exposure(HEAD, ["127.0.0.1", "::1"]) == ""
    told = exposure(HEAD, ["127.0.0.1", "10.0.0.2"])
    assert told == (
        "Whoever reaches 10.0.0.2 can run code on the Ray cluster at head:6379: start it with RAY_AUTH_MODE=token, or "
        "say with --ray-trusted that only you reach it."
    )


def test_machines_that_are_gone_or_a_cluster_that_is_trusted_are_not_looked_at() -> None:
    nodes = [{"NodeManagerAddress": "::1", "Alive": True}, {"NodeManagerAddress": "10.0.0.2", "Alive": True}]
    assert "10.0.0.2" in Connection(HEAD, "2.60.0", private=True).exposure(nodes)
    assert Connection(HEAD, "2.60.0", private=False).exposure(nodes) == ""
    nodes[1]["Alive"] = False
    assert Connection(HEAD, "2.60.0", private=True).exposure(nodes) == ""
