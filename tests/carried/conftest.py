"""What the first optimizer of a process imports, before any test."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(autouse=True, scope="session")
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")
