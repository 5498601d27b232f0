"""What IPython gives to cells, on a worker: ``display`` and ``get_ipython()``."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from det_harness.logged.showing import display, ipythons_display


class _NoShell:
    """What ``get_ipython()`` gives on a worker: accepts every call and ignores it; false in conditions."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "<no IPython shell: this is a worker>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self


@contextmanager
def notebook_names() -> Iterator[None]:
    """Provide the names that IPython adds to the builtins, where it has not; its own ``display`` does the same."""
    added = {"display": display, "get_ipython": _NoShell()}
    missing = {name: value for name, value in added.items() if not hasattr(builtins, name)}
    vars(builtins).update(missing)
    try:
        with ipythons_display():
            yield
    finally:
        for name, value in missing.items():
            if getattr(builtins, name, None) is value:
                delattr(builtins, name)
