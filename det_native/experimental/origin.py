"""Where a training call comes from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.capture.log import CallRecord
from det_native.schema.manifests import CallKind, Framework

if TYPE_CHECKING:
    from det_native.capture.model import Capture
    from det_native.experimental.early_contents import EarlyContents
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
    early : EarlyContents or None
        What the notebook's variables held then.
    streams : bytes
        States of the streams of random numbers as it left them, encoded; empty where they are not known.
    has_code : bool
        Code of the user's makes the call and goes on after it. The command line's calls have none.
    """

    has_code: ClassVar[bool] = True
    record: CallRecord | None
    init_executions: tuple[int, ...] = ()
    init: CallRecord | None = None
    early: EarlyContents | None = None
    streams: bytes = b""

    def why_no_program(self) -> str:
        """Return why there is no code to capture; empty where there is."""
        if self.record is None:
            return "the call was made from no cell and no file of the user's"
        from det_native.capture.log import current_log
        from det_native.heap.ownership import is_library_file

        log, script = current_log(), getattr(sys.modules.get("__main__"), "__file__", None)
        if (log is None or log.running is None) and script is not None and is_library_file(script):
            return f"the program that runs is a library's: {script}"
        return ""

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

        capture = capture_call(
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
        capture.history.init_streams = self.streams
        return capture
