"""Why an experiment or its trials failed, in the words of the live view (``jupyter_ext/src/shared/facts.ts``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from det_native.schema import rest
from det_native.schema.refused import is_refused
from det_native.schema.states import ExperimentState, TrialState

MAX_FAILURES = 5
# Of a message, so much stands in a headline; all of it stands in the traceback.
_HEADLINE_CHARACTERS = 200


@dataclass(frozen=True)
class Failure:
    """What went wrong, with what is said of it before its traceback."""

    headline: str
    traceback: str


@dataclass
class _FirstOfMany:
    trial: rest.Trial
    error: rest.UserErrorInfo
    others: list[int] = field(default_factory=list)


def failures_of(trials: Sequence[rest.Trial], experiment: rest.Experiment | None = None) -> list[Failure]:
    """Return what made trials fail, why the experiment failed or was stopped if that is something else, and warnings.

    Trials with the same traceback are told together.

    Parameters
    ----------
    experiment : Experiment, optional
        Theirs.
    """
    found: dict[str, _FirstOfMany] = {}
    for trial in trials:
        if trial.error is not None and trial.state is not TrialState.COMPLETED and not is_refused(trial):
            traceback = _traceback(trial.error)
            if traceback in found:
                found[traceback].others.append(trial.shown_number)
            else:
                found[traceback] = _FirstOfMany(trial, trial.error)
    failures = [Failure(_headline(first), _body(first.error)) for first in found.values()]
    error = experiment.error if experiment is not None else None
    if experiment is not None and error is not None and experiment.state is ExperimentState.CANCELED:
        # Nobody's mistake: a kernel was restarted, say.
        failures.append(Failure(_what(error).removeprefix(": "), error.traceback))
    elif error is not None and _traceback(error) not in found:
        failures.append(Failure(f"The experiment failed{_where(error)}{_what(error)}", _body(error)))
    return [
        *failures,
        *(Failure(f"Trial {trial.shown_number}: {trial.warning}", "") for trial in trials if trial.warning),
    ]


def headlines(failures: Sequence[Failure]) -> list[str]:
    """Return a line for each of the first failures, and one for how many more there are."""
    lines = [failure.headline for failure in failures[:MAX_FAILURES]]
    more = len(failures) - len(lines)
    return [*lines, f"... and {more} more failure{'s' if more > 1 else ''}"] if more else lines


def _headline(first: _FirstOfMany) -> str:
    retried = "" if first.trial.state.terminal else "; it is tried again"
    failed = f"Trial {first.trial.shown_number} failed{_where(first.error)}{retried}"
    return f"{failed}{_others(first.others)}{_what(first.error)}"


def _others(trials: Sequence[int]) -> str:
    """Return ``; so did trials 14 and 15``."""
    if not trials:
        return ""
    *before, last = map(str, trials)
    return f"; so did trials {', '.join(before)} and {last}" if before else f"; so did trial {last}"


def _where(error: rest.UserErrorInfo) -> str:
    """Return `` at batch 30, in cell [4], line 2, on rank 1``."""
    when = f" at batch {error.batch}" if error.batch else " before its first batch"
    cell = "" if error.cell is None else f"cell [{error.cell}]"
    place = ", ".join(filter(None, (cell, error.file)))
    line = f", line {error.line}" if place and error.line is not None else ""
    rank = f", on {error.process}" if error.process else ""
    return f"{when}{f', in {place}{line}' if place else ''}{rank}"


def _what(error: rest.UserErrorInfo) -> str:
    """Return ``: ValueError: bad shape``, in one line."""
    line = " ".join(error.message.split())
    short = line if len(line) <= _HEADLINE_CHARACTERS else f"{line[:_HEADLINE_CHARACTERS]}…"
    return "".join(f": {part}" for part in (error.type, short) if part)


def _body(error: rest.UserErrorInfo) -> str:
    """Return what is to be said below the headline: nothing, if that says it all."""
    whole = not error.traceback and "\n" not in error.message and len(error.message) <= _HEADLINE_CHARACTERS
    return "" if whole else _traceback(error)


def _traceback(error: rest.UserErrorInfo) -> str:
    return error.traceback or f"{error.type}: {error.message}"
