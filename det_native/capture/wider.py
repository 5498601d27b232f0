"""The wider program: what a worker runs if the cells that were picked give it other inputs than the notebook had."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from det_native.capture.program.choose import ALWAYS_THERE
from det_native.capture.steps import Step


def wider_program(
    steps: Sequence[Step], included: Collection[int], staying: Collection[int], given: Mapping[str, int]
) -> list[int]:
    """Return all executions that can run again, those that are picked among them, in the order of the log.

    What depends on a cell that stays behind stays behind, too: it would be given something else, or nothing.

    Parameters
    ----------
    steps : sequence of Step
        All executions up to the one that makes the call.
    included : collection of int
        Those that are picked.
    staying : collection of int
        Those that are not to run again: they train, say.
    given : mapping of str to int
        Names that are sent by value, each with the execution after which its value held.
    """
    known = set(ALWAYS_THERE)
    other: set[str] = set()  # names that have another value than they had in the notebook, or none
    taken: list[int] = []
    for step in steps:
        index = step.execution.index
        by_value = {name for name, after in given.items() if after == index - 1 or (after < 0 and not index)}
        known |= by_value
        other -= by_value
        if index in included or (index not in staying and _can_run(step, known, other)):
            taken.append(index)
            known |= step.bound
            other -= step.surely
            if step.execution.failed:  # what the statement that failed had done by then is not done again
                other |= _seen(step)
            continue
        other |= step.bound | step.changed | _seen(step)
    return taken


def _seen(step: Step) -> frozenset[str]:
    """Return the names that an execution was seen to bind or to change."""
    effects = step.execution.effects
    return (effects.bound | effects.changed) if effects is not None else frozenset()


def _can_run(step: Step, known: Collection[str], other: Collection[str]) -> bool:
    execution = step.execution
    if execution.skipped or execution.failed or execution.magics or execution.shell or _is_empty(execution.source):
        return False
    if any(name in other for name in step.reads):
        return False
    return all(name in known for name, use in step.reads.items() if use.certain)


def _is_empty(source: str) -> bool:
    """Whether nothing is left of a cell: it had shell lines and magics only."""
    return all(isinstance(node, ast.Pass) for node in ast.parse(source).body)
