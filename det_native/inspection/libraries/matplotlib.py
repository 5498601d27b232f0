"""matplotlib: nothing of its objects is special."""

from __future__ import annotations

from det_native.inspection.adapter import Library

LIBRARY = Library()
