"""Notebooks in tf.keras 2 as people write them: plain, locally and on the cluster they train to the same losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from keras_generation import only_keras_2
from notebook_run import Kernels, check, notebooks

pytestmark = [pytest.mark.slow, only_keras_2]

#: Those of `make test`.
FIRST = ("keras2_home_tabular_stopping",)
#: Those of `make soak`.
LAST = (
    "keras2_home_gan",
    "keras2_home_kfold",
)


@pytest.mark.parametrize("path", [*notebooks("keras2", FIRST, LAST), *notebooks("estimator")])
def test_a_notebook_trains_the_same_everywhere(path: Path, keras_kernels: Kernels, tmp_path: Path) -> None:
    check(path, keras_kernels, tmp_path)
