"""Reaching a master by SSH: a real sshd on loopback, with another home, environment and, for root, user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from small_disks import small_disk
from ssh_machine import SshMachine, running_machine
from stranger import needs_another_user, stranger

from det_native import PROTOCOL, __version__
from det_native.client.connect import connect
from det_native.client.remote.target import Target, parse_target
from det_native.errors import (
    ArgumentError,
    AuthenticationError,
    DetError,
    MasterStartError,
    MasterUnreachableError,
    NoMasterError,
    ProtocolMismatchError,
)
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.processes import wait_until_gone

PATIENCE = 240.0
# A machine that is reached through another one, with a key that only the agent has.
BEHIND = """
Host behind
    HostName 127.0.0.1
    ProxyJump hop
Host hop
    HostName localhost
Host *
    Port {port}
    User {user}
    IdentityAgent {agent}
    IdentityFile {none}
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
"""


@pytest.fixture(scope="module")
def shared_machine() -> Iterator[SshMachine]:
    """A machine with a master that the tests share."""
    with running_machine() as machine:
        yield machine


@pytest.fixture
def machine(shared_machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """The machine as this test reaches it."""
    with shared_machine.as_seen_here(monkeypatch) as seen:
        yield seen


def det(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "det_native.client.command", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, **variables}
    )


def refusal(address: str, kind: type[DetError]) -> str:
    """Return the sentence with which a machine is not reached."""
    with pytest.raises(kind) as caught:
        connect(address)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    return text


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "target", "arguments"),
        [
            ("ssh://gpu-box", Target("gpu-box"), ["--", "gpu-box"]),
            ("SSH://me@gpu-box:2222/", Target("gpu-box", "me", 2222), ["-l", "me", "-p", "2222", "--", "gpu-box"]),
            ("ssh://me@[::1]:22", Target("::1", "me", 22), ["-l", "me", "-p", "22", "--", "::1"]),
            ("ssh://GPU_box?python=/opt/py", Target("GPU_box", python="/opt/py"), ["--", "GPU_box"]),
            ("ssh://a%40b@host", Target("host", "a@b"), ["-l", "a@b", "--", "host"]),
        ],
    )
    def test_what_ssh_is_told(self, address: str, target: Target, arguments: list[str]) -> None:
        assert parse_target(address) == target
        assert parse_target(target.name) == target
        assert target.arguments == arguments

    @pytest.mark.parametrize(
        ("address", "says"),
        [
            ("ssh://", "is not of the form"),
            ("ssh://-oProxyCommand=evil", "is not of the form"),
            ("ssh://-oProxyCommand=evil@host", "is not of the form"),
            ("ssh://host:0", "is not of the form"),
            ("ssh://host:70000", "is not of the form"),
            ("ssh://host name", "is not of the form"),
            ("ssh://host/folder", "is not of the form"),
            ("ssh://me:secret@host", "must not hold a password"),
            ("ssh://host?pyhton=/x", "nothing is known"),
            ("ssh://host?python=x", "absolute path"),
            ("me@host", 'is named "ssh://me@host"'),
            ("ssh:/host", 'is named "ssh://host"'),
            ("SSH:me@host:22", 'is named "ssh://me@host:22"'),
        ],
    )
    def test_what_is_none(self, address: str, says: str) -> None:
        with pytest.raises(ArgumentError, match=says) as caught:
            connect(address)
        assert "secret" not in str(caught.value)


@pytest.mark.slow
class TestConnected:
    def test_the_master_there_is_found_by_all_over_one_connection(
        self, machine: SshMachine, capsys: pytest.CaptureFixture[str]
    ) -> None:
        session = connect(machine.address)
        info = session.call(routes.GET_MASTER)
        assert info.home == str(machine.home_there.path)
        assert info.pid == machine.master.pid
        assert session.url == machine.address
        assert psutil.Process(machine.master.pid).uids().real == machine.user.pw_uid
        said = capsys.readouterr().out
        assert f"det -m {machine.address} down" in said or not said, "said by whoever started it"
        link = machine.connection().standing()
        assert link is not None
        assert connect(machine.address) is session
        shown = det("status", DET_MASTER=machine.address)
        assert shown.returncode == 0, shown.stderr
        assert machine.address in shown.stdout
        assert machine.connection().standing() == link
        assert "token" not in shown.stdout

    @pytest.mark.long
    def test_no_port_is_open_and_the_sockets_are_their_users_only(self, machine: SshMachine) -> None:
        connect(machine.address)
        link = machine.connection().standing()
        assert link is not None
        for process in (link.pid, machine.master.pid):
            connections = psutil.Process(process).net_connections()
            assert [each for each in connections if each.status == psutil.CONN_LISTEN] == []
        here = Path(link.socket)
        assert here.stat().st_uid == os.getuid()
        assert (here.stat().st_mode & 0o777, here.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        there = machine.home_there.socket
        assert (there.stat().st_mode & 0o777, there.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    @pytest.mark.long
    def test_another_user_cannot_take_their_places(self, machine: SshMachine, tmp_path: Path) -> None:
        needs_another_user()
        connect(machine.address)
        link = machine.connection().standing()
        assert link is not None
        here, there = Path(link.socket), machine.home_there.socket
        assert machine.connection().stop(kill=False)
        assert not here.exists()
        assert not there.exists()
        for place in (here, there):
            with pytest.raises(PermissionError), stranger(place, tmp_path):
                pass

    @pytest.mark.long
    def test_the_users_agent_and_jump_hosts_are_used(self, machine: SshMachine) -> None:
        agent = machine.folder / "agent"
        started = subprocess.Popen(["ssh-agent", "-D", "-a", str(agent)], stdout=subprocess.DEVNULL)
        config, known = machine.folder / "ssh_config", machine.folder / "known_hosts"
        kept, hosts = config.read_text(), known.read_text()
        try:
            while not agent.exists():
                assert started.poll() is None
            added = ["ssh-add", "-q", str(machine.folder / "key")]
            subprocess.run(added, env={**os.environ, "SSH_AUTH_SOCK": str(agent)}, check=True)
            key = hosts.partition(" ")[2].strip()
            known.write_text(f"{hosts}[localhost]:{machine.port} {key}\n")
            config.write_text(
                BEHIND.format(
                    port=machine.port, user=machine.user.pw_name, agent=agent, known=known, none=machine.folder / "none"
                )
            )
            before = (machine.folder / "sshd.log").read_text().count("Accepted publickey")
            assert connect("ssh://behind").call(routes.GET_MASTER).home == str(machine.home_there.path)
            assert (machine.folder / "sshd.log").read_text().count("Accepted publickey") == before + 2
        finally:
            config.write_text(kept)
            known.write_text(hosts)
            started.terminate()
            started.wait(timeout=PATIENCE)

    @pytest.mark.long
    def test_several_at_once_make_one_connection(self, machine: SshMachine) -> None:
        connect(machine.address)
        assert machine.connection().close()
        log = machine.folder / "sshd.log"
        before = log.read_text().count("Accepted publickey")
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: det("status", DET_MASTER=machine.address), range(4)))
        assert [each.returncode for each in done] == [0] * 4, done
        assert log.read_text().count("Accepted publickey") == before + 1

    @pytest.mark.long
    def test_a_cut_is_mended_by_the_next_request(self, machine: SshMachine) -> None:
        session = connect(machine.address)
        before = machine.connection().standing()
        assert machine.cut()
        assert session.call(routes.GET_MASTER).pid == machine.master.pid
        after = machine.connection().standing()
        assert before is not None
        assert after is not None
        assert (after.socket, after.pid == before.pid) == (before.socket, False)

    @pytest.mark.long
    def test_a_question_over_a_dead_line_is_asked_over_a_new_one(self, machine: SshMachine) -> None:
        """As after a sleep: what is sent arrives nowhere, and nobody has said so."""
        session = connect(machine.address)
        before = machine.connection().standing()
        machine.freeze()
        try:
            shown = det("-m", machine.address, "status")
        finally:
            machine.freeze(signal.SIGCONT)
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert f"process {machine.master.pid}" in shown.stdout
        after = machine.connection().standing()
        assert before is not None
        assert after is not None
        assert after.pid != before.pid
        assert session.call(routes.GET_MASTER).pid == machine.master.pid

    @pytest.mark.long
    def test_a_connection_that_was_idle_for_long_is_made_again(self, machine: SshMachine) -> None:
        session = connect(machine.address)
        assert machine.connection().close()
        assert session.call(routes.GET_MASTER).pid == machine.master.pid

    @pytest.mark.long
    def test_leaving_ends_nothing_there(self, machine: SshMachine) -> None:
        connect(machine.address)
        master = machine.master
        assert machine.connection().close()
        assert not machine.connection().close()
        assert read_runtime(machine.home_there) == master

    @pytest.mark.long
    def test_a_master_that_was_started_again_there_is_found(self, machine: SshMachine) -> None:
        session = connect(machine.address)
        first = machine.master
        stopped = det("-m", machine.address, "down")
        assert "has stopped." in stopped.stdout, stopped.stderr
        assert wait_until_gone(first.pid, first.start, PATIENCE)
        with pytest.raises(NoMasterError, match="No master runs on") as caught:
            session.call(routes.GET_MASTER)
        assert f"det -m {machine.address} up" in str(caught.value)
        shown = det("-m", machine.address, "status")
        assert (shown.returncode, "No master runs on" in shown.stderr) == (3, True)
        assert "No master runs on" in det("-m", machine.address, "down").stdout
        started = det("-m", machine.address, "up")
        assert "Started a master on" in started.stdout, started.stderr
        assert session.call(routes.GET_MASTER).pid == machine.master.pid != first.pid
        assert f"at {machine.address}" in det("-m", machine.address, "version").stdout

    @pytest.mark.long
    def test_a_master_is_stopped_though_the_connection_was_cut(self, machine: SshMachine) -> None:
        connect(machine.address)
        assert machine.cut()
        stopped = det("-m", machine.address, "down")
        assert "has stopped." in stopped.stdout, stopped.stderr

    @pytest.mark.long
    def test_a_submit_starts_it_again(self, machine: SshMachine) -> None:
        connect(machine.address)
        assert machine.connection().stop(kill=False)
        assert connect(machine.address).call(routes.GET_MASTER).pid == machine.master.pid

    @pytest.mark.long
    def test_the_token_stays_with_its_user(self, machine: SshMachine) -> None:
        connect(machine.address)
        folder = Home.default().path / "remote"
        token = machine.home_there.token.read_text().strip()
        [noted] = [path for path in folder.iterdir() if token in path.read_text(errors="replace")]
        assert (noted.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
        assert machine.connection().close()
        assert not noted.exists()


@pytest.mark.slow
@pytest.mark.long
class TestRefused:
    def test_an_unknown_host(self, machine: SshMachine) -> None:
        text = refusal("ssh://nowhere.invalid", MasterUnreachableError)
        assert "The host nowhere.invalid is unknown" in text
        assert "~/.ssh/config" in text

    def test_the_variable_that_names_it_is_told(self, machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DET_MASTER", "ssh://nowhere.invalid")
        assert "The environment variable DET_MASTER points there" in refusal("", MasterUnreachableError)

    def test_no_server_at_the_port(self, machine: SshMachine) -> None:
        text = refusal("ssh://me@127.0.0.1:1", MasterUnreachableError)
        assert "me@127.0.0.1 cannot be reached by SSH" in text
        assert "`ssh -p 1 me@127.0.0.1` in a terminal" in text

    def test_a_key_that_is_refused(self, machine: SshMachine) -> None:
        keys = machine.folder / "authorized_keys"
        kept = keys.read_text()
        keys.write_text("")
        try:
            text = refusal(machine.address, AuthenticationError)
        finally:
            keys.write_text(kept)
        assert "accepts none of your SSH keys" in text
        assert "ssh-add" in text

    def test_a_host_key_that_has_changed(self, machine: SshMachine) -> None:
        known = machine.folder / "known_hosts"
        kept = known.read_text()
        other = " ".join((machine.folder / "key.pub").read_text().split()[:2])
        known.write_text(f"[127.0.0.1]:{machine.port} {other}\n")
        try:
            text = refusal(machine.address, AuthenticationError)
        finally:
            known.write_text(kept)
        assert "shows another host key than the one in" in text
        assert f'ssh-keygen -R "[127.0.0.1]:{machine.port}"' in text

    def test_a_host_key_that_nobody_has_seen(self, machine: SshMachine) -> None:
        known = machine.folder / "known_hosts"
        kept = known.read_text()
        known.write_text("")
        try:
            text = refusal(machine.address, AuthenticationError)
        finally:
            known.write_text(kept)
        assert "is not known yet: run `ssh -p" in text

    def test_no_python_there(self, machine: SshMachine) -> None:
        few = machine.folder / "few"
        few.mkdir(exist_ok=True)
        for name in ("sh", "tail"):
            (few / name).unlink(missing_ok=True)
            (few / name).symlink_to(f"/bin/{name}")
        with machine.configured(PATH=str(few), XDG_DATA_HOME="/nonexistent", SHELL="/nonexistent"):
            text = refusal(machine.address, MasterUnreachableError)
        assert "There is no Python 3.11 or newer on" in text
        assert f"{machine.address}?python=/path/to/python" in text

    def test_another_python_there(self, machine: SshMachine) -> None:
        assert "There is no Python /no/python on" in refusal(
            f"{machine.address}?python=/no/python", MasterUnreachableError
        )

    def test_the_package_missing_there(self, machine: SshMachine) -> None:
        bare = machine.folder / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
        python = bare / "bin" / "python"
        if machine.other_user:  # who cannot run this interpreter
            python.unlink()
            python.symlink_to("/usr/bin/python3")
        address = f"{machine.address}?python={python}"
        text = refusal(address, MasterUnreachableError)
        assert "det_native is not installed on" in text
        assert f"`det remote setup {address}`" in text

    def test_a_version_there_from_before_ssh(self, machine: SshMachine) -> None:
        package = machine.folder / "old" / "det_native"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('__version__ = "0.0.9"\n')
        text = refusal(machine.python_with("old-python", PYTHONPATH=str(package.parent)), ProtocolMismatchError)
        assert f"has det_native 0.0.9, which cannot be reached by SSH yet; here is {__version__}" in text
        assert "det remote setup" in text

    @pytest.mark.parametrize(
        ("protocol", "remedy"), [(PROTOCOL - 1, "det remote setup"), (PROTOCOL + 1, "Upgrade here")]
    )
    def test_another_protocol(self, machine: SshMachine, protocol: int, remedy: str) -> None:
        folder = machine.folder / f"protocol-{protocol}"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(
            f"import det_native._version as v\nv.PROTOCOL = {protocol}\nv.__version__ = '9.9.9'\n"
        )
        address = machine.python_with(
            f"python-{protocol}", PYTHONPATH=str(folder), DET_HOME=str(machine.folder / "there" / f"home-{protocol}")
        )
        text = refusal(address, ProtocolMismatchError)
        assert f"is version 9.9.9 (protocol {protocol}), this client is {__version__}" in text
        assert remedy in text
        assert "has stopped" in det("-m", address, "down").stdout, "though the versions differ"

    def test_two_laptops_with_other_versions(self, machine: SshMachine, tmp_path: Path) -> None:
        connect(machine.address)
        newer = tmp_path / "newer"
        newer.mkdir()
        (newer / "sitecustomize.py").write_text(
            f"import det_native._version as v\nv.PROTOCOL = {PROTOCOL + 1}\nv.__version__ = '9.9.9'\n"
        )
        there = machine.folder / "newer"
        shutil.copytree(newer, there)
        here = os.pathsep.join([str(newer), os.environ.get("PYTHONPATH", "")]).rstrip(":")
        try:
            refused = det("-m", machine.address, "status", PYTHONPATH=here)
            assert f"is version {__version__} (protocol {PROTOCOL}), this client is 9.9.9" in refused.stderr
            assert f"`det remote setup {machine.address}` brings this version there" in refused.stderr
            assert "running trials go on" in refused.stderr
            assert det("-m", machine.address, "status").returncode == 0, "the first laptop works on"

            address = machine.python_with("newer-python", PYTHONPATH=str(there))  # as the setup would have made it
            assert "has stopped" in det("-m", address, "down", PYTHONPATH=here).stdout
            assert "Started a master" in det("-m", address, "up", PYTHONPATH=here).stdout
            text = refusal(machine.address, ProtocolMismatchError)
            assert text.endswith("Upgrade here: pip install det-native==9.9.9")
        finally:
            assert "has stopped" in det("-m", machine.address, "down").stdout

    def test_the_home_of_another_user(self, machine: SshMachine) -> None:
        if not machine.other_user:
            pytest.skip("needs a second user")
        foreign = machine.folder / "foreign"
        foreign.mkdir(mode=0o700)
        address = machine.python_with("foreign-python", DET_HOME=str(foreign))
        text = refusal(address, MasterStartError)
        assert f"On {parse_target(address).machine}: " in text
        assert "Set DET_HOME to a folder of yours" in text

    def test_a_full_disk_there(self, machine: SshMachine) -> None:
        with small_disk(machine.folder / "small", size="1m") as disk:
            os.chown(disk.path, machine.user.pw_uid, machine.user.pw_gid)
            disk.fill()
            text = refusal(machine.python_with("full-python", DET_HOME=str(disk.path)), MasterStartError)
        assert f"the disk of its home {disk.path} is full" in text
        assert "Make room there" in text

    def test_a_server_that_forwards_nothing(self, machine: SshMachine) -> None:
        with machine.configured("AllowStreamLocalForwarding no"):
            text = refusal(machine.address, MasterUnreachableError)
        assert "lets no socket be forwarded" in text

    def test_an_older_master_at_a_port_is_told_nothing(self, machine: SshMachine) -> None:
        connect(machine.address)
        assert machine.connection().close()
        runtime, kept = machine.home_there.runtime, machine.home_there.runtime.read_text()
        older = machine.master.model_copy(update={"url": "http://127.0.0.1:9", "version": "0.0.1"})
        runtime.write_text(older.model_dump_json())
        try:
            text = refusal(machine.address, ProtocolMismatchError)
        finally:
            runtime.write_text(kept)
        assert "is version 0.0.1" in text
        assert f"`det -m {machine.address} down` ends the older master" in text

    def test_no_ssh_here(self, machine: SshMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(DetError, match="install OpenSSH's client"):
            connect(machine.address)
