"""What can be wrong with a table of roles."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from det_native.errors import Problem
from det_native.schema.roles import NAMES, STRATEGY, slots_of

_WHERE = "distributed.roles"
_EXAMPLE = "For example {chief: 1, worker: 2, ps: 1, evaluator: 1}."


def role_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what contradicts itself in the roles of a configuration, as it is written."""
    distributed = raw.get("distributed")
    distributed = distributed if isinstance(distributed, Mapping) else {}
    roles = distributed.get("roles")
    if distributed.get("strategy") != STRATEGY:
        if roles:
            yield Problem(_WHERE, f"is given, but distributed.strategy is not {STRATEGY}.", "Set that too.")
        if distributed.get("trusted_network") is True:
            yield Problem(
                "distributed.trusted_network",
                f"is given, but distributed.strategy is not {STRATEGY}.",
                "Leave it out: nothing else listens on the network.",
            )
        return
    if distributed.get("backend") == "horovod":
        yield Problem(
            "distributed.backend",
            f"is horovod, but with distributed.strategy: {STRATEGY} the processes share their variables.",
            "Leave one of them out.",
        )
    if not roles:
        yield Problem(_WHERE, f"is missing, but distributed.strategy is {STRATEGY}.", _EXAMPLE)
    elif isinstance(roles, Mapping):
        yield from _unknown(roles)
        yield from _counts(roles)
        yield from _slots(raw, roles)


def _unknown(roles: Mapping[str, Any]) -> Iterator[Problem]:
    for name in roles:
        if name not in NAMES:
            near = difflib.get_close_matches(str(name), NAMES, n=1)
            meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(NAMES)}."
            yield Problem(f"{_WHERE}.{name}", "is no role that TensorFlow knows.", meant)


def _counts(roles: Mapping[str, Any]) -> Iterator[Problem]:
    for name in NAMES:
        count = roles.get(name)
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            yield Problem(f"{_WHERE}.{name}", f"must be the number of such processes, not {count!r}.")
            return
    leading = {name: roles.get(name) or 0 for name in ("chief", "master")}
    if sum(leading.values()) == 0:
        yield Problem(
            f"{_WHERE}.chief",
            "is missing: without a chief nobody writes checkpoints, or ends the training.",
            "Set it to 1.",
        )
    elif sum(leading.values()) > 1:
        which = "chief" if leading["chief"] > 1 or leading["master"] <= 1 else "master"
        what = "are both given" if all(leading.values()) else f"is {leading[which]}"
        where = f"{_WHERE}.chief and {_WHERE}.master" if all(leading.values()) else f"{_WHERE}.{which}"
        yield Problem(where, f"{what}, but a training has one process that leads it.", "Give one of them, as 1.")
    if (roles.get("evaluator") or 0) > 1:
        yield Problem(
            f"{_WHERE}.evaluator",
            f"is {roles['evaluator']}: evaluators would all do the same, so TensorFlow takes one only.",
            "Set it to 1, or leave it out.",
        )
    if (roles.get("worker") or 0) > 0 and not roles.get("ps"):
        yield Problem(
            f"{_WHERE}.ps",
            "is missing, but there are workers: the variables that they share lie with a ps.",
            "Set it to 1.",
        )


def _slots(raw: Mapping[str, Any], roles: Mapping[str, Any]) -> Iterator[Problem]:
    resources = raw.get("resources")
    resources = resources if isinstance(resources, Mapping) else {}
    slots, wanted = resources.get("slots_per_trial"), slots_of(roles)
    if resources.get("native_parallel") is True:
        yield Problem(
            "resources.native_parallel",
            f"is true, but with distributed.strategy: {STRATEGY} each role is a process.",
            "Leave it out.",
        )
    if isinstance(slots, int) and wanted and slots != wanted:
        yield Problem(
            "resources.slots_per_trial",
            f"is {slots}, but the chief and the workers of distributed.roles take a slot each: {wanted}.",
            "Leave it out.",
        )
