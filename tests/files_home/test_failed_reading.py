"""What code reads of running trainings, where its reading goes wrong: the code is to run all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from det_native.capture.syntax import tree_of
from det_native.client.handles import Experiment
from det_native.files_home.registry import PendingFiles
from det_native.files_home.uses import PathUse
from det_native.files_home.waiting import reads_of


class Handle(Experiment):
    def __init__(self) -> None:
        self._id = 7


def test_code_whose_reading_fails_runs_with_a_warning() -> None:
    files = PendingFiles(Handle(), Path.cwd(), 0.0, (PathUse(str(Path("best.pt").absolute()), "best.pt"),), ended=True)

    def fails(name: str) -> Any:
        raise RuntimeError(name)

    with pytest.warns(UserWarning, match=r"cannot be told \(RuntimeError: load\).*det.experiment\(7\).wait\(\)"):
        assert reads_of([tree_of("load('best.pt')").body], fails, [files]) == []
    found = reads_of([tree_of("load('best.pt')").body], {}.get, [files])
    assert [use.text for _, use in found] == ["best.pt"]
