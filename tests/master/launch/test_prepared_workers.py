"""Workers with packages of their own: real virtual environments, from wheels made here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from launcher_contract import KIND, exits, trial_job
from tiny_wheels import make_wheel

from det_native.master.launch.local import LocalLauncher
from det_native.schema.exit_report import exit_report_of_run

pytestmark = [pytest.mark.slow]


@pytest.fixture
def launcher(make: Callable[..., LocalLauncher], tmp_path: Path) -> LocalLauncher:
    wheels = tmp_path / "wheels"
    for version in ("1.0", "2.0"):
        make_wheel(wheels, "tiny_pack", version)
    return make(slots=2, variables={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)})


def _run(launcher: LocalLauncher, folder: Path, *runs: str, packages: tuple[str, ...], ranks: int = 1) -> list[str]:
    """Run at once; return what each has written to its log."""
    for run in runs:
        job = trial_job(folder, run, "tiny pack")
        launcher.start(run, job, replace(KIND, packages=packages), ranks=ranks)
    exits(launcher, *runs)
    return [launcher.logs(run, 0).text for run in runs]


def _seen(folder: Path, run: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / run / "tiny.json").read_text())
    return found


def test_it_is_made_once_and_told_in_the_log(launcher: LocalLauncher, tmp_path: Path) -> None:
    first, second = _run(launcher, tmp_path, "r1", "r2", packages=("tiny-pack==1.0",))
    makers = [text for text in (first, second) if "Makes an environment with tiny-pack==1.0" in text]
    assert len(makers) == 1
    assert "Successfully installed tiny-pack-1.0" in makers[0]
    assert "The environment is made, in" in makers[0]
    assert _seen(tmp_path, "r1")["version"] == _seen(tmp_path, "r2")["version"] == "1.0"
    [third] = _run(launcher, tmp_path, "r3", packages=("tiny-pack==2.0",))
    assert _seen(tmp_path, "r3")["version"] == "2.0"
    [again] = _run(launcher, tmp_path, "r4", packages=("tiny-pack==1.0",))
    assert "an environment with" not in again, "made once"
    seen = _seen(tmp_path, "r4")
    assert seen["version"] == "1.0"
    assert Path(seen["prefix"]).parent == tmp_path / "environments"
    assert Path(seen["numpy"]).is_relative_to(seen["base"]), "what the worker has is not installed again"
    assert third
    assert launcher.standbys() == {}


def test_why_it_cannot_be_made_is_a_sentence(launcher: LocalLauncher, tmp_path: Path) -> None:
    [text] = _run(launcher, tmp_path, "r1", packages=("tiny-pack==9.0",))
    report = exit_report_of_run(tmp_path / "r1", 1)
    assert report is not None
    assert report.error is not None
    assert report.error.type == "WorkerEnvironmentError"
    assert "No matching distribution found for tiny-pack==9.0" in text
    assert text.count("1.0, 2.0") == 1, "the versions that there are"
    assert "cannot be made on the worker: Could not find a version that satisfies" in text
    assert "from versions: 1.0, 2.0" in report.error.message
    assert "\n" not in report.error.message
    _run(launcher, tmp_path, "r2", packages=("tiny-pack==2.0",))
    assert _seen(tmp_path, "r2")["version"] == "2.0"


def test_one_that_was_killed_in_the_making_is_made_anew(launcher: LocalLauncher, tmp_path: Path) -> None:
    _run(launcher, tmp_path, "r1", packages=("tiny-pack==1.0",))
    [made] = (tmp_path / "environments").glob("*/made.json")
    made.unlink()
    (made.parent / "bin" / "python").unlink()
    [text] = _run(launcher, tmp_path, "r2", packages=("tiny-pack==1.0",))
    assert "The environment is made" in text
    assert _seen(tmp_path, "r2")["version"] == "1.0"
