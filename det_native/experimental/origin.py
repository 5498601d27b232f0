"""Where a training call comes from."""

from __future__ import annotations

from dataclasses import dataclass

from det_native.capture.log import CallRecord


@dataclass(frozen=True)
class Origin:
    """Where a training call was made, and where ``init()`` was called for it, in which executions.

    Attributes
    ----------
    record : CallRecord or None
        The training call; None if no frame belongs to the user's program.
    init_executions : tuple of int
        Executions of the notebook in which ``init()`` ran.
    init : CallRecord or None
        The call of ``init()``.
    """

    record: CallRecord | None
    init_executions: tuple[int, ...] = ()
    init: CallRecord | None = None
