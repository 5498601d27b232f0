"""One validation of a PyTorchTrial: every batch on its slot, or the whole data set on the first one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

import torch

from det_harness.frameworks.torch.checks import check_evaluation, checked_by_name, overrides, takes_batch_idx
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.ranks.communicator import Communicator
from det_harness.trial import activity
from det_harness.trial.metrics import compared_number, described
from det_harness.trial.services import Services
from det_harness.trial.side_metrics import SideMetrics, UnrecordableError, recordable, reduced
from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext, Reducer
from det_native.schema.environment import TrialEnvironment
from det_native.schema.reports import LONGEST_VALUE

_REDUCER = "A reducer of wrap_reducer()"


class Validation(Protocol):
    """Computes the validation metrics of the models as they are."""

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""

    @property
    def verb(self) -> str:
        """What it does with them: "return", or "report"."""

    def run(self) -> dict[str, Any]:
        """Return the metrics, each reduced to one value, unchecked."""


@dataclass(frozen=True)
class Wording:
    """How messages call the parts of an evaluation.

    Attributes
    ----------
    length_remedy : str
        What to do where the number of records of a batch cannot be told.
    """

    owner: str
    loader: str
    length_remedy: str


class Evaluation:
    """Validates a trial.

    Parameters
    ----------
    reduction : Reduction
        The custom reducers that are used for validation.
    as_in_torch : bool
        Draw the order of batches on one slot where the loader itself would.
    """

    verb = "return"

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        loader: DataLoader,
        services: Services,
        reduction: Reduction,
        wording: Wording,
        *,
        as_in_torch: bool = False,
    ) -> None:
        name = type(trial).__name__
        self._metric, self._metrics = services.environment.metric, services.environment.metrics
        check_evaluation(name, loader, trial, None if reduction else self._metric)
        self._trial = trial
        self._context = context
        self._name = name
        self._full = overrides(type(trial), "evaluate_full_dataset")
        environment = services.environment
        if as_in_torch and environment.ranks.size == 1:
            self._loader = loader.as_in_torch(environment.trial_seed)
        else:
            self._loader = loader.get_data_loader(**({} if self._full else shard_of(environment)))
        self._batches = services.validation_batches
        self._reduction = reduction
        self._communicator = services.communicator
        self._side_metrics = SideMetrics(quiet=services.communicator.rank > 0)
        self._wording = wording
        method: Callable[[Any], Any] = trial.evaluate_full_dataset if self._full else trial.evaluate_batch
        if not self._full and takes_batch_idx(method):
            method = self._numbered(method)
        self._evaluate = context.around_evaluation(method)
        self._batch_idx = 0

    @cached_property
    def _sharded(self) -> bool:
        from det_harness.frameworks.torch.sharded_state import mesh_of

        return mesh_of(self._context.models) is not None

    def _numbered(self, evaluate: Callable[..., Any]) -> Callable[[Any], Any]:
        """Return an evaluation that is told the number of the batch in this validation, of this slot."""
        return lambda batch: evaluate(batch, batch_idx=self._batch_idx)

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return self._wording.owner

    def first(self) -> dict[str, Any] | None:
        """Return the metrics of this slot's first batch; None if it has none."""
        self._batch_idx = 0
        batch = next(iter(self._loader), None)
        if batch is None:
            return None
        with torch.no_grad():
            metrics = self._evaluate(self._context.to_device(batch))
        return checked_by_name(self.owner, metrics)

    def run(self) -> dict[str, Any]:
        """Return the metrics, each reduced to one value, unchecked.

        Raises
        ------
        TrialDefinitionError
            If batches are missing, or their metrics do not fit each other or the reducers.
        """
        self._reduction.reset()
        with torch.no_grad():
            metrics = self._whole() if self._full else self._by_batch()
        for name, value in self._reduction.reduce().items():
            if name in metrics:
                raise TrialDefinitionError(
                    f"{self.owner} returned the metric '{name}', which a reducer of wrap_reducer() returns too: leave "
                    "it out of one of them."
                )
            metrics[name] = compared_number(name, value, _REDUCER) if self._compares(name) else value
        self._reduction.reset()
        return metrics

    def _whole(self) -> dict[str, Any]:
        found: Any = None
        if self._context.distributed.get_rank() == 0:
            found = self._evaluate(self._loader)
        elif self._sharded:  # the first rank cannot use the models alone; what reducers get counts there
            with self._reduction.unchanged():
                self._evaluate(self._loader)
        return dict(checked_by_name(self.owner, self._communicator.broadcast_object(found)))

    def _by_batch(self) -> dict[str, Any]:
        reducers = self._trial.evaluation_reducer()
        every = reducers.values() if isinstance(reducers, dict) else [reducers]
        weighted = Reducer.AVG in every
        columns: dict[str, list[Any]] = {}
        weights: list[int] = []
        for index, (batch, counts) in enumerate(self._shares()):
            self._batch_idx = index
            activity.step()
            moved = self._context.to_device(batch)
            if not counts:
                with self._reduction.unchanged():
                    self._evaluate(moved)
                continue
            metrics = checked_by_name(self.owner, self._evaluate(moved))
            if not weights:
                for name in metrics:
                    self._reducer(name, reducers)  # refused before the other batches are evaluated
            if weights and metrics.keys() != columns.keys():
                raise TrialDefinitionError(
                    f"{self.owner} returned the metrics {', '.join(metrics) or 'none'} for one batch and "
                    f"{', '.join(columns) or 'none'} for those before; return the same names for every batch."
                )
            for name, value in metrics.items():
                # The numbers are read after the last batch; by then a buffer would have another value.
                columns.setdefault(name, []).append(self._kept(name, value))
            weights.append(self._length(moved) if weighted and metrics else 1)
        own = {name: self._numbers(name, values) for name, values in columns.items()}
        return self._over_slots(self._communicator.all_gather_object((own, weights)), reducers)

    def _shares(self) -> Iterable[tuple[Any, bool]]:
        """Return the batches of this rank, each with whether it counts."""
        own = islice(self._loader, self._batches)
        return in_step(own, self._communicator) if self._sharded else ((batch, True) for batch in own)

    def _compares(self, name: str) -> bool:
        """Whether trials are compared by a metric."""
        return name == self._metric or name in self._metrics

    def _kept(self, name: str, value: Any) -> Any:
        """Return what is kept of a value until its numbers are read, after the last batch.

        By then a buffer would have another value. What is large, and could not be recorded, would fill the memory.
        """
        if isinstance(value, torch.Tensor):
            if value.numel() > LONGEST_VALUE and not self._compares(name):
                what = f"{self.owner} returned {described(value)} for it"
                return _Lacking(f"{what}, and at most {LONGEST_VALUE:,} characters of JSON are recorded")
            return value.clone()
        return copy.copy(value)

    def _numbers(self, name: str, values: list[Any]) -> list[Any]:
        """Return what a metric is in each batch of this slot: numbers, and others as they are recorded."""
        if self._compares(name):
            return [compared_number(name, value, self.owner) for value in values]
        return [value if value is None or isinstance(value, _Lacking) else self._number(value) for value in values]

    def _number(self, value: Any) -> Any:
        try:
            return recordable(value)
        except UnrecordableError as error:
            return _Lacking(f"{self.owner} returned {described(value)} for it: {error}")

    def _over_slots(self, slots: list[tuple[dict[str, list[Any]], list[int]]], reducers: Any) -> dict[str, Any]:
        """Reduce the values of all slots; a slot may have had no batch."""
        slots = [slot for slot in slots if slot[1]]
        if not slots:
            raise TrialDefinitionError(f"{self._wording.loader} has no batches; validation needs data.")
        weights = [weight for _, slot_weights in slots for weight in slot_weights]
        found: dict[str, Any] = {}
        for name in slots[0][0]:
            values = [value for own, _ in slots for value in own[name]]
            lacking = next((value for value in values if isinstance(value, _Lacking)), None)
            try:
                if lacking is not None:
                    raise UnrecordableError(lacking.why)
                found[name] = reduced(values, weights, self._reducer(name, reducers).reduce)
            except UnrecordableError as error:
                why = str(error) if lacking is not None else f"Of the values that {self.owner} returned for it, {error}"
                self._side_metrics.leave_out(name, why)
        return found

    def _length(self, batch: Any) -> int:
        try:
            return self._trial.get_batch_length(batch)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{error} Validation metrics are weighted by the records of their batch: {self._wording.length_remedy}."
            ) from error

    def _reducer(self, name: str, reducers: Any) -> Reducer:
        reducer = reducers.get(name) if isinstance(reducers, dict) else reducers
        if not isinstance(reducer, Reducer):
            raise TrialDefinitionError(
                f"{self._name}.evaluation_reducer() has no det.pytorch.Reducer for the metric '{name}'; return one "
                "reducer for all metrics, or a dictionary with one for each."
            )
        return reducer


@dataclass(frozen=True)
class _Lacking:
    """Stands for a value that cannot be recorded; `why` says it."""

    why: str


def shard_of(environment: TrialEnvironment) -> dict[str, Any]:
    """Return the arguments of a loader that give each rank its share of the records."""
    ranks = environment.ranks
    return {"num_replicas": ranks.size, "rank": ranks.rank, "seed": environment.trial_seed}


_END = object()


def in_step(batches: Iterable[Any], communicator: Communicator) -> Iterator[tuple[Any, bool]]:
    """Yield as many batches on every rank as the rank with most of them has; a collective iteration.

    Yields
    ------
    batch
        The rank's own; where it has none left, one that was there before, or that another rank has.
    counts : bool
        Whether it is the rank's own.
    """
    stream = iter(batches)
    last: Any = _END
    while True:
        batch = next(stream, _END)
        if batch is not _END:
            last = batch
        some, lacking = communicator.all_reduce_any(batch is not _END, last is _END)()
        if not some:
            return
        if lacking:
            offered = communicator.all_gather_object((last is not _END, None if last is _END else last))
            if last is _END:
                last = next(value for there, value in offered if there)
        yield last, batch is not _END
