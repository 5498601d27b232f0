"""What takes the place of a recorder on the other ranks of a trial than the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal


class DeafRecorder:
    """Takes what is logged on the other ranks of a trial than the first, and keeps nothing of it."""

    def log(self, metrics: Mapping[Any, Any]) -> None:
        """Keep nothing: the first rank logs the same."""

    def log_image(self, name: Any, image: Any, caption: Any = None) -> None:
        """Keep nothing."""

    def log_table(self, name: Any, table: Any, caption: Any = None) -> None:
        """Keep nothing."""

    def log_text(self, name: Any, text: Any) -> None:
        """Keep nothing."""

    def log_histogram(self, name: Any, values: Any, bins: Any = 64) -> None:
        """Keep nothing."""

    def printed(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Keep nothing: the first rank prints the same."""

    def clear_output(self) -> None:
        """Clear nothing."""

    def end_output(self) -> None:
        """End nothing."""

    def show(self, shown: Any, display_id: str = "", *, update: bool = False) -> bool:
        """Keep nothing; figures and tables are shown by the first rank."""
        from det_harness.logged.pictures import is_shown
        from det_harness.logged.tables import is_frame

        return is_frame(shown) or is_shown(shown)

    def settle(self) -> None:
        """Wait for nothing."""
