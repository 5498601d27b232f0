"""traitlets: widgets, whose values users set."""

from __future__ import annotations

from det_native.inspection.adapter import Adapter, Library


class _Widget(Adapter):
    changes_alone = False


LIBRARY = Library({"traitlets.HasTraits": _Widget()})
