"""Sentences on cells that run again: why, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from det_native.capture.carry import CannotSendError
from det_native.capture.execution import Execution
from det_native.capture.explain import lower
from det_native.capture.log import SLOW, LoggedExecution
from det_native.capture.program.choose import GONE, TOO_MUCH
from det_native.capture.program.records import Plan, Refusal, Run
from det_native.schema.time_left import duration

#: Seconds above which a warning names how long a cell took that was to stay behind.
SECONDS_TOLD = 1.0


def reason_of(
    index: int,
    plan: Plan,
    runs: Sequence[Run],
    executions: Sequence[Execution],
    file: tuple[int, str] | None,
    calls_init: bool,
) -> str:
    """Return why a cell runs again; `file` is what it has written and who has read that."""
    run, refusal = runs[index], plan.forced.get(index)
    if refusal is not None:
        changer = _changer(refusal, runs, executions)
        user = lower(executions[refusal.user].label)
        if changer == user:
            return f"`{refusal.name}` is needed and cannot travel: {user} changes it"
        return f"`{refusal.name}` is needed and cannot travel ({refusal.why}): {user} uses it"
    if index in plan.left:
        return "settings only"
    if calls_init:
        return "calls init()"
    if run.sets:
        return f"sets {few(run.sets)}"
    if file is not None:
        return f"writes {file[1]}, which {lower(executions[file[0]].label)} reads"
    return "ran before the call" if index in plan.needed else "ran before the call; nothing needs it"


def why_forced(
    refusal: Refusal | None, runs: Sequence[Run], executions: Sequence[Execution], error: CannotSendError | None
) -> tuple[str, str]:
    """Return why a cell runs again against its nature, for the end of a sentence, and what to do.

    Parameters
    ----------
    refusal : Refusal or None
        The name of it that cannot travel; None where it has set something.
    executions : sequence of Execution
        Those of the runs.
    error : CannotSendError or None
        What the value met when it was to be sent.
    """
    if refusal is None:
        return "because it changes settings of the whole process", "Change them in a separate cell."
    name, user, changer = refusal.name, lower(executions[refusal.user].label), _changer(refusal, runs, executions)
    if changer == user:
        call = ", which makes the call," if refusal.user == len(runs) - 1 else ""
        return f"since {user}{call} changes `{name}`", "Move that change to a separate cell."
    if changer:
        return (
            f"since {user} needs `{name}` as it was before {changer} changed it",
            "Give what that cell makes another name.",
        )
    why = f"as `{name}` is needed and cannot be sent ({refusal.why})"
    if refusal.why == TOO_MUCH or (error is not None and error.kind == "large"):
        return why, f"Send it on purpose: values=['{name}']."
    verb = "Make" if refusal.maker is None or name in runs[refusal.maker].bound else "Change"
    return why, f"{verb} `{name}` in a cell of its own."


def _changer(refusal: Refusal, runs: Sequence[Run], executions: Sequence[Execution]) -> str:
    """Return the label of the cell by which the value that is needed is gone; empty if it is not."""
    if refusal.why != GONE:
        return ""
    touching = (index for index in range(refusal.user, len(runs)) if refusal.name in runs[index].touched)
    return next((lower(executions[index].label) for index in touching), "")


def risk_warnings(logged: LoggedExecution, execution: Execution, why: str, remedy: str) -> Iterator[str]:
    """Warn of a cell that is slow, or does what nobody wants repeated unasked.

    Parameters
    ----------
    why, remedy : str
        Why it runs again against its nature, and what to do; empty if it does not.
    """
    said = {"network": "uses the network", "delete": "deletes files", "shell": "runs a command", "move": "moves files"}
    reasons = []
    least = SECONDS_TOLD if why else SLOW
    if logged.time.duration is not None and logged.time.duration > least and not execution.failed:
        reasons.append(f"took {duration(logged.time.duration)}")
    kinds: dict[str, list[str]] = {}
    for risk in dict.fromkeys(execution.logged.seen.outside):
        kind, _, what = risk.partition(": ")
        kinds.setdefault(kind, []).append(what)
    reasons += [f"{said[kind]} ({few(what)})" for kind, what in kinds.items()]
    if not reasons:
        return
    again = "It will run once per trial and once per restart"
    again += ", with the files already as it left them" if "move" in kinds else ""
    if why:
        again += f", {why}. {remedy}"
    else:
        again += ". Do that in a cell of its own: what it makes is sent instead."
    yield f"{execution.label} {' and '.join(reasons)}. {again}"


def few(what: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(what) - 3} more" if len(what) > 3 else ""
    return f"{', '.join(what[:3])}{more}"
