"""matplotlib: what is set for all figures."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from det_native.inspection.adapter import Library

#: Set by the notebook itself, once the first figure is drawn.
_OF_THE_NOTEBOOK = frozenset({"backend", "backend_fallback", "interactive"})


def _settings(matplotlib: Any) -> dict[str, Hashable]:
    values = dict.items(matplotlib.rcParams)  # its own way chooses a backend
    return {f"rcParams[{name!r}]": str(value) for name, value in values if name not in _OF_THE_NOTEBOOK}


LIBRARY = Library(settings=_settings)
