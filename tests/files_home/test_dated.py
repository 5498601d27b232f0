"""Files that a worker has named by its clock have the notebook's names here."""

from __future__ import annotations

import datetime

import pytest

from det_native.files_home.dated import as_here

DAY = datetime.date.today().strftime("%Y%m%d")
ISO = datetime.date.today().isoformat()
HERE, THERE, LATER = f"{DAY}-101500", f"{DAY}-101542", f"{DAY}-101617"


@pytest.mark.parametrize(
    ("named", "written", "here"),
    [
        ([f"logs/{HERE}"], [f"logs/{THERE}/train/e.1"], {f"logs/{THERE}/train/e.1": f"logs/{HERE}/train/e.1"}),
        ([f"model_{HERE}_*.h5"], [f"model_{THERE}_2.h5"], {f"model_{THERE}_2.h5": f"model_{HERE}_2.h5"}),
        ([f"{ISO}_10.15.00/a"], [f"{ISO}_10.15.42/a"], {f"{ISO}_10.15.42/a": f"{ISO}_10.15.00/a"}),
        ([f"{DAY}/a"], [f"{DAY}/a"], {}),
        ([f"logs/{HERE}"], ["best.keras", "20010101-101500/x"], {}),
        ([f"logs/{HERE}"], [f"logs/{THERE}/a", f"logs/{LATER}/a"], {}),
        ([f"{HERE}", f"{LATER}"], [f"{THERE}/a"], {}),
        ([f"logs/{HERE}"], [f"logs/{HERE}/a"], {}),
        (["plain"], [f"{THERE}/a"], {}),
    ],
)
def test_a_moment_is_that_of_the_notebook(named: list[str], written: list[str], here: dict[str, str]) -> None:
    assert as_here(written, named) == here
