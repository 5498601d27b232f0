"""A worker and a notebook in one process: two namespaces that the same function has filled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from det_native.heap.call import CallSnapshot

Names = dict[str, Any]


@dataclass(kw_only=True)
class BothSides:
    """What both hold afterwards, and the sentences of both; `bring` puts in place what exceeds the limit."""

    worker: Names
    notebook: Names
    sentences: list[str]
    data: bytes
    bring: Callable[[], list[str]]


def train(
    fill: Callable[[], Names],
    change: Callable[[Names], object],
    *,
    notebook: Names | None = None,
    kept: Callable[[Names], list[Any]] = lambda names: [],
    limit: int = 1 << 30,
    exact: bool = True,
) -> BothSides:
    """Fill two namespaces, change what one holds, and put that in place in the other."""
    worker, home = fill(), fill() if notebook is None else notebook
    snapshots = [CallSnapshot(names, kept_elsewhere=kept(names), exact=exact) for names in (worker, home)]
    change(worker)
    changes = snapshots[0].changes(limit)
    sentences = changes.left_out + snapshots[1].put(changes.data)
    return BothSides(
        worker=worker,
        notebook=home,
        sentences=sentences,
        data=changes.data,
        bring=lambda: snapshots[1].put(changes.large),
    )
