"""Notebooks in Keras 3 as people write them: plain, locally and on the cluster they train to the same losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from keras_generation import only_keras_3
from notebook_run import Kernels, check, notebooks

pytestmark = [pytest.mark.slow, only_keras_3]

#: Those of `make test`.
FIRST = ("keras3_everything_in_one_cell", "keras3_failed_and_again")
#: Those of `make soak`.
LAST = ("keras3_home_loop_of_fits",)


@pytest.mark.parametrize("path", notebooks("keras3", FIRST, LAST))
def test_a_notebook_trains_the_same_everywhere(path: Path, keras_kernels: Kernels, tmp_path: Path) -> None:
    check(path, keras_kernels, tmp_path)
