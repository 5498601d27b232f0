"""The context of ``det.experimental.core.init()``: the Core API in a loop of a notebook or script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.core.experimental import ExperimentalCoreContext
from det_native.core.loop_call import CoreLoopCall, OperationsCall
from det_native.core.modes import SearcherMode
from det_native.errors import TrialDefinitionError
from det_native.loops.batches import LoopBatches
from det_native.loops.call import TrainingCall
from det_native.loops.context import LoopContext
from det_native.public_names import PublicNames
from det_native.schema.environment import TrialEnvironment
from det_native.schema.signatures import checked_wait, names_checked
from det_native.trial import Role

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun

    from det_native.core.checkpoints import CheckpointContext
    from det_native.core.context import Context
    from det_native.core.modes import Unit
    from det_native.core.preempt import PreemptContext
    from det_native.core.profiler import ProfilerContext
    from det_native.core.train import TrainContext


class CoreNativeContext(LoopContext):
    """Trains in the user's own loop over :meth:`epochs` or ``searcher.operations()``, with any framework.

    Parameters
    ----------
    environment : TrialEnvironment
        The facts of the trial.
    on_train : callable, optional
        Takes a checked call; its result begins the training, and returns what the loop goes over. Without it (a context
        made by ``from_config``) nothing can be trained.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.
    length_of : callable, optional
        Takes such a call; returns the batches of its training.

    Attributes
    ----------
    experiment : Experiment or None
        The handle of the experiment, once there is one.
    searcher : LoopSearcher
        Has ``operations()``.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "alert",
        "checkpoint",
        "epochs",
        "experiment",
        "experimental",
        "preempt",
        "profiler",
        "report",
        "searcher",
        "train",
    )
    _where_to_report = "the body of `for epoch in context.epochs(...)`, or of `for op in context.searcher.operations()`"

    def __init__(
        self,
        environment: TrialEnvironment,
        on_train: Callable[[TrainingCall], Callable[[], Iterator[Any]]] | None = None,
        role: Role = "local",
        length_of: Callable[[TrainingCall], int] | None = None,
    ) -> None:
        super().__init__(environment, role)
        self._on_train = on_train
        self._length_of = length_of or self._length_of
        self._joined: Context | None = None
        self.searcher = LoopSearcher(self)
        self.experimental = ExperimentalCoreContext()

    @names_checked("context.epochs")
    def epochs(self, *bounds: int, epochs: int | None = None, wait: bool | None = None) -> LoopBatches:
        """Give the numbers of the epochs, for a loop of the user's own in which everything else is plain code.

        The training begins, or is submitted, when the loop asks for the first epoch. Between two epochs everything
        else happens that is due: reports, checkpoints of what has changed, the searcher's decisions, the end. A trial
        that is continued gets the epochs that are left. In cluster mode there are none here: the loop's body runs on
        the workers, and ``context.experiment`` is the handle. ``break`` and ``return`` end the training there, as
        completed.

        Parameters
        ----------
        bounds : int
            The number of epochs; or the first one and the end, as ``range`` has them: ``epochs(1, 11)``. Without,
            the configuration says how many.
        epochs : int, optional
            Their number, by name.
        wait : bool, optional
            False returns at once on the cluster; ``experiment.wait()`` brings home what the training has changed.

        Returns
        -------
        LoopBatches
            An iterator over the numbers of the epochs. Its ``len()`` is that of the whole training.

        Raises
        ------
        ArgumentError
            If an argument makes no sense.
        UnsupportedFeatureError
            If the configuration wants several slots.
        """
        call = CoreLoopCall.of(self, bounds if epochs is None else (*bounds, epochs), wait)
        return self._loop(call, call.epochs_in)

    @property
    def train(self) -> TrainContext:
        """Metrics, progress, status, files of TensorBoard; see :class:`det_native.core.TrainContext`."""
        return self._in_loop("train").train

    @property
    def checkpoint(self) -> CheckpointContext:
        """Checkpoints with files of the code's own; see :class:`det_native.core.CheckpointContext`."""
        return self._in_loop("checkpoint").checkpoint

    @property
    def preempt(self) -> PreemptContext:
        """Whether the training is to end; see :class:`det_native.core.PreemptContext`."""
        return self._in_loop("preempt").preempt

    @property
    def profiler(self) -> ProfilerContext:
        """What the process uses; see :class:`det_native.core.ProfilerContext`."""
        return self._in_loop("profiler").profiler

    def alert(self, title: str | None = None, description: str | None = None, level: str | None = "info") -> None:
        """Write a line into the log; see :meth:`det_native.core.Context.alert`."""
        self._in_loop("alert").alert(title, description, level)

    # For controllers.

    def join(self, context: Context) -> None:
        """Have the parts of the Core API be those of a run, until the loop ends."""
        self._joined = context
        self.distributed = context.distributed

    def end_loop(self) -> None:
        """Have the parts of the Core API refuse to be used."""
        super().end_loop()
        self._joined = None

    @property
    def run(self) -> CoreRun:
        """What the loop has reported so far (for callbacks of trainers)."""
        return self._in_loop("run").run

    def _in_loop(self, part: str) -> Context:
        if self._joined is None:
            raise TrialDefinitionError(f"context.{part} is for {self._where_to_report}.")
        return self._joined


class LoopSearcher(PublicNames):
    """``context.searcher`` in a notebook."""

    _public: ClassVar[tuple[str, ...]] = ("acknowledge_out_of_ops", "get_configured_units", "operations")

    def __init__(self, context: CoreNativeContext) -> None:
        self._context = context

    def operations(
        self,
        searcher_mode: SearcherMode = SearcherMode.WorkersAskChief,
        auto_ack: bool = True,
        *,
        wait: bool | None = None,
    ) -> LoopBatches:
        """Give the operation of this run: train until ``op.length`` is done in all, then ``op.report_completed()``.

        It begins as a loop over ``context.epochs()`` does. A search that has a trial train in stages runs it anew for
        each, with what the operation before has made.

        Parameters
        ----------
        searcher_mode, auto_ack
            Without effect: a loop has one process.
        wait : bool, optional
            See :meth:`CoreNativeContext.epochs`.
        """
        call = OperationsCall(self._context, wait=checked_wait("context.searcher.operations()", wait))
        return self._context._loop(call, call.epochs_in)

    def acknowledge_out_of_ops(self) -> None:
        """Do nothing: that the loop ends says it."""

    def get_configured_units(self) -> Unit | None:
        """Return in what ``searcher.max_length`` is given; None where the configuration has no length."""
        return self._context._in_loop("searcher").searcher.get_configured_units()
