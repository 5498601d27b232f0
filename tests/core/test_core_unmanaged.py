"""Scripts that report to a master from anywhere: killed, failed, run once more, and named from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from recording import PATIENCE
from unmanaged_script import SAVED, STEPS

import det_native as det
from det_native.errors import ExperimentFailedError
from det_native.experimental import core_v2
from det_native.schema.home import Home
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("unmanaged_script.py")
LOSSES = [8.0 / 2**step for step in range(1, STEPS + 1)]


def run(folder: Path, ends: str, *name: str) -> subprocess.CompletedProcess[str]:
    """Run the script to its end."""
    command = [sys.executable, str(SCRIPT), str(folder), ends, *name]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder, check=False)


def newest() -> det.Experiment:
    """Return the experiment that was recorded last."""
    return det.experiment(det.experiments(limit=1)[0].id)


def end_of(experiment: det.Experiment) -> ExperimentState:
    """Wait for its end; return how it has ended."""
    with suppress(ExperimentFailedError):
        experiment.wait(show="none")
    return experiment.state


def losses(experiment: det.Experiment) -> list[float]:
    """Return the losses of its trial, of steps that follow each other."""
    rows = experiment.trials[0].metrics("training")
    assert [row["batch"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["loss"] for row in rows]


@pytest.mark.parametrize("ends", ["killed", "fails"])
def test_a_script_that_ends_in_its_middle_goes_on_by_its_name(recorded: Home, tmp_path: Path, ends: str) -> None:
    first = run(tmp_path, ends, ends)
    assert first.returncode != 0
    assert "continues after 0 False" in first.stdout
    experiment = newest()
    second = run(tmp_path, "", ends)
    assert second.returncode == 0, second.stderr
    assert f"continues after {SAVED} True" in second.stdout
    again = newest()
    assert again.id == experiment.id
    experiment = again
    assert end_of(experiment) is ExperimentState.COMPLETED
    assert losses(experiment) == LOSSES
    assert [row["loss"] for row in experiment.trials[0].metrics("validation")] == [LOSSES[-1]]
    assert [checkpoint.batch for checkpoint in experiment.trials[0].checkpoints] == [SAVED]


def test_without_a_name_each_run_is_an_experiment(recorded: Home, tmp_path: Path) -> None:
    assert run(tmp_path, "closes").returncode == 0
    first = newest()
    assert run(tmp_path, "").returncode == 0
    second = newest()
    assert first.id != second.id
    for experiment in (first, second):
        assert experiment.name == "a number"
        assert losses(experiment) == LOSSES
        assert end_of(experiment) is ExperimentState.COMPLETED


def test_an_error_of_the_script_is_that_of_the_experiment(recorded: Home, tmp_path: Path) -> None:
    assert run(tmp_path, "fails").returncode == 1
    with pytest.raises(ExperimentFailedError, match="in the middle"):
        newest().wait(show="none")


@contextmanager
def waiting(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Have the script train until it waits in its middle."""
    command = [sys.executable, str(SCRIPT), str(folder), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        assert any(line.strip() == "waiting" for line in process.stdout)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["stop", "Ctrl-C"])
def test_a_script_ends_when_it_is_asked_to(recorded: Home, tmp_path: Path, how: str) -> None:
    with waiting(tmp_path, "asks" if how == "stop" else "waits", how) as process:
        if how == "stop":
            newest().stop()
            assert process.wait(PATIENCE) == 0
        else:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) != 0
    assert end_of(newest()) is ExperimentState.CANCELED
    assert run(tmp_path, "", how).returncode == 0
    assert end_of(newest()) is ExperimentState.COMPLETED
    assert losses(newest()) == LOSSES


def test_a_name_that_a_process_works_under_is_refused(recorded: Home, tmp_path: Path) -> None:
    with waiting(tmp_path, "waits", "busy") as first:
        assert first.stdin is not None
        second = run(tmp_path, "", "busy")
        assert second.returncode == 1
        assert f"Process {first.pid} of this machine goes on with this training" in second.stderr
        assert "takes them in" not in second.stderr.splitlines()[-1]
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.wait(PATIENCE) == 0
    assert losses(newest()) == LOSSES


def test_nothing_is_recorded_where_that_is_off(tmp_path: Path) -> None:
    result = run(tmp_path, "")
    assert result.returncode == 0, result.stderr
    assert not (Path(os.environ["DET_HOME"]) / "det.db").exists()


def test_a_page_shows_it(recorded: Home, capsys: pytest.CaptureFixture[str]) -> None:
    core_v2.init(defaults=core_v2.DefaultConfig(name="shown", workspace="w"))
    try:
        core_v2.train.report_training_metrics(1, {"loss": 1.0})
        assert f"/experiments/{newest().id}" in core_v2.url_reverse_webui_exp_view()
        assert "workspace has no effect" in capsys.readouterr().out
    finally:
        core_v2.close()
    assert det.get_cluster_info() is None
