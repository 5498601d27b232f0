"""The section about trials that hang."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from det_native.schema.section import Section


class Watchdog(Section):
    """What happens to a trial that reports nothing: no metrics, no checkpoint, no line of output.

    After half of `minutes` its log has the stack of every thread. After all of them it is ended, and by `action` run
    again from its latest checkpoint, which counts as a restart, or not. 0 minutes switch this off.
    """

    minutes: Annotated[float, Field(ge=0, le=525_600)] = 30.0
    action: Literal["restart", "end"] = "restart"
