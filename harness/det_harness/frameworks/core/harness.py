"""What the harness does with code that reports by the Core API."""

from __future__ import annotations

from det_harness.frameworks.base import FrameworkHarness


class CoreHarness(FrameworkHarness):
    """See ``FrameworkHarness``."""
