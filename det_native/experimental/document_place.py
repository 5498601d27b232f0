"""Where the next training calls run, when somebody other than the code decides: the front end's Submit dialog.

Two choices exist. *Here*: in a notebook's kernel, every ``init()`` and ``create()`` trains in it, until the choice
ends. *Submission*: in a process that runs a document's cells in order to submit it, one call submits, and all others
do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from det_native.capture.log import CallRecord
from det_native.experimental.arguments import Place
from det_native.schema.manifests import CallKind, Framework

if TYPE_CHECKING:
    from det_native.capture.model import Capture

R = TypeVar("R")
ConfigInput = Mapping[str, Any] | str | Path | None

HERE_NOTICE = "Trains in this kernel, as chosen for this run of the notebook."


class SubmittedError(BaseException):
    """Ends a document's program at the call that was submitted; no handler of the user's is meant to see it."""


@dataclass
class Submission:
    """The one call of a document's program that is submitted.

    Attributes
    ----------
    wanted : callable
        Tells of a noted call whether it is the one.
    test : bool
    slots : int or None
        Slots for each trial; None leaves it to the configuration.
    idempotency_key : str or None
    capture : callable, optional
        Captures the call (kind, framework, settings, origin), once it is made; None if none is to be made.
    experiment : Experiment or None
        What was created, once it is.
    """

    wanted: Callable[[CallRecord], bool]
    test: bool = False
    slots: int | None = None
    idempotency_key: str | None = None
    capture: Callable[..., Capture] | None = None
    experiment: Any = None


@dataclass
class _Here:
    test: bool | None
    until: str | None
    shell: Any = None

    def cell_ran(self, result: Any) -> None:
        """End the choice after the cell that makes the call, or one that failed."""
        cell = getattr(getattr(result, "info", None), "cell_id", None)
        if not getattr(result, "success", False) or (self.until is not None and cell == self.until):
            run_as_written()


_here: _Here | None = None
_submission: Submission | None = None


# In a kernel ----------------------------------------------------------------------------------------------------------


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
    global _here
    run_as_written()
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    _here = _Here(test, until, shell)
    if shell is not None:
        shell.events.register("post_run_cell", _here.cell_ran)


def run_as_written() -> None:
    """End what :func:`run_here` began; does nothing if nothing is to be ended."""
    global _here
    ended, _here = _here, None
    if ended is not None and ended.shell is not None:
        ended.shell.events.unregister("post_run_cell", ended.cell_ran)


# For init() and create() ----------------------------------------------------------------------------------------------


def place(written: Place) -> Place:
    """Return where to run: as written, or as chosen."""
    if _submission is not None:
        return Place(local=False, test=_submission.test)
    if _here is None:
        return written
    return Place(local=True, test=written.test if _here.test is None else _here.test, notice=HERE_NOTICE)


def configuration(config: ConfigInput) -> ConfigInput:
    """Return the configuration: as written, or with the slots that were chosen."""
    return config if _submission is None else with_slots(config, _submission.slots)


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


def stand_in(record: CallRecord | None) -> Any:
    """Return what a training call gives that is not the one to be submitted; None if the call is to be made."""
    if _submission is None or (record is not None and _submission.experiment is None and _submission.wanted(record)):
        return None
    from det_harness.program.null_handle import NullHandle

    return NullHandle(f"line {record.line}" if record is not None else "an unknown place")


def idempotency_key() -> str | None:
    """Return the key under which the call is submitted, None for one of its own."""
    return None if _submission is None else _submission.idempotency_key


def captured(kind: CallKind, framework: Framework, settings: Any, origin: Any) -> Capture | None:
    """Return what the document's call sends; None where no document is being submitted.

    Parameters
    ----------
    kind : {"fit", "train", "create", "train_and_evaluate"}
    framework : str
    settings : Settings
    origin : Origin
    """
    if _submission is None or _submission.capture is None:
        return None
    return _submission.capture(kind, framework, settings, origin)


def done(result: R) -> R:
    """Take note that a training call was made, and return its result.

    Raises
    ------
    SubmittedError
        In a submission: what comes after the call is not run.
    """
    if _submission is not None:
        _submission.experiment = result
        raise SubmittedError
    if _here is not None and _here.until is None:
        run_as_written()
    return result


def submit_only(submission: Submission | None) -> None:
    """Let this process submit one call, and make no other; None ends it."""
    global _submission
    _submission = submission
