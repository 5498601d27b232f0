"""det_native itself: what stands for something elsewhere, and what never travels."""

from __future__ import annotations

from det_native.inspection.adapter import Library, NeverSent

LIBRARY = Library({"det_native.pytorch.LoopBatches": NeverSent("iterator")})
