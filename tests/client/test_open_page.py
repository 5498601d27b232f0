"""``det open``: the address of an experiment's page in the JupyterLab that runs, or how to start one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from local_experiments import write_experiment

from det_native.client.command import cli


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["open", *words], catch_exceptions=False)


def test_the_address_is_that_of_the_server_which_runs(runtime: Path) -> None:
    write_experiment()
    server = {"url": "http://localhost:8899/base/", "token": "a b", "pid": os.getpid(), "root_dir": "/"}
    (runtime / "jpserver-1.json").write_text(json.dumps(server))
    printed = run("local-1", "--print")
    assert (printed.exit_code, printed.output) == (
        0,
        "http://localhost:8899/base/lab?det-experiment=local-1&token=a%20b\n",
    )
    assert run("--print").output == "http://localhost:8899/base/lab?token=a%20b\n"


def test_without_a_server_it_says_how_to_start_it(runtime: Path) -> None:
    write_experiment()
    printed = run("local-1")
    assert printed.exit_code == 1
    assert "`jupyter lab` starts one" in printed.stderr
    assert "http://localhost:8888/lab?det-experiment=local-1" in printed.stderr
    assert not list(runtime.iterdir())
