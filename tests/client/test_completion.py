"""What the shell completes: names and states, of a master that answers; where none does, nothing is said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from master_parts import Master
from put_experiments import put_experiment

from det_native.client import completion
from det_native.client.command import cli


def completed(*words: str, begun: str = "") -> list[str]:
    found = ShellComplete(cli, {}, "det", completion.VARIABLE).get_completions(list(words), begun)
    return [item.value for item in found]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_asks_det(shell: str) -> None:
    printed = CliRunner().invoke(cli, ["completion", shell], catch_exceptions=False)
    assert printed.exit_code == 0
    assert f"_DET_COMPLETE={shell}_complete" in printed.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_after_the_script() -> None:
    asked = 'COMP_WORDS=(det experiment descr); COMP_CWORD=2; PATH=$1:$PATH; eval "$(det completion bash)"; '
    asked += '_det_completion det; echo "${COMPREPLY[@]}"'
    binaries = sys.executable.rpartition("/")[0]
    done = subprocess.run(["bash", "-c", asked, "bash", binaries], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("describe\n", "")


@pytest.mark.slow
def test_experiments_trials_and_states_are_completed(named_master: Master) -> None:
    put_experiment(named_master, count=2)
    put_experiment(named_master, name="second")
    assert set(completed("experiment", "describe")) == {"1", "2"}
    assert completed("trial", "describe", begun="1.") == ["1.1", "1.2"]
    assert completed("experiment", "list", "--state", begun="Co") == ["Completed"]
    assert "describe" in completed("experiment", begun="de")
    assert completed("e", "describe", begun="2") == ["2"]


def test_where_nothing_answers_nothing_is_completed_and_nothing_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:9")
    assert completed("experiment", "describe") == []
    monkeypatch.setenv("DET_MASTER", "ssh://nobody@nowhere.invalid")
    assert completed("checkpoint", "describe") == []

    def broken(*_: object) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(completion, "_experiments", broken)
    assert completed("trial", "logs") == []
    assert capsys.readouterr() == ("", "")
