"""What changes ``sys.path``: the user's folders count, those of installed packages do not."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from det_native.capture.side_effects.process import process_state, what_was_set


def test_a_package_that_adds_a_folder_of_its_own_sets_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = process_state()
    # As setuptools does, which TensorFlow imports.
    sys.path.append(str(Path(sysconfig.get_paths()["purelib"]) / "setuptools" / "_vendor"))
    assert what_was_set(before, process_state(), "import tensorflow as tf") == frozenset()
    sys.path.append(str(tmp_path))
    assert what_was_set(before, process_state(), "sys.path.append(folder)") == {"sys.path"}
