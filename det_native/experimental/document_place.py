"""What the front end's Submit dialog says of the next training calls, in place of the code: one object of answers.

*As written* is what holds where nobody has answered. *Here*: in a notebook's kernel, every ``init()`` and ``create()``
trains in it, until that ends. *Submission*: in a process that runs a document's cells in order to submit it, one call
submits, and all others do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from det_native.capture.log import CallRecord
from det_native.experimental.arguments import Place

R = TypeVar("R")
ConfigInput = Mapping[str, Any] | str | Path | None

HERE_NOTICE = "Trains in this kernel, as chosen for this run of the notebook."


class SubmittedError(BaseException):
    """Ends a document's program at the call that was submitted; no handler of the user's is meant to see it."""


class AsWritten:
    """Nobody has answered: the code says everything."""

    #: The key under which the call is submitted; None for one of its own.
    idempotency_key: str | None = None

    def place(self, written: Place) -> Place:
        """Return where to run."""
        return written

    def configuration(self, config: ConfigInput) -> ConfigInput:
        """Return the configuration of a call."""
        return config

    def stand_in(self, record: CallRecord | None) -> Any:
        """Return what a training call gives that is not the one to be submitted; None if the call is to be made."""
        return None

    def done(self, result: R) -> R:
        """Take note that a training call was made, and return its result."""
        return result


@dataclass
class Here(AsWritten):
    """All trains in this kernel: one minimal loop only, if `test`; until the cell `until`, or one call, has run."""

    test: bool | None
    until: str | None
    shell: Any = None

    def place(self, written: Place) -> Place:
        """Return this kernel."""
        return Place(local=True, test=written.test if self.test is None else self.test, notice=HERE_NOTICE)

    def done(self, result: R) -> R:
        """End the choice where it is for one call."""
        if self.until is None:
            run_as_written()
        return result

    def cell_ran(self, result: Any) -> None:
        """End the choice after the cell that makes the call, or one that failed."""
        cell = getattr(getattr(result, "info", None), "cell_id", None)
        if not getattr(result, "success", False) or (self.until is not None and cell == self.until):
            run_as_written()


@dataclass
class Submission(AsWritten):
    """The one call of a document's program that is submitted.

    Attributes
    ----------
    test : bool
    slots : int or None
        Slots for each trial; None leaves it to the configuration.
    idempotency_key : str or None
    wanted : callable
        Tells of a noted call whether it is the one.
    experiment : Experiment or None
        What was created, once it is.
    """

    test: bool = False
    slots: int | None = None
    idempotency_key: str | None = None
    wanted: Callable[[CallRecord], bool] = lambda record: False
    experiment: Any = None

    def place(self, written: Place) -> Place:
        """Return the cluster."""
        return Place(local=False, test=self.test)

    def configuration(self, config: ConfigInput) -> ConfigInput:
        """Return the configuration with the slots that were chosen."""
        return with_slots(config, self.slots)

    def stand_in(self, record: CallRecord | None) -> Any:
        """Return a handle that does nothing for any other call."""
        if record is not None and self.experiment is None and self.wanted(record):
            return None
        from det_harness.program.null_handle import NullHandle

        return NullHandle(f"line {record.line}" if record is not None else "an unknown place")

    def done(self, result: R) -> R:
        """Keep the experiment.

        Raises
        ------
        SubmittedError
            What comes after the call is not run.
        """
        self.experiment = result
        raise SubmittedError


#: The user's code calls ``init()`` with no answers: who asks for the first time finds them here.
_answers: AsWritten = AsWritten()


def answers() -> AsWritten:
    """Return what was answered for the call that is being made."""
    return _answers


def answer(given: AsWritten) -> None:
    """Let what was answered hold for the calls that this process makes from now on."""
    global _answers
    ended, _answers = _answers, given
    if isinstance(ended, Here) and ended.shell is not None:
        ended.shell.events.unregister("post_run_cell", ended.cell_ran)


def run_here(until: str | None = None, *, test: bool | None = None) -> None:
    """Train in this kernel what the next ``init()`` and ``create()`` begin, whatever they say themselves.

    It ends with :func:`run_as_written`; by itself when a cell has failed, when the cell `until` has run, or, without
    `until`, when a training call has returned.

    Parameters
    ----------
    until : str, optional
        Id of the cell that makes the training call.
    test : bool, optional
        True for one minimal loop only, False for a whole training; by default as the code says.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    here = Here(test, until, shell)
    answer(here)
    if shell is not None:
        shell.events.register("post_run_cell", here.cell_ran)


def run_as_written() -> None:
    """End what :func:`run_here` began; does nothing if nothing is to be ended."""
    answer(AsWritten())


def with_slots(config: ConfigInput, slots: int | None) -> ConfigInput:
    """Return a configuration with other slots for each trial.

    Raises
    ------
    ConfigurationError
        If it cannot be read.
    """
    if slots is None:
        return config
    from det_native.schema.reading import read

    raw = read(config).raw
    resources = raw.get("resources")
    if resources is None or isinstance(resources, dict):
        raw["resources"] = {**(resources or {}), "slots_per_trial": slots}
    return raw
