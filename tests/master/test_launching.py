"""A master has the launcher that it is asked for, and whoever starts it hears why a cluster cannot be used."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from det_native.errors import ArgumentError, MasterStartError, MissingDependencyError
from det_native.master.config import parse_arguments
from det_native.master.launch.local import LocalLauncher
from det_native.master.launching import make_launcher, wait_for_cluster


class _Cluster:
    """Stands for the launcher of a cluster: it says one trouble after the other."""

    def __init__(self, *troubles: str, refused: bool = False) -> None:
        self.troubles = list(troubles)
        self.refused = refused
        self.is_away = False
        self.was_reached = False
        self.waited: list[float] = []

    def trouble(self) -> str:
        return self.troubles[0] if self.troubles else ""

    def wait(self, timeout: float) -> bool:
        self.waited.append(timeout)
        del self.troubles[0]
        return True


def _config(tmp_path: Path, *arguments: str, **environment: str) -> Any:
    return parse_arguments(["--home", str(tmp_path), *arguments], environment)


def test_without_more_it_is_that_of_this_machine(tmp_path: Path) -> None:
    launching = make_launcher(_config(tmp_path, "--slots", "cpu:3"), 0o22, str)
    try:
        assert isinstance(launching.launcher, LocalLauncher)
        assert ([slot.id for slot in launching.slots], launching.cluster) == (["cpu:0", "cpu:1", "cpu:2"], None)
    finally:
        launching.launcher.close(kill_workers=False)


def test_flags_and_environment_name_a_cluster(tmp_path: Path) -> None:
    by_flags = _config(tmp_path, "--launcher", "ray", "--ray-address", "ray://head:10001", "--ray-trusted")
    assert (by_flags.launcher, by_flags.ray_address, by_flags.ray_trusted) == ("ray", "ray://head:10001", True)
    by_environment = _config(tmp_path, DET_LAUNCHER="ray", DET_RAY_ADDRESS="10.0.0.1:6379")
    assert (by_environment.launcher, by_environment.ray_address) == ("ray", "10.0.0.1:6379")
    assert not by_environment.ray_trusted
    assert _config(tmp_path).launcher == "local"


@pytest.mark.parametrize("address", ["head", "http://head:6379", "head:port", "ray://", "a b:1"])
def test_what_is_no_address_of_a_cluster_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ArgumentError, match="must be auto"):
        _config(tmp_path, "--launcher", "ray", "--ray-address", address)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--ray-address", "head:6379"], "--ray-address would have no effect"),
        (["--ray-trusted"], "or leave it out"),
        (["--ray-trusted", "--ray-address", "auto"], "--ray-address and --ray-trusted would have no effect"),
    ],
)
def test_options_of_ray_without_its_launcher_are_refused(tmp_path: Path, options: list[str], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        _config(tmp_path, *options)
    assert _config(tmp_path, *options, DET_LAUNCHER="ray").launcher == "ray"
    assert _config(tmp_path, DET_RAY_ADDRESS="head:6379").launcher == "local"


def test_an_unknown_launcher_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="DET_LAUNCHER must be local or ray"):
        _config(tmp_path, DET_LAUNCHER="slurm")


def test_a_cluster_gets_what_the_command_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    checked: list[str] = []

    def launcher(*positional: Any, **named: Any) -> _Cluster:
        made.append((positional, named))
        return _Cluster()

    module = SimpleNamespace(RayLauncher=launcher, check_ray=checked.append)
    monkeypatch.setitem(sys.modules, "det_native.master.launch.ray.launcher", module)
    config = _config(tmp_path, "--launcher", "ray", "--slots", "2", "--ray-address", "head:1", "--ray-trusted")
    launching = make_launcher(config, 0o22, lambda: "unix:/socket")
    [((home, url, address), named)] = made
    assert (home, url(), address) == (config.home, "unix:/socket", "head:1")
    assert named == {"slots": "2", "trusted": True, "umask": 0o22}
    assert checked == ["head:1"]
    assert launching.cluster is launching.launcher


def test_the_start_waits_until_the_cluster_has_answered(tmp_path: Path) -> None:
    cluster = _Cluster("It has not answered yet.", "It has not answered yet.")
    wait_for_cluster(_config(tmp_path), cluster, 5.0)
    assert len(cluster.waited) == 2


def test_a_cluster_that_does_not_answer_in_time_is_waited_for_later(tmp_path: Path) -> None:
    cluster = _Cluster("It does not answer.")
    wait_for_cluster(_config(tmp_path), cluster, 0.0)
    assert cluster.waited == []


def test_who_starts_a_master_reads_why_its_cluster_refuses_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        config = _config(tmp_path, "--ready-fd", str(writing))
        with pytest.raises(MasterStartError, match="open to everybody"):
            wait_for_cluster(config, _Cluster("It is open to everybody.", refused=True))
        assert os.read(reading, 1000) == b"refused It is open to everybody.\n"
    finally:
        os.close(reading)
        os.close(writing)


def test_who_starts_a_master_reads_that_ray_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(address: str) -> None:
        raise MissingDependencyError("Ray is not installed here.")

    monkeypatch.setitem(
        sys.modules, "det_native.master.launch.ray.launcher", SimpleNamespace(check_ray=check, RayLauncher=None)
    )
    with pytest.raises(MissingDependencyError):
        make_launcher(_config(tmp_path, "--launcher", "ray"), 0o22, str)


def test_the_address_of_a_cluster_that_has_never_answered_is_taken_to_be_wrong(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        config = _config(tmp_path, "--ready-fd", str(writing))
        away = _Cluster("No Ray cluster answers.")
        away.is_away, away.was_reached = True, False
        with pytest.raises(MasterStartError, match="No Ray cluster answers"):
            wait_for_cluster(config, away, 0.0)
        assert os.read(reading, 1000) == b"refused No Ray cluster answers.\n"
        away.was_reached = True
        wait_for_cluster(config, away, 0.0)
    finally:
        os.close(reading)
        os.close(writing)
