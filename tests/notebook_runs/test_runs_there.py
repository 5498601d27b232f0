"""A notebook runs on the machine of a master behind SSH, to which its folder is sent: a real sshd on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from run_parts import write_notebook
from ssh_machine import SshMachine, running_machine

from det_native.client.command import cli

pytestmark = [pytest.mark.long]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """A machine of this test's own, as this process reaches it."""
    with running_machine() as machine, machine.as_seen_here(monkeypatch) as seen:
        yield seen


def det(machine: SshMachine, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-m", machine.address, *words], catch_exceptions=False)


def ended_there(machine: SshMachine, number: int) -> dict[str, object]:
    deadline = time.monotonic() + 120
    while True:
        printed = det(machine, "notebook", "describe", str(number), "--there", "--json").stdout
        run: dict[str, object] = json.loads(printed[printed.index("{") :])  # below "Started a master"
        if run["state"] not in ("STARTING", "RUNNING"):
            return run
        assert time.monotonic() < deadline, run
        time.sleep(0.5)


def test_the_folder_travels_and_files_that_are_gone_here_go_there(machine: SshMachine, tmp_path: Path) -> None:
    folder = tmp_path / "my work"
    path = write_notebook(
        folder / "nb.ipynb", "n = 1", "import os, helper\nopen(f'made {n}', 'w').close()\n"
        "print(sorted(os.listdir('.')), helper.answer, n)", tags={0: "parameters"},
    )  # fmt: skip
    (folder / "helper.py").write_text("answer = 42\n")
    (folder / "old.csv").write_text("1\n")
    (folder / ".env").write_text("API_TOKEN=abcdefgh12345678\n")
    submitted = det(machine, "submit", str(path), "--there", "-p", "n=2")
    assert "Run 1: nb.ipynb, 3 cells" in submitted.stdout, submitted.output
    assert ".env" in submitted.stderr
    run = ended_there(machine, 1)
    assert run["state"] == "COMPLETED", run
    (folder / "old.csv").unlink()
    (folder / "helper.py").write_text(
        "import os\nraise ValueError(os.path.exists('old.csv'), os.path.exists('made 2'))\n"
    )
    assert "Run 2" in det(machine, "submit", str(path), "--there").stdout
    run = ended_there(machine, 2)
    assert run["error"] == "Cell 2 of 2 raised ValueError: (False, True)", "what the run made stays"
    assert {run["machine"] for run in json.loads(det(machine, "notebook", "list", "--json").stdout)} != {""}
    assert "Run 2 failed" in det(machine, "notebook", "stop", "2", "--there").stdout


def test_what_cannot_run_is_refused_before_the_folder_is_sent(machine: SshMachine, tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "nb.ipynb", "print(1)")
    words = ["submit", str(path), "--there"]
    refused = CliRunner().invoke(cli, ["-m", machine.address, *words, "-p", "a=1"])
    assert "no cell tagged" in str(refused.exception)
    assert "--there needs a master that is named by ssh://" in CliRunner().invoke(cli, words).stderr
