"""Why an input may be another one than in the notebook, and what to do about it, by what differs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from det_native.proof.call import Difference
from det_native.schema.manifests import Program

_ALWAYS = "data that have changed since, or something that only the notebook's process has"
_UNSEEDED = "unseeded random numbers of TensorFlow itself, or drawn before det_native was imported"
_WEIGHTS = (
    "weights that were drawn without a seed, or by a training in the notebook that is not the same again: set a seed "
    "(torch.manual_seed(), keras.utils.set_random_seed()), or save the trained weights and load them in a cell"
)
_FUNCTION = "a function of the notebook that was made anew, or is given other values, by something that is not sent"
_ORDER = "the order of a set, which each process has its own of: write sorted(set(...)) in {cells}"


def advice(found: Sequence[Difference], program: Program, title: Callable[[int], str]) -> str:
    """Return why, in the order of what is likely for what differs, and the remedies."""
    weights = [one for one in found if "weights" in one.wanted.part]
    functions = [one for one in found if one.wanted.part.startswith("the function")]
    data = [one for one in found if one not in weights and one not in functions]
    reasons = [_WEIGHTS] if weights else []
    sets = [title(place) for place, cell in enumerate(program.cells) if _makes_a_set(cell.source)]
    if sets and (data or not found):
        reasons.append(_ORDER.format(cells=", ".join(dict.fromkeys(sets))))
    if functions:
        reasons.append(_FUNCTION)
    if data or not found:
        reasons.append(_ALWAYS)
    if weights or data or not found:
        reasons.append(_UNSEEDED)
    names = ", ".join(f"'{name}'" for name in dict.fromkeys(one.wanted.name for one in data if one.wanted.name))
    values = f"init(values=[{names or '...'}])"
    return (
        f"Why: {'; or '.join(reasons)}. Run the notebook's cells again from the top and submit once more; or send the "
        f"value itself, {values}; or keep a cell that changes it, with `# det-include` as its first line. "
        "`proof: warn` in the configuration trains all the same."
    )


def _makes_a_set(source: str) -> bool:
    """Whether a cell makes a list or numbers of a set whose order it does not say."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    sorts = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name_of(node) == "sorted"]
    sorted_ones = {id(one) for call in sorts for one in ast.walk(call)}
    return any(
        isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Call) and _name_of(node) == "set")
        for node in ast.walk(tree)
        if id(node) not in sorted_ones
    )


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
