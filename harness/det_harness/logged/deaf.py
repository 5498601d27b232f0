"""What takes the place of a recorder on the other ranks of a trial than the first."""

from __future__ import annotations

from typing import Any

from det_native.logged.place import Taker


class DeafRecorder(Taker):
    """Takes what is logged and printed on the other ranks than the first, which has the same, and keeps nothing."""

    def end_output(self) -> None:
        """End nothing."""

    def show(self, shown: Any, display_id: str = "", *, update: bool = False) -> bool:
        """Keep nothing; figures and tables are shown by the first rank."""
        from det_harness.logged.pictures import is_shown
        from det_harness.logged.tables import is_frame

        return is_frame(shown) or is_shown(shown)

    def settle(self) -> None:
        """Wait for nothing."""
