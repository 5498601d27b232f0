"""Every public name of Determined 0.38.1 can be imported, or its import says why not and what to use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_determined_alias import run_python

ROOT = Path(__file__).resolve().parents[2]
#: Being built: their names come with the branch of Trainer and the callbacks.


@pytest.mark.slow
def test_every_name_is_here_or_explained(tmp_path: Path) -> None:
    target = tmp_path / "names.md"
    # In a process of its own: it imports every framework.
    process = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "determined_names.py"), str(target)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")},
    )
    missing = {line.partition(":")[0] for line in process.stdout.splitlines() if process.returncode}
    assert not missing, process.stdout + process.stderr
    page = target.read_text()
    assert page.count("\n## `determined") >= 25
    assert ("**not explained**" in page) == bool(missing)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("import determined.common.api", "det.experimental.client has the classes"),
        ("from determined import gpu", "code of yours needs nothing of it"),
        ("from determined.errors import WorkerError", "code of yours needs nothing of it"),
        ("from determined.experimental import Project", "There are no workspaces"),
        ("from determined.experimental.client import ResourcePool", "There are no resource pools"),
        ("from determined.experimental.client import create_user", "There are no users"),
        ("from determined.pytorch.samplers import SkipSampler", "adapt_batch_sampler"),
        ("from determined.experimental import nonsense", "Leave it out of the code"),
    ],
)
def test_an_absent_name_says_what_to_use(statement: str, says: str) -> None:
    printed = run_python(
        f"""
        import det_native.compat
        try:
            {statement}
        except ImportError as error:
            print(error)
        """
    )
    assert "det_native does not have it" in printed
    assert says in printed


def test_an_absent_attribute_is_an_attribute_error_that_says_it() -> None:
    printed = run_python(
        """
        import det_native.compat
        import determined as det
        import determined.errors, determined.experimental.client
        for owner, name in ((det, "gpu"), (det.errors, "WorkerError"), (det.experimental.client, "whoami")):
            assert not hasattr(owner, name)
            try:
                getattr(owner, name)
            except AttributeError as error:
                print(error)
        assert not hasattr(det.errors, "Nope")
        try:
            from determined.errors import Nope
        except ImportError as error:
            print(error)
        """
    )
    lines = printed.splitlines()
    assert [line.split(".")[0] for line in lines[:3]] == ["det_native has no determined"] * 3
    assert lines[3].startswith("cannot import name 'Nope'")


def test_errors_of_determined_catch_what_is_raised_here() -> None:
    run_python(
        """
        import det_native.compat, det_native.errors as own
        from determined.errors import CheckpointNotFound, InvalidConfigurationException
        assert CheckpointNotFound is own.CheckpointNotFoundError
        assert issubclass(own.ConfigurationError, InvalidConfigurationException)
        """
    )
