"""Where a training call comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from det_native.capture.log import CallRecord
from det_native.schema.manifests import CallKind, Framework

if TYPE_CHECKING:
    from det_native.capture.model import Capture
    from det_native.experimental.settings import Settings


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

    def capture(self, kind: CallKind, payload: Any, framework: Framework, settings: Settings) -> Capture:
        """Capture the training call: what it needs of the user's program.

        Parameters
        ----------
        kind : {"fit", "create", "train_and_evaluate"}
        payload : FitCall or type
            What is trained.
        framework : str
        settings : Settings
            The call's arguments.

        Raises
        ------
        CaptureError
            With everything that stands in the way.
        """
        from det_native.capture.call import capture_call

        return capture_call(
            kind,
            payload,
            framework=framework,
            init_executions=self.init_executions,
            values=settings.values,
            include=settings.include,
            context_dir=settings.context_dir,
            command=settings.command,
            call=self.record,
            init=self.init,
        )
