"""The tree of errors that a user may see.

Every one derives from :class:`DetError`, hence from ``Exception``. A message says what is wrong, where (cell and line,
or the configuration's path) and what to do about it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import MethodType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from det_native.schema.rest import ErrorBody


Raised = TypeVar("Raised", bound=BaseException)

_OURS = frozenset({"det_native", "det_harness"})
_RENDER = "_render_traceback_"  # what IPython looks for, in a class or an exception


class DetError(Exception):
    """Base of every error raised on purpose by det_native."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows under a cell: the user's own lines and the message."""
        return _rendered(self)


def interrupted() -> KeyboardInterrupt:
    """Return what is raised when Ctrl-C has ended a waiting: it is shown as errors of this package are.

    No class of its own: IPython shows its name, and by this one Python knows how a script has ended.
    """
    return shown_shortly(KeyboardInterrupt())


def shown_shortly(error: Raised) -> Raised:
    """Return an exception of Python's own kinds that is shown as errors of this package are."""
    vars(error)[_RENDER] = MethodType(_rendered, error)
    return error


def shown_alone(error: Raised) -> Raised:
    """Return an exception that is shown by its name and message, without any line of code."""
    vars(error)[_RENDER] = MethodType(_rendered_alone, error)
    return error


def _rendered_alone(error: BaseException) -> list[str]:
    view: Any = sys.modules["IPython"].get_ipython().InteractiveTB
    lines: list[str] = view.get_exception_only(type(error), error)
    return lines


def is_own(error: BaseException | None) -> bool:
    """Return whether an exception was raised on purpose by det_native."""
    return isinstance(error, DetError) or (error is not None and _RENDER in vars(error))


def _rendered(error: BaseException) -> list[str]:
    """Return an exception as IPython shows it, without the lines of this package.

    Where the error was found inside this package, and what led to it there, says nothing to its reader.
    """
    chained = error.__cause__, error.__context__, error.__suppress_context__
    error.__cause__ = error.__context__ = None
    try:
        view: Any = sys.modules["IPython"].get_ipython().InteractiveTB
        lines: list[str] = view.structured_traceback(type(error), error, without_ours(error.__traceback__))
    finally:
        error.__cause__, error.__context__, error.__suppress_context__ = chained
    return lines


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this distribution, and those of `with` statements in it."""
    kept: list[TracebackType] = []
    ours = False
    while traceback is not None:
        ours = is_ours(traceback) or (ours and traceback.tb_frame.f_globals.get("__name__") == "contextlib")
        if not ours:
            kept.append(traceback)
        traceback = traceback.tb_next
    following: TracebackType | None = None
    for one in reversed(kept):
        following = TracebackType(following, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return following


def is_ours(traceback: TracebackType) -> bool:
    """Return whether a traceback begins with a frame of this distribution."""
    return traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _OURS


def of_the_users(error: Exception) -> Exception:
    """Return an exception of the user's code, to be raised again, with a traceback that has no frames of ours.

    One that was raised in this package, and not by what it called, keeps them: there they say what is wrong.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or is_ours(last):
        return error
    return error.with_traceback(without_ours(error.__traceback__))


def show_without_ours() -> None:
    """Let Python show errors of this package in a script as IPython does: the user's own lines and the message.

    A hook that somebody else has set stays.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not isinstance(error, DetError) and _RENDER not in vars(error):
        sys.__excepthook__(kind, error, traceback)
        return
    from traceback import TracebackException

    shown = TracebackException(kind, error, without_ours(traceback))
    shown.__cause__ = shown.__context__ = None
    print("".join(shown.format()), end="", file=sys.stderr)


def error_class(name: str) -> type[DetError] | None:
    """Return the class of this tree that has a name, None if there is none."""
    kind = globals().get(name)
    return kind if isinstance(kind, type) and issubclass(kind, DetError) else None


class ArgumentError(DetError, ValueError):
    """Arguments of a call contradict each other or have no meaning; the message names them."""


class SignatureError(ArgumentError, TypeError):
    """A call has an argument that the function does not take, or lacks one; the message names both."""


class MissingDependencyError(DetError, ImportError):
    """A framework or engine is not installed; the message is the ``pip install`` to run."""


class UnsupportedFeatureError(DetError):
    """Something that the configuration may ask for, but that this version does not run yet."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, where it is, and what would be right."""

    where: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} {self.remedy}".rstrip()


class ProblemsError(DetError):
    """An error that lists everything found wrong at once.

    Parameters
    ----------
    headline : str
        What was being checked.
    problems : sequence of Problem
        All that was found, in the order in which a reader would mend it.
    """

    def __init__(self, headline: str, problems: Sequence[Problem]) -> None:
        self.headline = headline
        self.problems = tuple(problems)
        super().__init__("\n".join([headline, *(f"  - {problem}" for problem in self.problems)]))


class ConfigurationError(ProblemsError, ValueError):
    """The experiment configuration is not valid; lists every problem with its path."""


class CaptureError(ProblemsError):
    """The cells, values or files that a call needs cannot be sent; lists every reason with its cell."""


class BundleTooLargeError(CaptureError):
    """The files to send exceed the limit; lists the largest ones."""


class BundleCheckError(CaptureError):
    """The bundle does not load in a fresh process; lists what is missing there."""


class BundleCorruptError(DetError):
    """A file of a bundle does not match its recorded hash, or its path leaves the bundle."""


class MasterError(DetError):
    """Something between this process and the master went wrong."""


class MasterUnreachableError(MasterError):
    """No master answers at the address."""


class RemoteSetupError(MasterError):
    """The environment on a machine that is reached by SSH could not be made; the message is the step that failed."""


class NoMasterError(MasterUnreachableError):
    """The machine answers, and no master runs on it."""


class MasterStartError(MasterError):
    """The embedded master did not start; the message carries the end of its log."""


class ProtocolMismatchError(MasterError):
    """Client, master or worker speak different protocol versions; the message says what to restart."""


class UnreadableAnswerError(ProtocolMismatchError):
    """The answer of the master is not one that this version knows; what was asked for may have been done."""


class AuthenticationError(MasterError):
    """The master refused the token."""


class RequestError(MasterError):
    """The master refused a request.

    Parameters
    ----------
    status : int
        HTTP status.
    message : str
        The master's own sentence.

    Attributes
    ----------
    body : ErrorBody or None
        What the master answered, if it was of that form.
    """

    body: ErrorBody | None = None

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class NotFoundError(RequestError):
    """The master knows no such experiment, trial, checkpoint or bundle."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class FencedError(RequestError):
    """A report came from an attempt that is no longer the trial's current one."""

    def __init__(self, message: str) -> None:
        super().__init__(409, message)


class StorageError(DetError):
    """A bundle or checkpoint could not be written or read."""


class DiskFullError(StorageError):
    """There is no room for it: the disk, or what one may use of it, is full."""


class DiskFailedError(StorageError):
    """The file system takes nothing: it has become read-only, or has died."""


class CheckpointError(DetError, RuntimeError):
    """Base of what can be wrong with a checkpoint."""


class CheckpointNotFoundError(CheckpointError):
    """There is no checkpoint that fits the question."""


class CheckpointCorruptError(CheckpointError):
    """A checkpoint's files do not match its manifest; the message names the file."""


class WorkerEnvironmentError(ProblemsError):
    """The workers lack what the program needs of Python and packages, or an environment with it cannot be made."""


class RankLostError(DetError):
    """Another process of the same trial has ended, or does not answer: what went wrong is in its own output."""


class UnreachableError(RankLostError):
    """The machines of a trial do not reach each other, or one has no interface of the network that is to be used."""


class TrialDefinitionError(DetError):
    """The user's Trial class or native code breaks a rule of the API (no model wrapped, metric missing ...)."""


class InvalidDataError(TrialDefinitionError, TypeError):
    """Training or validation data are of a kind, length or shape that cannot be used."""


class CallTypeError(TrialDefinitionError, TypeError):
    """A training call was given an object of another kind than it takes."""


class CallValueError(TrialDefinitionError, ValueError):
    """A training call was given an object with a value that cannot be used, or ``TF_CONFIG`` is wrong for it."""


class InputDiffersError(TrialDefinitionError):
    """A training call was given something else on the worker than in the notebook: data, weights, settings.

    Parameters
    ----------
    difference : str
        What is other, a line each.
    advice : str
        Why that may be, and what to do.
    """

    def __init__(self, difference: str, advice: str) -> None:
        super().__init__(f"{difference}\n{advice}")


class DivergedError(DetError):
    """The loss of a trial, or the metric that trials are compared by, is not a finite number any more.

    Parameters
    ----------
    what : str
        What is not finite, without a stop.
    why : str
        How the sentence goes on, and the likely causes.
    batch : int, optional
        The batch after which it was so, counted from 1.

    Attributes
    ----------
    without_batch : str
        The message for where the batch is told beside it: the same for all trials that diverge in the same way.
    """

    def __init__(self, what: str, why: str, batch: int | None = None) -> None:
        self.batch = batch
        self.without_batch = f"{what}{why}"
        super().__init__(f"{what}{'' if batch is None else f' at batch {batch}'}{why}")


class CommandFailedError(DetError):
    """A command that is an experiment's ``entrypoint`` has failed.

    Parameters
    ----------
    message : str
        How it ended, or what its code has raised.
    kind : str, optional
        The class of what it has raised.
    traceback : str
    file : str, optional
        File of the user's in which it was raised.
    line : int, optional
        Line there.
    """

    def __init__(
        self, message: str, *, kind: str = "", traceback: str = "", file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind or type(self).__name__
        self.traceback = traceback
        self.file = file
        self.line = line


class InvalidHP(DetError):  # noqa: N818 (Determined's name)
    """Raised by the user's code: a trial cannot be trained with its hyperparameters, and is no failure.

    The trial ends at once and is not tried again. Searches that draw their trials at random train another one instead.

    Parameters
    ----------
    message : str
        What does not fit, for whoever looks at the trial.
    """

    def __init__(self, message: str = "the trial's code says so") -> None:
        super().__init__(message)


class ReducerError(TrialDefinitionError, ValueError):
    """A custom reducer of metrics has failed, or returned what does not fit its name; the message names both."""


class ExperimentFailedError(DetError):
    """An experiment ended in state ERROR.

    Parameters
    ----------
    message : str
        What failed, with the user's traceback (cells by number and line) where there is one.
    """


class UserCodeError(ExperimentFailedError):
    """An exception in the user's code.

    Parameters
    ----------
    message : str
        Its traceback, with cells by number and line; where that was shown just before, its place and last line.
    traceback : str
        The traceback in any case.
    cell : int, optional
        Number of the cell in which it was raised.
    file : str, optional
        File of the user's in which it was raised.
    line : int, optional
        Line there.
    """

    def __init__(
        self,
        message: str,
        *,
        traceback: str = "",
        cell: int | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.traceback = traceback
        self.cell = cell
        self.file = file
        self.line = line


def __dir__() -> list[str]:
    """Return what completion shows: the errors."""
    return sorted(name for name, value in globals().items() if isinstance(value, type) and issubclass(value, DetError))
