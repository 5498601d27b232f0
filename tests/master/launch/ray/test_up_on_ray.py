"""``det up`` on a real cluster that wants a token, as users try it, with what they do wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ray_cluster import RayCluster, free_port

pytestmark = pytest.mark.soak

Det = Callable[..., "subprocess.CompletedProcess[str]"]

HIDES_RAY = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "ray" else find(name, package)
"""


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of the cluster's token."""
    path = tmp_path_factory.mktemp("token") / "auth_token"
    path.write_text("0123456789abcdef" * 4)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def cluster(token: Path) -> Iterator[RayCluster]:
    """Give a cluster of one machine that wants a token, with a client server."""
    running = RayCluster(
        2,
        client=True,
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN_PATH=str(token),
    )
    yield running
    running.stop()


@pytest.fixture
def det(tmp_path: Path, token: Path) -> Iterator[Det]:
    """Run ``det`` as a user who has the token; the masters are ended at last, with their workers."""
    homes: set[str] = set()

    def run(*arguments: str, home: str = "home", **variables: str) -> subprocess.CompletedProcess[str]:
        folder = str(tmp_path / home)
        homes.add(folder)
        own = {"DET_HOME": folder, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        return subprocess.run(
            [sys.executable, "-m", "det_native.client.command", *arguments],
            env={**os.environ, "HOME": str(tmp_path), **own, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    yield run
    for home in homes:
        run("down", "--kill", home=home)


def _assert_refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("Error: The master did not start: ")
    assert done.stderr.count("\n") == 1


def test_a_wrong_address_is_told_with_the_right_one(det: Det, cluster: RayCluster, tmp_path: Path) -> None:
    client = cluster.client_address.removeprefix("ray://")
    swapped = det("up", "--launcher", "ray", "--ray-address", client)
    _assert_refused(swapped, f"is the port of a Ray client server: write ray://{client}.")
    other_way = det("up", "--launcher", "ray", "--ray-address", f"ray://{cluster.address}")
    _assert_refused(other_way, f"is the port of the cluster itself: write {cluster.address}, or ray://")
    nobody = det("up", "--launcher", "ray", "--ray-address", f"127.0.0.1:{free_port()}")
    _assert_refused(nobody, "start one there (`ray start --head`), or check the address.")


def test_who_has_no_token_hears_where_it_belongs(det: Det, cluster: RayCluster, tmp_path: Path) -> None:
    address = ("up", "--launcher", "ray", "--ray-address", cluster.address)
    without = det(*address, RAY_AUTH_MODE="", RAY_AUTH_TOKEN_PATH="")
    _assert_refused(without, "wants a token: set RAY_AUTH_MODE=token, and put the cluster's token into")
    (tmp_path / "other").write_text("f" * 64)
    wrong = det(*address, RAY_AUTH_TOKEN_PATH=str(tmp_path / "other"))
    _assert_refused(wrong, "does not take this token: put the cluster's own into")


def test_without_ray_the_command_that_installs_it_is_told(det: Det, cluster: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDES_RAY)
    hidden = det("up", "--launcher", "ray", "--ray-address", cluster.address, PYTHONPATH=str(tmp_path / "hiding"))
    _assert_refused(hidden, "Ray is not installed here")
    assert "pip install 'det-native[ray]'" in hidden.stderr
