"""Rows of training metrics that a quick loop reports in each step: they are gathered, and passed on together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

Pass = Callable[[list[int], dict[str, list[float]]], None]

# So often a thread passes on what was gathered; so many rows the loop passes on itself.
_SECONDS = 0.2
_ROWS = 5_000


class GatheredRows:
    """Gathers rows of the same names, all numbers, of steps that rise; any other row is for the caller.

    Parameters
    ----------
    pass_on : callable
        Is given steps and columns, by one thread at a time. What it raises, the next call here raises.
    """

    def __init__(self, pass_on: Pass) -> None:
        self._pass_on = pass_on
        self._lock = threading.Lock()  # of what is gathered
        self._passing = threading.RLock()  # so that parts are passed on in their order
        self._last = 0
        self._steps: list[int] = []
        self._columns: dict[str, list[float]] = {}
        self._failure: BaseException | None = None
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Take rows like this one from now on, of later steps; :meth:`pass_all` was called before."""
        numbers = all(type(value) is float and type(name) is str for name, value in metrics.items())
        with self._lock:
            self._last = step
            self._columns = {name: [] for name in metrics} if numbers else {}
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="det-core-rows", daemon=True)
            self._thread.start()

    def takes(self, step: Any, metrics: Any) -> bool:
        """Take a row; False if it is unlike the one before."""
        if type(step) is not int or type(metrics) is not dict or self._failure is not None:
            return False
        with self._lock:
            columns = self._columns
            if step <= self._last or not columns or metrics.keys() != columns.keys() or len(self._steps) >= _ROWS:
                return False
            for value in metrics.values():
                if type(value) is not float:
                    return False
            for name, value in metrics.items():
                columns[name].append(value)
            self._steps.append(step)
            self._last = step
        return True

    @property
    def last(self) -> int:
        """The last step of which a row was taken."""
        return self._last

    def pass_all(self) -> None:
        """Pass on what was gathered.

        Raises
        ------
        BaseException
            What could not be passed on: a loss is NaN, and the trial ends with that.
        """
        with self._passing:
            with self._lock:
                steps, columns = self._steps, self._columns
                self._steps, self._columns = [], {name: [] for name in columns}
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            if steps:
                self._pass_on(steps, columns)

    def close(self) -> None:
        """Gather nothing more."""
        self._wake.set()

    def _run(self) -> None:
        while not self._wake.wait(_SECONDS):
            try:
                if self._steps and self._failure is None:
                    self.pass_all()
            except BaseException as error:  # noqa: BLE001 (the training thread raises it)
                self._failure = error
