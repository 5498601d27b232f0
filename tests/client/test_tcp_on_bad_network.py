"""A master at a TCP port behind a bad network: requests over TLS arrive, and are done once."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_proxy import FaultProxy, Network
from ssh_machine import free_port

from det_native import PROTOCOL
from det_native.client.home import read_token
from det_native.client.session import Session
from det_native.errors import MasterUnreachableError
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.processes import wait_until_gone
from det_native.schema.rest import ExperimentCreate

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED = int(os.environ.get("DET_FAULT_SEED", "36"))
PATIENCE = 120.0
START = """
import sys
from pathlib import Path
from det_native.client.starting import ensure_master
from det_native.schema.home import Home
ensure_master(Home(Path(sys.argv[1])), sys.argv[2:])
"""
CONFIG = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of this machine's name for itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here, which makes the certificate")
    made, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=DNS:localhost", "-out", str(made), "-keyout", str(key)]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return made, key


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """What is between this process and a master with TLS."""
    made, key = certificate(tmp_path)
    home, port = Home(tmp_path / "home"), free_port()
    options = ["--port", str(port), "--host", "localhost", "--tls-cert", str(made), "--tls-key", str(key)]
    environment = {**os.environ, "DET_SLOTS": "cpu:1"}
    subprocess.run([sys.executable, "-c", START, str(home.path), *options], env=environment, check=True)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made))
    monkeypatch.setenv("DET_TOKEN", str(read_token(home)))
    runtime = read_runtime(home)
    assert runtime is not None
    try:
        with FaultProxy(port) as between:
            yield between
    finally:
        with contextlib.closing(Session(runtime.url, os.environ["DET_TOKEN"])) as session:
            session.call(routes.SHUT_DOWN, kill=True)
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


def test_what_may_be_repeated_arrives_over_connections_that_break_off(network: FaultProxy) -> None:
    manifest = BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.7", executable=sys.executable),
        program=Program(kind="cells", framework="torch"),
    )
    with contextlib.closing(Session(f"https://localhost:{network.port}", os.environ["DET_TOKEN"])) as session:
        bundle = session.call(routes.CREATE_BUNDLE, manifest).id
        body = ExperimentCreate(protocol=PROTOCOL, bundle_id=bundle, config=CONFIG)
        numbers: list[int] = []
        told: list[str] = []
        with network.lossy(random.Random(SEED), 500, 30_000):
            for key in range(20):
                while len(numbers) == key:  # the key makes it safe to ask once more
                    try:
                        created = session.call(routes.CREATE_EXPERIMENT, body, key=f"key-{key}")
                        numbers.append(created.id)
                        session.call(routes.KILL_EXPERIMENT, experiment_id=created.id)
                    except MasterUnreachableError as error:
                        told.append(str(error))
        assert network.resets, f"seed {SEED}"
        assert not [text for text in told if "certificate" in text], f"seed {SEED}"
        assert sorted(made.id for made in session.call(routes.LIST_EXPERIMENTS)) == numbers, f"each once (seed {SEED})"
        with (
            network.being(Network.REFUSING),
            pytest.raises(MasterUnreachableError, match=f"localhost:{network.port} "),
        ):
            session.call(routes.GET_MASTER)
        assert session.call(routes.GET_MASTER).version


def test_a_connection_that_ends_before_tls_begins_is_tried_again_and_not_blamed_on_the_certificate() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def hang_up() -> int:
            """Hear out whoever greets, and close; return how many came before somebody said that it is the end."""
            for count in itertools.count():
                line, _ = listening.accept()
                with line:
                    if line.recv(4096) == b"end":
                        return count
            raise AssertionError

        with ThreadPoolExecutor(1) as pool:
            counting = pool.submit(hang_up)
            with (
                contextlib.closing(Session(f"https://localhost:{port}", "token")) as session,
                pytest.raises(MasterUnreachableError) as caught,
            ):
                session.call(routes.GET_MASTER)
            with socket.create_connection(("127.0.0.1", port)) as last:
                last.sendall(b"end")
            assert counting.result() == 5
        assert str(caught.value).startswith(
            f"No master answers at https://localhost:{port} (the connection broke off)."
        )
