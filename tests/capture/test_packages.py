"""Which installed packages a program imports."""

from __future__ import annotations

from det_native.capture.packages import packages_of
from det_native.schema.worker_environment import PackageUse

CELL = """
import json, numpy as np
from torch import nn
import det_native as det
try:
    import pandas
except ImportError:
    pandas = None
def draw():
    import matplotlib.pyplot as plt
class Model:
    import scipy.stats
"""


def test_what_is_imported_in_any_case_is_required() -> None:
    found = {use.module: use.required for use in packages_of([(CELL, "[1]")])}
    assert found == {"numpy": True, "torch": True, "pandas": False, "matplotlib": False, "scipy": True}


def test_each_is_named_once_where_it_is_required() -> None:
    sources = [("def f():\n    import numpy", "[1]"), ("import numpy.linalg", "[2]")]
    found = packages_of(sources, [("yaml.nodes", "[3]")])
    assert found == [PackageUse("numpy", "[2]"), PackageUse("yaml", "[3]")]


def test_what_only_unneeded_cells_import_is_not_required() -> None:
    sources = [("import seaborn, pandas", "[1]"), ("import pandas", "[2]")]
    uses = packages_of(sources, optional={"[1]": 1})
    assert {use.module: use.required for use in uses} == {"seaborn": False, "pandas": True}
