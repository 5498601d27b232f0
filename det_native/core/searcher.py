"""How long a search has a trial train, and what it hears of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.core.distributed import refuse_other_ranks
from det_native.core.modes import SearcherMode, Unit
from det_native.errors import ArgumentError, shown_shortly
from det_native.public_names import PublicNames

logger = logging.getLogger("det_native.core")

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun


class SearcherOperation(PublicNames):
    """How far the trial is to train."""

    _public: ClassVar[tuple[str, ...]] = ("length", "report_completed", "report_progress")

    def __init__(self, run: CoreRun, length: int) -> None:
        self._run = run
        self._length = length
        self.completed = False

    @property
    def length(self) -> int:
        """How much is to be done in all, in the unit of ``searcher.max_length``."""
        return self._length

    def report_progress(self, length: float) -> None:
        """Report how much of it is done.

        Raises
        ------
        RuntimeError
            In another process than the first one, and after :meth:`report_completed`.
        """
        self._refuse("op.report_progress()")
        if not isinstance(length, int | float) or length < 0:
            raise ArgumentError(f"op.report_progress({length!r}): give a number from 0 to op.length.")
        self._run.progress(min(1.0, length / max(1, self._length)))

    def report_completed(self, searcher_metric: Any) -> None:
        """Report that all of it is done, and the value of the searcher's metric by which the search goes on.

        Raises
        ------
        RuntimeError
            In another process than the first one, and for the second time.
        TrialDefinitionError
            If the value is no number.
        """
        self._refuse("op.report_completed()")
        self._run.completed(searcher_metric)
        self.completed = True

    def _refuse(self, call: str) -> None:
        refuse_other_ranks(self._run.distributed, call)
        if self.completed:
            raise shown_shortly(
                RuntimeError(f"{call} was called after op.report_completed(), which ends the operation.")
            )


class SearcherContext(PublicNames):
    """``context.searcher``.

    Examples
    --------
    >>> for op in context.searcher.operations():
    ...     while steps < op.length:
    ...         steps = train_one(steps)
    ...     op.report_completed(validate())
    """

    _public: ClassVar[tuple[str, ...]] = ("acknowledge_out_of_ops", "get_configured_units", "operations")

    def __init__(self, run: CoreRun) -> None:
        self._run = run

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yield the operation of this run: train until ``op.length`` is done in all.

        A search that has a trial train in stages (ASHA, PBT) runs it anew for each, and it continues from its latest
        checkpoint: the code saves one before it reports the operation as completed.
        """
        run = self._run
        if not isinstance(searcher_mode, SearcherMode):
            raise ArgumentError(
                f"searcher.operations({searcher_mode!r}): give det.core.SearcherMode.WorkersAskChief or .ChiefOnly."
            )
        together = searcher_mode is SearcherMode.WorkersAskChief
        if not together:
            refuse_other_ranks(run.distributed, "searcher.operations(ChiefOnly)")
        run.length_asked = True
        length = run.length
        operation = SearcherOperation(run, int(run.distributed.broadcast(length)) if together else length)
        yield operation
        if run.distributed.rank == 0 and not operation.completed and not run.acknowledged:
            logger.info(
                "The operation of context.searcher.operations() was not reported as completed, and counts as it, with "
                "the last validation: op.report_completed(metric) says with which metric."
            )

    def acknowledge_out_of_ops(self) -> None:
        """Do nothing: that the code ends says it."""

    def get_configured_units(self) -> Unit | None:
        """Return in what ``searcher.max_length`` is given; None where the configuration has no length."""
        return self._run.unit
