"""What to do about an input that differs from the notebook's, by what differs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from det_harness.program.input_difference import Difference
from det_native.capture.bindings import bound_by
from det_native.heap.ownership import definer_of, is_offered
from det_native.schema.manifests import Program

_SETTINGS = ("layers", "optimizer", "loss", "metrics", "loader", "callback")
_TRAIN_ANYWAY = "To train with what the worker makes, set `proof: warn` in the configuration."
_RUN_AGAIN = "Run the notebook's cells again from the top, then submit once more."


def advice(differences: Sequence[Difference], program: Program) -> str:
    """Return the remedies, each for what it mends.

    Parameters
    ----------
    differences : sequence of Difference
        Those that cannot be put right; none where the program failed before its call.
    """
    remedies = list(dict.fromkeys(_remedies(differences, program)))
    return " ".join([*(remedies or [_RUN_AGAIN]), _TRAIN_ANYWAY])


def _remedies(differences: Sequence[Difference], program: Program) -> Iterator[str]:
    roles = {difference.role for difference in differences}
    data = [difference for difference in differences if difference.role in ("data", "variable")]
    if "weights" in roles:
        yield (
            "Set a seed in the cell that makes the model, before it is made (torch.manual_seed(0) or "
            "keras.utils.set_random_seed(0)), and run that cell again; of a model that was trained in the notebook, "
            "save the weights and load them in a cell."
        )
    if data:
        yield from _of_data(data, program)
    functions = [difference.name for difference in differences if difference.role == "code"]
    if functions:
        yield (
            f"Run the cells again that define {_listed(functions)}, in the notebook's order: what changed "
            "it since is not sent. A cell that has to run there can have `# det-include` as its first line."
        )
    if roles.intersection(_SETTINGS):
        yield (
            "Give settings that each process computes anew a fixed value, or keep them in a variable and name it in "
            "init(values=[...])."
        )


def _of_data(data: Sequence[Difference], program: Program) -> Iterator[str]:
    """Yield how the notebook's data get to the worker."""
    objects = [difference.name for difference in data if _is_object_with_state(difference)]
    if objects:
        yield (
            f"Put values=[{_quoted(objects)}] into init(), or change {_listed(objects)} in a cell of its own, before "
            "the cell that trains."
        )
    data = [difference for difference in data if not _is_object_with_state(difference)]
    names = list(dict.fromkeys(difference.name for difference in data if _can_be_sent(difference)))
    if names:
        calling = bound_in(program.cells[-1].source) if program.cells else set()
        here = [name for name in names if name in calling]
        if here:  # a value that is sent is bound before the cell that needs it, which would make it anew
            yield f"Make {_listed(here)} in a cell of its own, before the cell that trains."
        yield f"Send the notebook's value, whatever its size: init(values=[{_quoted(names)}])."
    others = [difference.name or difference.title for difference in data if not _can_be_sent(difference)]
    if others:
        yield (
            f"Keep the arrays or tables that {_listed(others)} is made of in variables, made in a cell of their own "
            "before the cell that trains, and send these: init(values=['their_name'])."
        )
    if data:
        yield "If a slow cell that stayed behind has changed it, give that cell `# det-include` as its first line."


def has_state(value: object) -> bool:
    """Whether a value is a model, an optimizer or the like, by its class."""
    return any(definer_of(type(value), name) for name in ("state_dict", "get_weights"))


def _is_object_with_state(difference: Difference) -> bool:
    """Whether a variable holds a model, an optimizer or the like, which travels if the user names it."""
    return bool(difference.name) and has_state(difference.value)


def _can_be_sent(difference: Difference) -> bool:
    """Whether the variable of an input holds what travels as a value; datasets and other objects do not."""
    cls = type(difference.value)
    arrays = is_offered(cls, "shape", "dtype") or is_offered(cls, "iloc")
    whole = not difference.is_part and bool(difference.name)
    return whole and (arrays or issubclass(cls, list | tuple | dict | set | str | int | float))


def bound_in(source: str) -> set[str]:
    """Return the names that a cell binds at any depth of its own code."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    return {name for node in ast.walk(tree) for name in bound_by(node)}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in dict.fromkeys(names))
