"""``det.core.Context``: what code of any framework has to report, to save and to ask."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self

from det_native.core.checkpoints import CheckpointContext
from det_native.core.experimental import ExperimentalCoreContext
from det_native.core.modes import PreemptMode, TensorboardMode
from det_native.core.preempt import PreemptContext
from det_native.core.profiler import ProfilerContext
from det_native.core.searcher import SearcherContext
from det_native.core.train import TrainContext, invalid_hp
from det_native.errors import ArgumentError
from det_native.logged.context import LoggingContext

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun

    from det_native.core.cluster_info import ClusterInfo
    from det_native.trial import DistributedContext

#: What is to be done at the end: it is given the exception that ends the training, None without one.
OnClose = Callable[[BaseException | None], None]

_LEVELS = ("info", "warn", "debug", "error")


class Context(LoggingContext):
    """What code of any framework has to report, to save and to ask; made by :func:`det_native.core.init`.

    Attributes
    ----------
    train : TrainContext
        Metrics, progress, status, files of TensorBoard.
    checkpoint : CheckpointContext
    preempt : PreemptContext
    searcher : SearcherContext
    distributed : DistributedContext
    profiler : ProfilerContext
    info : ClusterInfo or None
        None outside of an experiment.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "alert",
        "checkpoint",
        "close",
        "distributed",
        "experimental",
        "info",
        "preempt",
        "profiler",
        "searcher",
        "start",
        "train",
    )

    def __init__(
        self,
        run: CoreRun,
        preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
        tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
        on_close: OnClose | None = None,
    ) -> None:
        if not isinstance(tensorboard_mode, TensorboardMode):
            raise ArgumentError(
                f"tensorboard_mode={tensorboard_mode!r}: give det.core.TensorboardMode.AUTO or .MANUAL."
            )
        self._run = run
        self._on_close = on_close
        self._closed = False
        self._process = os.getpid()
        self.info: ClusterInfo | None = run.info
        self.distributed: DistributedContext = run.distributed
        self.train = TrainContext(run, tensorboard_mode)
        self.checkpoint = CheckpointContext(run)
        self.preempt = PreemptContext(run, preempt_mode)
        self.searcher = SearcherContext(run)
        self.profiler = ProfilerContext(run)
        self.experimental = ExperimentalCoreContext()

    @property
    def run(self) -> CoreRun:
        """What was reported so far (for those who run the trial)."""
        return self._run

    def start(self) -> None:
        """Do nothing: the context is ready when it is made."""

    def alert(self, title: str | None = None, description: str | None = None, level: str | None = "info") -> None:
        """Write a line into the log, and for ``"warn"`` and ``"error"`` have the trial show it as its warning.

        Parameters
        ----------
        level : {"info", "warn", "debug", "error"}
        """
        if level not in (*_LEVELS, None):
            raise ArgumentError(f"context.alert(level={level!r}): give one of {', '.join(_LEVELS)}.")
        text = ": ".join(part for part in (title, description) if part)
        logger = logging.getLogger("det_native.core")
        logger.log({"warn": logging.WARNING, "error": logging.ERROR}.get(str(level), logging.INFO), "%s", text)
        if level in ("warn", "error"):
            self._run.services.reporter.warning(text)

    def close(self, error: BaseException | None = None) -> None:
        """End the training: what was reported is sent, and checkpoints are complete. Further calls do nothing."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        if isinstance(error, SystemExit) and error.code in (None, 0):
            error = None
        try:
            self._run.close(complete=error is None)
            if error is None and self._run.invalid:
                error = invalid_hp()
        except BaseException as found:
            if error is None:
                error = found
                raise
        finally:
            if self._on_close is not None:
                self._on_close(error)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(error)
