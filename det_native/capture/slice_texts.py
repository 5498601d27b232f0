"""What the slicer says of executions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from det_native.capture.execution import Execution
from det_native.capture.steps import Step, Use


def lost_problem(name: str, use: Use, user: Execution, step: Step) -> tuple[str, str]:
    """Say that a statement which failed made a name what it is, and what to do."""
    bound = name in step.bound
    return (
        f"`{name}`, used in {lower(user.label)}{via(use.path)}, was {'defined' if bound else 'changed'} by "
        f"{lower(step.execution.label)}, which failed{_where(step.execution)}.",
        "Fix that cell and run it, then submit again."
        if bound
        else f"Run the cell that makes `{name}` again, and those after it that change it, then submit again.",
    )


def unsure_warning(names: Sequence[str], execution: Execution) -> str:
    """Say which names a statement that failed may have changed in part."""
    quoted = [f"`{name}`" for name in names]
    listed = " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return (
        f"{execution.label} failed{_where(execution)} while it was using {listed}; should it have changed "
        f"{'it' if len(names) == 1 else 'one of them'}, run the cell that makes it again."
    )


def late_settings_warning(step: Step) -> str:
    """Say that a statement which failed has perhaps set something for the process."""
    return (
        f"{step.execution.label} failed{_where(step.execution)} and has set {', '.join(sorted(step.sets_late))} for "
        "the whole process; what the line that failed has set is not sent. Run it again."
    )


def listed(reasons: Iterable[str]) -> str:
    """Return reasons in a line: names with the same verb together."""
    by_verb: dict[str, list[str]] = {}
    for reason in reasons:
        verb, _, what = reason.partition(" ")
        by_verb.setdefault(verb, []).append(what)
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in by_verb.items())


def lower(label: str) -> str:
    """Return the label of an execution as it stands within a sentence."""
    return label[0].lower() + label[1:]


def via(path: tuple[str, ...]) -> str:
    """Return the way by which a name is used."""
    return f" ({' -> '.join(path)})" if len(path) > 1 else ""


def _where(execution: Execution) -> str:
    return f" at line {execution.failed_line}" if execution.failed_line is not None else ""
