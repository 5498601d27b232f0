"""The places over which storage has to keep its contract."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest


@pytest.fixture(params=["path", "file", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of an empty folder: a path, a ``file://`` address, or one in fsspec's memory."""
    if request.param == "path":
        yield str(tmp_path / "store")
    elif request.param == "file":
        yield f"file://{tmp_path}/store"
    else:
        name = f"/store-{secrets.token_hex(4)}"
        yield f"memory:/{name}"
        memory = fsspec.filesystem("memory")
        if memory.exists(name):
            memory.rm(name, recursive=True)
