"""What all tests of runs in this process share."""

from __future__ import annotations

import functools
import importlib.metadata

import pytest

_packages = functools.cache(importlib.metadata.packages_distributions)


@pytest.fixture(autouse=True)
def packages_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare each run the search for installed packages: it takes longer than the training of a test.

    It is made where a program imports something from outside its folder, as one in a test does: pytest itself.
    """
    monkeypatch.setattr(importlib.metadata, "packages_distributions", _packages)
