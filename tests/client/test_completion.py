"""What the shell completes: names and states, of a master that answers; where none does, nothing is said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from local_experiments import write_experiment

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
    write_experiment()
    asked = 'COMP_WORDS=(det experiment describe lo); COMP_CWORD=3; PATH=$1:$PATH; eval "$(det completion bash)"; '
    asked += '_det_completion det; echo "${COMPREPLY[@]}"'
    binaries = sys.executable.rpartition("/")[0]
    done = subprocess.run(["bash", "-c", asked, "bash", binaries], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("local-1\n", "")


def test_experiments_trials_and_states_are_completed() -> None:
    write_experiment(trials=2)
    write_experiment(name="second")
    assert set(completed("experiment", "describe")) == {"local-1", "local-2"}
    assert completed("trial", "describe", begun="local-1/") == ["local-1/1", "local-1/2"]
    assert completed("experiment", "list", "--state", begun="Co") == ["Completed"]
    assert "describe" in completed("experiment", begun="de")
    assert completed("e", "describe", begun="local-2") == ["local-2"]


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
