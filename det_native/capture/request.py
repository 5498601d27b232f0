"""What a training call asks of capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from det_native.capture.log import CallRecord
from det_native.capture.nesting import HEADLINE
from det_native.schema.manifests import CallKind, Framework

__all__ = ["HEADLINE", "Request"]


@dataclass(frozen=True)
class Request:
    """What a call asks of capture; see ``capture_call``."""

    framework: Framework
    kind: CallKind
    init_executions: tuple[int, ...] | None = None
    needed: tuple[object, ...] = ()
    values: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    context_dir: Path | None = None
    init: CallRecord | None = None
