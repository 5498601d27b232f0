"""Sentences and rows of the capture report: what travels and why, what does not, what is risky."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from det_native.capture.execution import Execution, Missing
from det_native.capture.facts import human_size, size_of, type_name
from det_native.capture.log import LoggedExecution
from det_native.capture.program.records import Refusal
from det_native.capture.values import VALUE_LIMIT, CannotSendError, encode
from det_native.errors import Problem
from det_native.schema.rest import CaptureRow

#: Seconds above which running a cell again is worth a warning.
SLOW = 60.0


def missing_problem(
    missing: Missing,
    user: Execution,
    namespace: Mapping[str, Any],
    executions: Sequence[Execution],
    touched: Mapping[str, int],
    is_local: Callable[[str], bool],
) -> Problem:
    """Say why a name that nothing in the log binds stands in the way, and what to do."""
    name = missing.name
    by = missing.path[-2] if len(missing.path) > 1 else f"{user.label[0].lower()}{user.label[1:]}"
    if name not in namespace:
        return _undefined(name, by, executions)
    seen = [e for e in executions if e.index <= user.index and e.effects is not None]
    between = [e for e in seen if e.effects is not None and name in e.effects.between]
    if between:
        return Problem(
            "",
            f"`{name}` is used by {by}, but what changed it before {_lower(between[-1].label)} ran was no cell: a "
            "widget, a timer or a thread.",
            f"Set `{name}` in a cell, or name in values= what {_lower(user.label)} makes of it, then submit again.",
        )
    if (name.startswith("_") and (name.strip("_i").isdigit() or not name.strip("_"))) or name in {"In", "Out"}:
        return Problem("", f"{user.label} uses `{name}`, the notebook's history.", "Give the result a name of its own.")
    if touched.get(name, -1) >= user.index:
        return Problem(
            "",
            f"{user.label} uses `{name}`, which no executed cell defines and which a later cell changed; its "
            "earlier value is "
            "gone.",
            f"Set `{name}` in a cell and run the notebook from there.",
        )
    value = namespace[name]
    try:
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            return _undefined(name, by, executions)
        encode(name, value, declared=False, is_local=is_local)
    except CannotSendError as error:
        return _unsendable(missing, user, value, error, by, executions)
    return Problem(
        "",
        f"`{name}` is used by {by}, but no executed cell sets the value that it had there.",
        f"Run the cell that sets it, then submit again, or send its present value: values=['{name}'].",
    )


def refused_value(
    refusal: Refusal,
    user: Execution,
    maker: Execution,
    path: tuple[str, ...],
    why: str,
    error: CannotSendError | None,
) -> Problem:
    """Say that what a cell made can neither be sent nor be made again, and what to do.

    Parameters
    ----------
    refusal : Refusal
    user, maker : Execution
        Who needs it, and who made it.
    path : tuple of str
        The way by which it is used.
    why : str
        Why the cell that made it does not run again.
    error : CannotSendError or None
        What its value met when it was to be sent.
    """
    name = refusal.name
    used = f"`{name}`, used in {_lower(user.label)}{f' ({" -> ".join(path)})' if len(path) > 1 else ''}"
    if maker is user and user.magics:
        return Problem(
            "",
            f"{user.label} uses `{name}`, and runs `{user.magics[0]}`, which sets it by code that is in no cell.",
            "Write that line into a cell of its own, run both, and submit again.",
        )
    what = f"{used}, was made by {_lower(maker.label)}, which cannot run again ({why}), and cannot be sent"
    if maker.skipped:
        remedy = "Remove the tag det-skip from that cell."
    elif maker.magics or maker.language:
        remedy = f"Make `{name}` in a cell of Python, or in a module that a cell imports."
    else:
        remedy = f"Make `{name}` in a cell of its own, or send it: values=['{name}']."
    return Problem("", f"{what} ({refusal.why}).", (error.remedy if error is not None else "") or remedy)


def _undefined(name: str, by: str, executions: Sequence[Execution]) -> Problem:
    user = by if " " in by else f"{by}"
    hidden = [e for e in executions if e.magics or _mentions(e, name)]
    skipped = [e for e in executions if e.skipped and name in e.text]
    remedy = "Run the cell that defines it, then submit again."
    if skipped:
        return Problem(
            "",
            f"`{name}` is used by {user}, but {_lower(skipped[-1].label)}, which defines it, is tagged det-skip.",
            "Remove the tag.",
        )
    why = "the cell was edited or the kernel restarted"
    if hidden:
        what = hidden[-1].magics[0] if hidden[-1].magics else hidden[-1].language or "exec()"
        why = f"{_lower(hidden[-1].label)} runs code that is in no cell, with `{what}`"
        remedy = "Write that code into a cell or import it, then submit again."
    return Problem("", f"`{name}` is used by {user} but no executed cell defines it ({why}).", remedy)


def _mentions(execution: Execution, name: str) -> bool:
    runs_text = "exec(" in execution.text or "eval(" in execution.text or execution.language is not None
    return runs_text and name in execution.text


def _unsendable(
    missing: Missing, user: Execution, value: Any, error: CannotSendError, by: str, executions: Sequence[Execution]
) -> Problem:
    name = missing.name
    route = f": {' -> '.join(missing.path)}" if len(missing.path) > 1 else ""
    if error.kind == "large":
        return Problem(
            "",
            f"{user.label} uses `{name}` ({error}){route}. Values over 1 MiB are not sent with an experiment.",
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


def execution_rows(logged: LoggedExecution, execution: Execution, reason: str) -> Iterator[CaptureRow]:
    """One row for each included execution: why, and how long it took."""
    took = f"; took {human_time(logged.duration)}" if logged.duration is not None else "; duration not known"
    if logged.succeeded is None:
        took = "; running"
    early = "" if logged.recorded else "; ran before det_native was imported, counted as successful"
    head = f"; only what stands before line {execution.failed_line}, which failed" if execution.failed else ""
    cell = f"[{execution.number}]" if execution.number is not None else ""
    note = f"{reason}{took}{head}{early}"
    yield CaptureRow(what=f"cell {cell}".strip(), how="runs again", size=0, cell=cell, note=note)


def remade_rows(names: Sequence[str], namespace: Mapping[str, Any], execution: Execution) -> Iterator[CaptureRow]:
    """Large values that are not sent: the cell that makes them runs again."""
    for name in names:
        size = size_of(namespace[name]) if name in namespace else None
        if size is not None and size > VALUE_LIMIT:
            yield CaptureRow(
                what=name,
                how="made again",
                size=size,
                cell=f"[{execution.number}]",
                status="not sent",
                note=f"its cell runs again on the worker; values=['{name}'] sends it instead",
            )


def risk_warnings(
    logged: LoggedExecution, execution: Execution, risks: Sequence[str], names: Sequence[str]
) -> Iterator[str]:
    """A cell that is slow, or does what nobody wants repeated unasked."""
    said = {"network": "uses the network", "delete": "deletes files", "shell": "runs a command", "move": "moves files"}
    reasons = []
    if logged.duration is not None and logged.duration > SLOW:
        reasons.append(f"took {human_time(logged.duration)}")
    kinds: dict[str, list[str]] = {}
    for risk in dict.fromkeys(risks):
        kind, _, what = risk.partition(": ")
        kinds.setdefault(kind, []).append(what)
    reasons += [f"{said[kind]} ({_few(what)})" for kind, what in kinds.items()]
    if not reasons:
        return
    shown = ", ".join(repr(name) for name in names if not name.startswith("<")) or "..."
    what = f"{execution.label} {' and '.join(reasons)}. It will run once per trial and once per restart"
    if "move" in kinds:
        yield (
            f"{what}, where the files are already as it left them. Put `# det-skip` into its first line, and send what "
            f"it makes: values=[{shown}]; the files are sent as they are now."
        )
    else:
        yield f"{what}; values=[{shown}] sends the result instead."


def _few(what: Sequence[str]) -> str:
    more = f" and {len(what) - 3} more" if len(what) > 3 else ""
    return f"{', '.join(what[:3])}{more}"


def training_warning(execution: Execution, kinds: Collection[str]) -> str:
    """Say what a cell is without that makes a training call of its own, which is not the one that is sent."""
    calls = " and ".join(f"{kind}()" for kind in kinds)
    return (
        f"{execution.label} is sent for what it defines, but its {calls} will not train on the worker: what that "
        "returns is empty there, and models are as they were before. To go on from trained weights, write them to a "
        "file and load that where the model is made."
    )


def too_large_weights(name: str, label: str, size: int) -> Problem:
    """Say that what a model was trained to can neither travel nor be made again."""
    return Problem(
        "",
        f"`{name}` was trained in {label} while TensorFlow had no seed: the same training comes to other weights "
        f"on the cluster, and these are too large to travel ({human_size(size)}, more than 8 MiB).",
        "Call tf.keras.utils.set_random_seed(0) before that training and run it again; or write the weights with "
        f"`{name}.save_weights('trained.weights.h5')`, read them in a cell below with `{name}.load_weights(...)`, "
        "and put `# det-skip` into the first line of the cell that trains.",
    )


def too_many_values(sizes: Mapping[str, int]) -> Problem:
    """Say that values which the user did not name are too large together."""
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:10]
    names = ", ".join(f"`{name}`" for name in largest)
    return Problem(
        "",
        f"Values sent without being declared come to more than 8 MiB together: {names}.",
        f"Declare the large ones: init(..., values={largest[:3]!r}).",
    )


def early_warning(numbers: Sequence[int | None]) -> str:
    """Say what is not known of cells that ran before anybody looked."""
    cells = ", ".join(f"[{number}]" for number in numbers)
    return (
        f"Cells {cells} ran before det_native was imported: they are counted as successful, and how long they took is "
        "not known."
    )


def human_time(seconds: float) -> str:
    """Return ``1 min 15 s`` for 75 seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "under 0.1 s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _lower(label: str) -> str:
    return label[0].lower() + label[1:]
