"""Who is told the token: real masters, and another user's process that takes their place."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from ssh_machine import free_port
from stranger import needs_another_user, stranger

from det_native import PROTOCOL
from det_native.client.connect import connect
from det_native.client.home import read_token
from det_native.client.lines import introduced
from det_native.client.session import Session
from det_native.errors import MasterUnreachableError, ProtocolMismatchError
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.introduction import Meeting, address_text
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.processes import start_mark, wait_until_gone
from det_native.schema.rest import ExperimentCreate, HashList
from det_native.schema.sockets import NotOursError, dial, url_of

pytestmark = pytest.mark.slow

PATIENCE = 120.0
WAIT = """
import sys
import det_native as det
experiment = det.attach(int(sys.argv[1]))
print("waits", flush=True)
print("ended as", experiment.wait().state, flush=True)
"""
START = """
import sys
from pathlib import Path
from det_native.client.starting import ensure_master
from det_native.schema.home import Home
ensure_master(Home(Path(sys.argv[1])), sys.argv[2:])
"""
DET = [sys.executable, "-c", "from det_native.client.command import main; main()"]
CONFIG = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}


def sleeping_experiment(session: Session, folder: Path) -> int:
    """Create an experiment whose interpreter does nothing until it is killed: Python would import PyTorch for it."""
    interpreter = folder / "python"
    interpreter.write_text("#!/bin/sh\nexec sleep 3600\n")
    interpreter.chmod(0o755)
    manifest = BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.7", executable=str(interpreter)),
        program=Program(kind="cells", framework="torch"),
    )
    bundle = session.call(routes.CREATE_BUNDLE, manifest).id
    body = ExperimentCreate(protocol=PROTOCOL, bundle_id=bundle, config=CONFIG)
    return session.call(routes.CREATE_EXPERIMENT, body).id


def kill(runtime: RuntimeFile) -> None:
    """End a master without warning."""
    os.kill(runtime.pid, signal.SIGKILL)
    assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


@pytest.fixture(scope="module")
def port() -> int:
    """The port that the master of these tests is asked for."""
    return free_port()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Home]:
    """The home of a master with a port, which each test leaves running."""
    found = Home(tmp_path_factory.mktemp("strangers") / "home")
    start(found, port)
    yield found
    runtime = start(found, port)
    Session(runtime.url, token_of(found)).call(routes.SHUT_DOWN, kill=True)
    assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


def start(home: Home, port: int, *more: str) -> RuntimeFile:
    """Start the master if it does not run, by a process that ends: it is no child of the tests."""
    # Where a worker that does not end by itself leaves its folder.
    environment = {**os.environ, "DET_SLOTS": "cpu:1", "TMPDIR": str(home.path.parent)}
    subprocess.run(
        [sys.executable, "-c", START, str(home.path), "--port", str(port), *more], env=environment, check=True
    )
    runtime = read_runtime(home)
    assert runtime is not None
    return runtime


def token_of(home: Home) -> str:
    """The secret of these tests."""
    token = read_token(home)
    assert token is not None
    return token


@contextlib.contextmanager
def waiting(number: int, address: str, home: Home) -> Iterator[subprocess.Popen[str]]:
    """Have a process wait for an experiment."""
    environment = {**os.environ, "DET_HOME": str(home.path), "DET_MASTER": address}
    with (home.path / "waiter-errors").open("w") as errors:  # with whatever warning comes in between
        process = subprocess.Popen(
            [sys.executable, "-c", WAIT, str(number)], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "waits\n", (home.path / "waiter-errors").read_text()
        yield process
    finally:
        process.kill()
        process.communicate()


def test_who_takes_the_port_of_a_killed_master_hears_no_token(home: Home, port: int, tmp_path: Path) -> None:
    address, token = f"http://127.0.0.1:{port}", token_of(home)
    runtime = start(home, port)
    assert runtime.tcp == address
    session = Session(address, token)
    number = sleeping_experiment(session, tmp_path)
    environment = {**os.environ, "DET_HOME": str(home.path)}
    with waiting(number, address, home) as waiter:
        kill(runtime)
        with stranger(port, tmp_path) as impostor:
            impostor.wait_for("GET /api/v1/introduction", 3)
            asked = subprocess.run(
                [*DET, "-m", address, "status"], env=environment, capture_output=True, text=True, check=False
            )
            with pytest.raises(MasterUnreachableError, match="The token was not told"):
                session.call(routes.CREATE_EXPERIMENT, b'{"name": "secret plans"}')
        start(home, port)
        session.call(routes.KILL_EXPERIMENT, experiment_id=number)
        printed, _ = waiter.communicate(timeout=PATIENCE)
    assert waiter.returncode == 0, printed + (home.path / "waiter-errors").read_text()
    assert "ended as CANCELED" in printed or "ended as Stopped" in printed
    assert asked.returncode == 1
    assert "The token was not told to what listens there" in asked.stderr.replace(f"at {address}", "there")
    assert "GET /api/v1/health" in impostor.heard
    for secret in (token, "Authorization", "secret plans", "proof"):
        assert secret not in impostor.heard
    session.close()


@pytest.mark.long
def test_a_stranger_cannot_pass_the_introduction_on_to_the_master(home: Home, port: int) -> None:
    start(home, port)
    said: list[bytes] = []

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        while piece := source.recv(65536):
            said.append(piece)
            target.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        relay = listening.getsockname()[1]

        def serve() -> None:
            line, _ = listening.accept()
            with line, socket.create_connection(("127.0.0.1", port)) as master:
                back = threading.Thread(target=pass_on, args=(master, line))
                back.start()
                pass_on(line, master)
                master.shutdown(socket.SHUT_RDWR)
                back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(
            NotOursError, match=f"called at 127.0.0.1 port {relay} and listens at 127.0.0.1 port {port}"
        ):
            introduced(f"http://127.0.0.1:{relay}", token_of(home), 10)
        thread.join()
    heard = b"".join(said)
    assert b"GET /api/v1/introduction" in heard
    assert b"POST" not in heard
    assert token_of(home).encode() not in heard


@pytest.mark.long
def test_a_port_that_was_asked_for_serves_whoever_knows_the_token(home: Home, port: int) -> None:
    runtime = start(home, port)
    for name in ("127.0.0.1", "localhost"):
        with contextlib.closing(Session(f"http://{name}:{port}", token_of(home))) as session:
            assert session.health().protocol == PROTOCOL
            assert session.call(routes.GET_MASTER).pid == runtime.pid
            assert session.call(routes.FIND_MISSING, HashList(hashes=["0" * 64])).hashes == ["0" * 64]
    with contextlib.closing(Session(f"http://127.0.0.1:{port}", "another")) as session:
        assert session.health().protocol == PROTOCOL
        with pytest.raises(MasterUnreachableError, match="DET_TOKEN is of another master, or a stranger"):
            session.call(routes.GET_MASTER)


def test_a_token_in_the_clear_is_refused_with_a_sentence(home: Home, port: int) -> None:
    start(home, port)
    address = f"http://127.0.0.1:{port}/api/v1"
    answer = requests.get(f"{address}/master", headers={"Authorization": f"Bearer {token_of(home)}"}, timeout=PATIENCE)
    assert answer.status_code == 426
    assert "takes no token in the clear" in answer.json()["error"]
    assert requests.get(f"{address}/master", timeout=PATIENCE).status_code == 401


def test_a_proof_is_of_one_connection(home: Home, port: int) -> None:
    start(home, port)
    url, here = f"http://127.0.0.1:{port}/api/v1", address_text(("127.0.0.1", port))
    with requests.Session() as one, requests.Session() as other:
        answer = one.get(f"{url}/introduction", params={"nonce": "1" * 64}, timeout=PATIENCE).json()
        assert answer["address"] == here
        other.get(f"{url}/introduction", params={"nonce": "1" * 64}, timeout=PATIENCE)
        body = {"proof": Meeting("1" * 64, answer["nonce"], here).proof_of_client(token_of(home))}
        assert other.post(f"{url}/introduction", json=body, timeout=PATIENCE).status_code == 401
        assert other.get(f"{url}/master", timeout=PATIENCE).status_code == 401
        assert one.post(f"{url}/introduction", json=body, timeout=PATIENCE).status_code == 200
        assert one.get(f"{url}/master", timeout=PATIENCE).status_code == 200
        # The master's own half is no client's.
        mirrored = {
            "proof": other.get(f"{url}/introduction", params={"nonce": "2" * 64}, timeout=PATIENCE).json()["proof"]
        }
        assert other.post(f"{url}/introduction", json=mirrored, timeout=PATIENCE).status_code == 401


@pytest.mark.long
def test_another_user_cannot_take_the_socket_and_is_told_nothing_at_one(
    home: Home, port: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    needs_another_user()
    runtime = start(home, port)
    kill(runtime)
    home.socket.unlink()
    with pytest.raises(PermissionError), stranger(home.socket, tmp_path):
        pass
    open_to_all = Path(f"/tmp/det-open-{os.getpid()}")
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    try:
        with stranger(open_to_all / "master.sock", tmp_path) as impostor:
            with pytest.raises(NotOursError, match="is of user 65534"):
                dial(open_to_all / "master.sock", 10)
            session = Session(url_of(open_to_all / "master.sock"), "the token", attempts=2)
            with pytest.raises(MasterUnreachableError, match=r"The token was not told .* user 65534"):
                session.call(routes.GET_MASTER)
            assert impostor.heard == ""
    finally:
        open_to_all.rmdir()


@pytest.mark.long
def test_beyond_plain_tcp_the_certificate_says_who_it_is(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here, which makes the certificate")
    folder, port = tmp_path_factory.mktemp("tls"), free_port()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    extra = ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*made, *extra], check=True, capture_output=True)
    home = Home(folder / "home")
    runtime = start(home, port, "--host", "localhost", "--tls-cert", str(certificate), "--tls-key", str(key))
    try:
        assert runtime.tcp == f"https://localhost:{port}"
        with contextlib.closing(Session(runtime.url, token_of(home))) as session:  # the socket has no TLS
            assert session.call(routes.GET_MASTER).pid == runtime.pid
        with (
            contextlib.closing(Session(runtime.tcp, token_of(home))) as session,
            pytest.raises(MasterUnreachableError, match="certificate"),
        ):
            session.call(routes.GET_MASTER)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        with contextlib.closing(Session(runtime.tcp, token_of(home))) as session:
            assert session.call(routes.GET_MASTER).pid == runtime.pid
    finally:
        with contextlib.closing(Session(runtime.url, token_of(home))) as session:
            session.call(routes.SHUT_DOWN, kill=True)
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


@pytest.mark.long
def test_a_session_takes_up_a_token_that_was_replaced(home: Home, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(home.path))
    kill(start(home, port))
    home.exposing_port.write_text(f"{port}\n")  # as an earlier version has left it
    before = token_of(home)
    runtime = start(home, port)
    assert token_of(home) != before
    session = connect()
    kill(runtime)
    home.token.unlink()
    again = start(home, port)
    assert session.call(routes.GET_MASTER).pid == again.pid


@pytest.mark.long
def test_the_home_of_an_older_master_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = Home.default()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        older = {
            "url": f"http://127.0.0.1:{listening.getsockname()[1]}",
            "pid": os.getpid(),
            "version": "0.0.1",
            "protocol": PROTOCOL,
        }
        runtime = RuntimeFile(**older, start=start_mark(os.getpid()) or "", python=sys.executable, started="")
        home.path.mkdir(parents=True, exist_ok=True)
        home.runtime.write_text(runtime.model_dump_json())
        home.token.write_text("t" * 43)
        with pytest.raises(ProtocolMismatchError, match=r"version 0\.0\.1.*told nothing.*`det down` and `det up`"):
            connect()
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
