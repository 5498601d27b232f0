"""traitlets: widgets, whose values users set."""

from __future__ import annotations

from det_native.inspection.adapter import Adapter, Library

LIBRARY = Library({"traitlets.HasTraits": Adapter()})
