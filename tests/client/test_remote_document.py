"""Every command and every line of Python in ``docs/remote.md`` is run, in its order, against a real sshd."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_machine import SshMachine, running_machine

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "remote.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MESSAGES = re.findall(r"^\| `([^`]+)` \|", TEXT, re.MULTILINE)
PATIENCE = 280.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """A machine of this test's own, as this process reaches it."""
    with running_machine() as machine, machine.as_seen_here(monkeypatch) as seen:
        yield seen


@pytest.mark.slow
@pytest.mark.long
def test_its_lines_run(machine: SshMachine, tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "import numpy"}]}))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "images.tar").write_bytes(os.urandom(1_000_000))
    det = tmp_path / "bin" / "det"
    det.parent.mkdir()
    det.write_text(f'#!/bin/sh\nexec {sys.executable} -m det_native.client.command "$@"\n')
    det.chmod(0o755)
    assert shutil.which("bash") is not None
    environment = {**os.environ, "PATH": f"{det.parent}:{os.environ['PATH']}"}
    packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages"))
    fresh = str(machine.folder / "there" / "fresh")
    with machine.configured(PYTHONPATH=packages, PIP_NO_INDEX="1", XDG_DATA_HOME=fresh):
        for language, source in BLOCKS:
            text = source.replace("ssh://user@gpu-box", machine.address)
            command = [sys.executable, "-c", text] if language == "python" else ["bash", "-e", "-c", text]
            done = subprocess.run(
                command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            environment |= {"DET_MASTER": machine.address} if "export DET_MASTER" in text else {}
    assert {language for language, _ in BLOCKS} == {"bash", "python"}


def test_its_messages_are_those_of_the_product() -> None:
    folders = (ROOT / "det_native", ROOT / "harness")
    sources = "\n".join(path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    assert len(MESSAGES) > 8
    assert [message for message in MESSAGES if message not in sources] == []
