"""Sentences and rows of the capture report: what travels and why, what does not, what is risky."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from det_native.capture.carry import CannotSendError
from det_native.capture.execution import Execution
from det_native.capture.log import CallRecord, LoggedExecution
from det_native.capture.program.choose import GONE, ROOM, TOO_MUCH, TOOK_LONG
from det_native.capture.program.records import Kind, Read, Refusal, Run
from det_native.capture.value_formats import size_of, type_name
from det_native.errors import Problem
from det_native.schema.reports import CaptureRow
from det_native.schema.time_left import duration

#: Bytes above which a row says that a value is made again.
LARGE = 1 << 20


def refusal_problem(
    refusal: Refusal,
    runs: Sequence[Run],
    left: Mapping[int, str],
    executions: Sequence[Execution],
    namespace: Mapping[str, Any],
    error: CannotSendError | None,
) -> Problem:
    """Say why a name that is needed stands in the way, and what to do.

    Parameters
    ----------
    left : mapping of int to str
        Runs that stay behind, and why.
    executions : sequence of Execution
        Those of the runs.
    namespace : mapping of str
        The live values.
    error : CannotSendError or None
        What the value met when it was to be sent.
    """
    user = executions[refusal.user]
    path = runs[refusal.user].reads.get(refusal.name, Read((refusal.name,))).path
    if refusal.maker is None:
        return _not_made(refusal, path, user, namespace, executions, runs, error)
    name, maker = refusal.name, executions[refusal.maker]
    if maker is user and user.code.hidden:
        return Problem(
            "",
            f"{user.label} uses `{name}`, and runs `{user.code.hidden[0]}`, which sets it by code that is in no cell.",
            "Write that line into a cell of its own, run both, and submit again.",
        )
    why = runs[refusal.maker].never or left.get(refusal.maker) or "does not make it again"
    if maker.skipped:
        remedy = "Remove the tag det-skip from that cell."
    elif maker.code.hidden or maker.language:
        remedy = f"Make `{name}` in a cell of Python, or in a module that a cell imports."
    elif refusal.why == GONE and name in runs[-1].touched:
        remedy = "An earlier training in the running cell has changed it: move this call into a cell of its own."
    else:
        remedy = f"Make `{name}` in a cell of its own, or send it: values=['{name}']."
    way = via(path)
    return Problem(
        "",
        f"`{name}`, used in {lower(user.label)}{way}, was made by {lower(maker.label)}, which cannot run again "
        f"({why}), and cannot be sent ({refusal.why}).",
        (error.remedy if error is not None else "") or remedy,
    )


def _not_made(
    refusal: Refusal,
    path: tuple[str, ...],
    user: Execution,
    namespace: Mapping[str, Any],
    executions: Sequence[Execution],
    runs: Sequence[Run],
    error: CannotSendError | None,
) -> Problem:
    """Say that no cell made a name what it was."""
    name = refusal.name
    by = path[-2] if len(path) > 1 else lower(user.label)
    if name not in namespace:
        return _undefined(name, by, executions)
    seen = zip(executions[: user.index + 1], runs, strict=False)
    between = [one for one, run in seen if name in run.between]
    if between:
        return Problem(
            "",
            f"`{name}` is used by {by}, but what changed it before {lower(between[-1].label)} ran was no cell: a "
            "widget, a timer or a thread.",
            f"Set `{name}` in a cell, or name in values= what {lower(user.label)} makes of it, then submit again.",
        )
    if (name.startswith("_") and (name.strip("_i").isdigit() or not name.strip("_"))) or name in {"In", "Out"}:
        return Problem("", f"{user.label} uses `{name}`, the notebook's history.", "Give the result a name of its own.")
    if any(name in run.touched for run in runs[user.index :]):
        return Problem(
            "",
            f"{user.label} uses `{name}`, which no executed cell defines and which a later cell changed; its earlier "
            "value is gone.",
            f"Set `{name}` in a cell and run the notebook from there.",
        )
    if hasattr(namespace[name], "__qualname__") and getattr(namespace[name], "__module__", None) == "__main__":
        return _undefined(name, by, executions)
    if error is not None:
        return _unsendable(name, path, user, namespace[name], error, by)
    if refusal.why == TOO_MUCH:
        return Problem(
            "",
            f"`{name}`, used in {lower(user.label)}, cannot be sent: {TOO_MUCH}.",
            f"Send it on purpose: values=['{name}'].",
        )
    return Problem(
        "",
        f"`{name}` is used by {by}, but no executed cell sets the value that it had there.",
        f"Run the cell that sets it, then submit again, or send its present value: values=['{name}'].",
    )


def _undefined(name: str, by: str, executions: Sequence[Execution]) -> Problem:
    hidden = [e for e in executions if e.code.hidden or _mentions(e, name)]
    skipped = [e for e in executions if e.skipped and name in e.logged.source]
    remedy = "Run the cell that defines it, then submit again."
    if skipped:
        return Problem(
            "",
            f"`{name}` is used by {by}, but {lower(skipped[-1].label)}, which defines it, is tagged det-skip.",
            "Remove the tag.",
        )
    why = "the cell was edited or the kernel restarted"
    if hidden:
        what = hidden[-1].code.hidden[0] if hidden[-1].code.hidden else hidden[-1].language or "exec()"
        why = f"{lower(hidden[-1].label)} runs code that is in no cell, with `{what}`"
        remedy = "Write that code into a cell or import it, then submit again."
    return Problem("", f"`{name}` is used by {by} but no executed cell defines it ({why}).", remedy)


def _mentions(execution: Execution, name: str) -> bool:
    runs_text = (
        "exec(" in execution.logged.source or "eval(" in execution.logged.source or execution.language is not None
    )
    return runs_text and name in execution.logged.source


def _unsendable(
    name: str, path: tuple[str, ...], user: Execution, value: Any, error: CannotSendError, by: str
) -> Problem:
    route = f": {' -> '.join(path)}" if len(path) > 1 else ""
    if error.kind == "large":
        return Problem(
            "",
            f"{user.label} uses `{name}` ({error}){route}. Values over {ROOM >> 20} MiB are not sent unasked.",
            f"Load it inside your data function, or declare it: init(..., values=['{name}']).",
        )
    if error.kind == "secret":
        return Problem(
            "",
            f"`{name}`, used by {by}, {error}; it is not sent unasked.",
            f"Read it from os.environ and pass it by environment.environment_variables, or send it on purpose: "
            f"values=['{name}'].",
        )
    if error.kind == "notebook":
        what = f"`{name}` {error}" if error.remedy else f"`{name}`"
        return Problem(
            "",
            f"{what}; it is used by {by}, but no executed cell makes it (the cell was edited or the kernel restarted).",
            "Run the cell that makes it, then submit again.",
        )
    return Problem("", f"Cannot send `{name}` ({type_name(value)}), used in {by}.", error.remedy)


def failed_init_problem(execution: Execution) -> Problem:
    """Say that the statement which failed is the one that calls ``init()``."""
    return Problem(
        "",
        f"{execution.label}, which calls init(), failed at line {execution.failed_line} while it did so.",
        "Run the cell that calls init() again, and those after it, then submit again.",
    )


def never_again_problem(execution: Execution, why: str) -> Problem:
    """Say that a cell which the user wants on the worker cannot run there."""
    return Problem("", f"{execution.label} is tagged det-include, but cannot run again: {why}.", "Remove the tag.")


def execution_rows(logged: LoggedExecution, execution: Execution, kind: Kind, reason: str) -> Iterator[CaptureRow]:
    """One row for each cell that runs again: why, and how long it took."""
    took = f"; took {duration(logged.time.duration)}" if logged.time.duration is not None else "; duration not known"
    if logged.ending.succeeded is None:
        took = "; running"
    early = "" if logged.ending.recorded else "; ran before det_native was imported, counted as successful"
    head = ""
    if execution.failed and kind != "settings":
        part = "as far as line" if kind == "until" else "only what stands before line"
        how = "was interrupted" if execution.logged.ending.interrupted else "failed"
        head = f"; {part} {execution.failed_line}, which {how}"
    note = f"{reason}{took}{head}{early}"
    what = f"cell {execution.cell}".strip()
    yield CaptureRow(what=what, how="runs again", size=0, cell=execution.cell, note=note)


def stays_row(execution: Execution, took_seconds: float | None, why: str, has_settings: bool) -> CaptureRow:
    """One row for a cell that stays behind, but for its settings if it has some."""
    seconds = took_seconds or 0.0
    took = [f"took {duration(seconds)}"] if seconds >= 1 else []
    reasons = took if took and why == TOOK_LONG else [why, *took]
    kept = ", but for its imports, definitions and plain settings" if has_settings else ""
    if execution.failed_line is not None and not execution.skipped:
        how = "was interrupted" if execution.logged.ending.interrupted else "failed"
        reasons.append(f"{how} at line {execution.failed_line}: what it did until then counts")
    what, note = f"cell {execution.cell}".strip(), f"stays behind{kept}: {'; '.join(reasons)}"
    return CaptureRow(what=what, how="stays", size=0, cell=execution.cell, status="not sent", note=note)


def drawn_rows(execution: Execution, names: Sequence[str], refused: Mapping[str, str]) -> Iterator[CaptureRow]:
    """A row for each name that a cell drew without a seed and that cannot travel; `refused` says why."""
    for name in names:
        why = refused.get(name) or "its value of then is gone"
        note = f"drawn without a seed; cannot travel ({why}): another one there"
        yield CaptureRow(what=name, how="drawn", size=0, cell=execution.cell, status="not sent", note=note)


def remade_rows(names: Sequence[str], namespace: Mapping[str, Any], execution: Execution) -> Iterator[CaptureRow]:
    """Large values that are not sent: the cell that makes them runs again."""
    for name in names:
        size = size_of(namespace[name]) if name in namespace else None
        if size is not None and size > LARGE:
            yield CaptureRow(
                what=name,
                how="made again",
                size=size,
                cell=execution.cell,
                status="not sent",
                note=f"its cell runs again on the worker; values=['{name}'] sends it instead",
            )


def trained_unseeded_problem(name: str, execution: Execution, error: CannotSendError | None) -> Problem:
    """Say that what a model was trained to can neither travel nor be made again."""
    why = f" ({error})" if error is not None else ""
    return Problem(
        "",
        f"`{name}` was trained in {lower(execution.label)} while TensorFlow had no seed: the same training comes to "
        f"other weights on the cluster, and these cannot be sent{why}.",
        "Call tf.keras.utils.set_random_seed(0) before that training and run it again; or write the weights with "
        f"`{name}.save_weights('trained.weights.h5')`, read them in a cell below with `{name}.load_weights(...)`, "
        "and put `# det-skip` into the first line of the cell that trains.",
    )


def lost_settings_warning(execution: Execution, why: str, names: str) -> str:
    """Say that what a cell has set for the process is not set on the worker."""
    return (
        f"{execution.label} stays behind ({why}) and has set {names} for the whole process. Set it in a "
        "cell of its own."
    )


def training_warning(execution: Execution, source: str, calls: Sequence[CallRecord]) -> Iterator[str]:
    """Say what a cell is without that makes a training call of its own, which is not the one that is sent."""
    lines = len(source.splitlines())
    made = [one for one in calls if one.running == execution.index and one.kind != "init"]
    kinds = dict.fromkeys(f"{one.kind}()" for one in made if one.running_line <= lines)
    if kinds:
        yield (
            f"{execution.label} is sent for what it defines, but its {' and '.join(kinds)} will not train on the "
            "worker: what that returns is empty there, and models are as they were before. To go on from trained "
            "weights, write them to a file and load that where the model is made."
        )


def lower(label: str) -> str:
    """Return the label of an execution as it stands within a sentence."""
    return label[0].lower() + label[1:]


def via(path: tuple[str, ...]) -> str:
    """Return the way by which a name is used."""
    return f" ({' -> '.join(path)})" if len(path) > 1 else ""
