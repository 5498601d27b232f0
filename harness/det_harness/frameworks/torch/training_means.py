"""What stands for a validation where ``fit()`` or ``train()`` of PyTorch has none: means of the training metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from det_harness.ranks.communicator import Communicator
from det_harness.trial.services import PassingReporter, Reporter
from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchCallback
from det_native.pytorch.native_call import TorchCall
from det_native.schema.metric_names import PREFIXES

#: Sum and number of the values of a metric, and whether one of them was not a number.
Sum: TypeAlias = tuple[float, int, bool]


class TrainingMeans(PassingReporter):
    """Means of the training metrics since the last validation: what stands for a validation where there is none.

    Values that are not a number count for nothing, but for two things: a mean of nothing else is none; and the metric
    that trials are compared by shows that it was not a number. A metric that is called ``val_...`` is the user's own
    validation in a loop, where not-a-number stands for no value: until there is another one, the last value stays.

    Parameters
    ----------
    compared_by : callable
        Takes the names, and returns by which metric trials are compared.
    look : callable
        Is given the names of the first report, to check them.

    Attributes
    ----------
    keeper : PyTorchCallback
        Takes what was summed up so far into checkpoints.
    """

    def __init__(
        self,
        reporter: Reporter,
        communicator: Communicator,
        call: TorchCall,
        compared_by: Callable[[Collection[str]], str | None],
        look: Callable[[Collection[str]], None],
    ) -> None:
        super().__init__(reporter)
        self._communicator = communicator
        self._call = call
        self._compared_by = compared_by
        self._look: Callable[[Collection[str]], None] | None = look
        self.keeper = MeansKeeper()
        reporter.no_validation()

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return self._call.trainer

    @property
    def verb(self) -> str:
        """What it does with them."""
        return "report" if self._call.train_batch is None else "return"

    @property
    def empty(self) -> bool:
        """Whether nothing was reported at all, on any rank the same."""
        keeper = self.keeper
        return bool(self._communicator.broadcast_object(not keeper.sums and not keeper.last))

    def run(self) -> dict[str, Any]:
        """Return the means of the first rank, and begin anew; the last ones again, if nothing was reported since.

        Raises
        ------
        TrialDefinitionError
            If nothing was reported at all.
        """
        sums: dict[str, Sum]
        sums, last = self._communicator.broadcast_object((self.keeper.sums, self.keeper.last))
        if sums:
            # A name that has had no value yet is none to choose.
            valued = [name for name, (_, count, _) in sums.items() if count]
            metric = self._compared_by(valued or list(sums))
            last = {name: _mean(name, sum_, last, compared=name == metric) for name, sum_ in sums.items()}
            self.keeper.last = last
        self.keeper.sums = {}
        if not last:
            raise TrialDefinitionError(self._nothing())
        return dict(last)

    def _nothing(self) -> str:
        name = self._compared_by(()) or "loss"
        if self._call.train_batch is None:
            remedy = (
                f"call context.report({name}=...) in the loop, or pass validation_loader and evaluate_batch to train()"
            )
        else:
            remedy = f"return {{'{name}': ...}} from it, or pass validation_loader and evaluate_batch to fit()"
        return (
            f"{self.owner} has reported no training metrics, and there is no validation: nothing says how good the "
            f"trial is. To fix it, {remedy}."
        )

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Add rows up, and pass them on.

        Raises
        ------
        TrialDefinitionError
            If the first ones do not have what trials are compared by.
        """
        if self._look is not None:
            self._look(metrics)
            self._look = None
        sums = self.keeper.sums
        for name, column in metrics.items():
            total, count, broken = sums.get(name, (0.0, 0, False))
            for value in column:
                if value is None:
                    continue
                if math.isnan(value):  # a step that was skipped may have a gradient norm of NaN
                    broken = True
                else:
                    total, count = total + value, count + 1
            if count or broken:
                sums[name] = (total, count, broken)
        self._reporter.training(batches, metrics)


def _mean(name: str, sum_: Sum, last: Mapping[str, float], *, compared: bool) -> float:
    total, count, broken = sum_
    if name.startswith(PREFIXES):
        return total / count if count else last.get(name, math.nan)
    return math.nan if not count or (broken and compared) else total / count


class MeansKeeper(PyTorchCallback):
    """Keeps sums and last means in checkpoints."""

    def __init__(self) -> None:
        self.sums: dict[str, Sum] = {}
        self.last: dict[str, float] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "last": dict(self.last)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        # A checkpoint of before has no third.
        self.sums = {name: (*pair, False)[:3] for name, pair in state_dict["sums"].items()}
        self.last = dict(state_dict["last"])
