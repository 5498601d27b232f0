"""Notebooks in PyTorch as people write them: plain, locally and on the cluster they train to the same losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_run import Kernels, check, notebooks

pytestmark = pytest.mark.slow

#: Those of `make test`.
FIRST = ("torch_everything_in_one_cell",)
#: Those of `make soak`.
LAST = ("torch_augmentation",)


@pytest.mark.parametrize("path", notebooks("torch", FIRST, LAST))
def test_a_notebook_trains_the_same_everywhere(path: Path, torch_kernels: Kernels, tmp_path: Path) -> None:
    check(path, torch_kernels, tmp_path)
