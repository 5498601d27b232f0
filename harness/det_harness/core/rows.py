"""Rows of metrics that code reports by steps of its own, on the reporter of a trial."""

from __future__ import annotations

import json
import logging
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from det_harness.core.gathered import GatheredRows
from det_harness.core.state import MOST_STEPS, CoreState
from det_harness.logged.numbers import number_of
from det_harness.trial import activity
from det_harness.trial.forks import end_forked_child
from det_harness.trial.metric_choice import MetricChoice
from det_harness.trial.metrics import check_names, compared_number, numbers_of
from det_harness.trial.side_metrics import SideMetrics, UnrecordableError, recordable
from det_native.errors import ArgumentError

logger = logging.getLogger("det_harness")

_DEEPEST = 20
TRAINING, VALIDATION = "training", "validation"


class CoreRows:
    """Reports rows of metrics, each after so many steps.

    Steps of a group only rise. A row of steps before those of the last one, of a counter that begins anew in each epoch
    say, stands as the next one, and a warning says so once.
    """

    def __init__(self, run: CoreState) -> None:
        self._run = run
        self._last: dict[str, int] = {}
        self._side = SideMetrics()
        environment = run.services.environment
        said = environment.metric is not None or not environment.managed
        self._choice = MetricChoice(run.services, "context.train.report_validation_metrics()", said=said)
        self._said: set[str] = set()
        self._gathered = GatheredRows(self._pass_on)
        #: Takes a row of training metrics that is like the one before; False for any other, which `report` takes.
        self.takes = self._gathered.takes

    def report(self, group: str, steps: Any, metrics: Any, call: str) -> None:
        """Report the metrics of a group after so many steps.

        Raises
        ------
        ArgumentError, TrialDefinitionError
            If steps or metrics are none.
        DivergedError
            If a loss is NaN or infinite, and the configuration ends such trials.
        """
        run = self._run
        self.pass_all()
        try:
            count = operator.index(steps)
        except TypeError:
            count = -1
        if not 0 <= count <= MOST_STEPS or steps is True or steps is False:
            raise ArgumentError(f"{call}: steps_completed={steps!r:.60}: give a whole number from 0 to {MOST_STEPS}.")
        if not isinstance(metrics, Mapping):
            raise ArgumentError(f"{call}: metrics={metrics!r:.60}: give a dictionary of numbers by name.")
        for name in metrics:
            if not isinstance(name, str):
                raise ArgumentError(f"{call}: names of metrics are text, not {name!r:.60}.")
        run.begin(count)
        place = self._place(group, count)
        run.done(place if group == TRAINING else count)
        if group == TRAINING:
            numbers = self._numbers(metrics, group, call)
            if numbers:
                self._pass_on([place], {name: [value] for name, value in numbers.items()})
            self._gathered.begin(place, metrics)
        elif group == VALIDATION:
            self._validation(place, metrics, call)
        else:
            numbers = {f"{group}/{name}": value for name, value in self._numbers(metrics, group, call).items()}
            run.log(place, numbers)

    def pass_all(self) -> None:
        """Report the rows that were gathered: what comes next is behind them.

        Raises
        ------
        DivergedError
            If a loss is NaN or infinite, and the configuration ends such trials.
        """
        end_forked_child()
        self._last[TRAINING] = max(self._last.get(TRAINING, -1), self._gathered.last)
        self._run.done(self._gathered.last)
        self._gathered.pass_all()

    @property
    def last(self) -> int:
        """The last step of a row that was gathered."""
        return self._gathered.last

    def close(self) -> None:
        """Report the rows that were gathered; there are no others."""
        self._gathered.close()
        self.pass_all()

    def _pass_on(self, steps: list[int], columns: Mapping[str, list[float]]) -> None:
        activity.step()
        self._run.services.reporter.training(steps, columns)  # type: ignore[arg-type]

    def compared(self, steps: int, name: str, value: float) -> None:
        """Report the metric that trials are compared by, where the code has not reported it after these steps."""
        if self._run.validated.get(name) == (steps, value):
            return
        self._validation(self._place(VALIDATION, steps), {name: value}, "op.report_completed()")

    def _validation(self, steps: int, metrics: Mapping[str, Any], call: str) -> None:
        run = self._run
        flat = dict(_flat(metrics))
        check_names(flat, steps, call, "report")
        self._choice.look(numbers_of(flat))
        environment = run.services.environment
        compared = [name for name in {environment.metric, *environment.metrics} if name is not None and name in flat]
        for name in compared:
            flat[name] = compared_number(name, flat[name], call)
        recorded = self._side.recorded(flat, call, "report")
        for name in compared:
            run.validated[name] = (steps, recorded[name])
        if recorded:
            run.services.reporter.validation(steps, recorded)
        run.services.schedule.progress.last_validated = steps
        run.validated_after(steps, recorded)

    def _place(self, group: str, steps: int) -> int:
        """Return after how many steps a row is kept: it never goes back."""
        lane = group if group in (TRAINING, VALIDATION) else ""
        last = self._last.get(lane, -1)
        if steps < last:
            place = last + 1 if lane else last
            self._tell(
                f"back {lane}",
                f"The steps of {group} metrics went back from {last} to {steps}: this row stands at step {place}, and "
                "so on. Count steps_completed over the whole training.",
            )
            steps = place
        self._last[lane] = steps
        return steps

    def _numbers(self, metrics: Mapping[str, Any], group: str, call: str) -> dict[str, float]:
        """Return the metrics that are numbers; the others are kept as texts."""
        for value in metrics.values():
            if type(value) is not float:
                break
        else:
            return metrics  # type: ignore[return-value]
        numbers: dict[str, float] = {}
        for name, value in _flat(metrics):
            number = number_of(value)
            if number is None:
                self._keep_text(group, name, value, call)
            else:
                numbers[name] = number
        check_names(numbers, self._last.get(group), call, "report")
        return numbers

    def _keep_text(self, group: str, name: Any, value: Any, call: str) -> None:
        try:
            text = value if isinstance(value, str) else json.dumps(recordable(value))
        except UnrecordableError as error:
            self._side.leave_out(str(name), f"{call} was given {value!r:.60} for it: {error}")
            return
        self._run.text(f"{group}/{name}", text)
        self._tell(
            f"text {name}",
            f"The metric '{name}' of {call} is not a number: it is logged as a text, as by det.log_text().",
        )

    def _tell(self, key: str, text: str) -> None:
        if key in self._said:
            return
        self._said.add(key)
        logger.warning("%s", text)
        self._run.services.reporter.warning(text)


def _flat(metrics: Mapping[Any, Any], before: str = "", depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield the metrics, those of dictionaries in it by names with dots."""
    for name, value in metrics.items():
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            yield from _flat(value, f"{before}{name}.", depth + 1)
        else:
            yield (f"{before}{name}" if before else name), value
