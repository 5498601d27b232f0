"""Which values may share state with others: what is bound to a name, and what changes with a value."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_native.capture.bindings import Binding, Environment, import_path
from det_native.capture.events import Bind, Change
from det_native.capture.vocabulary import (
    CONTAINER_CHANGES,
    CONTAINER_KINDS,
    COPYING_BUILTINS,
    COPYING_FUNCTIONS,
    KINDS_MADE,
    SHARING_BUILTINS,
    TRAINING_METHODS,
    result_shares,
)

COPYING_PATHS = {(name,) for name in COPYING_BUILTINS}


def is_taken_over(path: tuple[str, ...], line: int, taken: Collection[int]) -> bool:
    """Whether a call of a cell's top level is a training call that was taken over, in one of the lines `taken`.

    It changes none of its arguments, runs them in a process or with random numbers of their own, and its result, a
    handle or a history, holds none of them.
    """
    return path[-1] in TRAINING_METHODS and line in taken


def kind_made(event: Bind, environment: Environment) -> str | None:
    """Return the kind of what a name is bound to, if a call of a library tells it; see ``KINDS_MADE``."""
    for path, _ in event.through:
        full = import_path(environment, path) or ()
        for beginning, kind in KINDS_MADE.items():
            if full[: len(beginning)] == beginning:
                return kind
    return None


def shared_names(
    event: Bind, environment: Environment, local_modules: Collection[str], taken: Collection[int]
) -> Iterator[str]:
    """Yield names whose values may share state with what is bound.

    Parameters
    ----------
    event : Bind
    environment : mapping of name to Binding
        What the names are bound to before it.
    local_modules : collection of str
        The user's own: nothing is known of what their functions return.
    taken : collection of int
        Lines of training calls that were taken over.
    """
    yield from event.aliases
    for path, names in event.through:
        if not is_taken_over(path, event.line, taken):
            for name in _through(path, names, environment, local_modules):
                if name not in environment or not _is_code(environment[name], local_modules):
                    yield name


def _is_code(binding: Binding, local_modules: Collection[str]) -> bool:
    """Whether it is a function, a class or a library's module: called, or handed on, it is no part of a result."""
    if binding.origin.kind != "import":
        return binding.origin.kind in {"def", "class"}
    package = binding.origin.module.partition(".")[0]
    return package not in local_modules and (not binding.origin.attribute or binding.kind in {"module", "callable"})


def copied_names(event: Bind, environment: Environment) -> frozenset[str]:
    """Return names of containers of which what is bound is a copy, with the same things in it."""
    made = [given for path, given in event.through if path in COPYING_PATHS and path[0] not in environment]
    return _nested(event.copies, environment, known=True) | _nested(frozenset().union(*made), environment, known=False)


def reaches_parts(event: Change, binding: Binding) -> bool:
    """Return whether a change may reach what is kept in the value, not only which things are kept in it."""
    if not binding.whole or binding.kind not in CONTAINER_KINDS or len(event.chain) != 1:
        return True
    if event.how == "item":
        return event.accumulates  # ``c["a"] += [1]`` changes a list that is kept in it
    return event.how != "call" or event.chain[0][1] not in CONTAINER_CHANGES


def with_state_of(
    binding: Binding,
    environment: Environment,
    apart: Collection[str],
    *,
    parts: bool = True,
    still: frozenset[int] = frozenset(),
) -> frozenset[str]:
    """Return names whose values may share state with one.

    Parameters
    ----------
    binding : Binding
    environment : mapping of name to Binding
    apart : collection of str
        Kinds that are left out, with what those are made of.
    parts : bool
        Whether it is enough that they keep the same things.
    still : frozenset of int
        Tokens of what has not changed, so that sharing that does not count.
    """
    of_apart = (present.tokens for present in environment.values() if present.kind in apart)
    tokens = (binding.tokens | binding.parts if parts else binding.tokens).difference(still, *of_apart)
    # What a class is patched with, its instances have too; what changes one of them does not change the class.
    made = binding.tokens if binding.origin.kind == "class" else frozenset()
    return frozenset(
        name
        for name, present in environment.items()
        if (present.tokens & tokens or (parts and present.parts & tokens) or present.classes & made)
        and present.kind != "immutable"
    )


def classes_in(event: Bind, environment: Environment) -> frozenset[int]:
    """Return the tokens of the classes that what is bound may have instances of, or be derived from."""
    sources = [environment[name] for name in event.sources if name in environment]
    own = (binding.tokens for binding in sources if binding.origin.kind == "class")
    return frozenset().union(*own, *(binding.classes for binding in sources))


def _nested(names: Collection[str], environment: Environment, *, known: bool) -> frozenset[str]:
    """Return those of which a shallow copy shares something.

    Of `known` containers only, or of whatever may be one: a table has a ``copy()`` as well, and shares nothing.
    """
    bindings = ((name, environment[name]) for name in names if name in environment)
    kinds = CONTAINER_KINDS if known else {*CONTAINER_KINDS, None}
    return frozenset(name for name, binding in bindings if binding.kind in kinds and not binding.shallow)


def _through(
    path: tuple[str, ...], names: frozenset[str], environment: Environment, local_modules: Collection[str]
) -> frozenset[str]:
    """Return those arguments of a call whose state its result may hold."""
    binding = environment.get(path[0])
    full = import_path(environment, path)
    if full is not None:
        shares = full[0] in local_modules or full in COPYING_FUNCTIONS or result_shares(path[-1], True)
        return names - {path[0]} if shares else frozenset()
    if binding is None:
        return names - {path[0]} if path[0] in SHARING_BUILTINS else frozenset()
    if binding.kind == "keras context":
        return names - {path[0]} if path[-1].startswith("wrap_") else frozenset()
    if binding.origin.kind in {"def", "class"}:
        return names - {path[0]} if len(path) == 1 else frozenset()
    if len(path) > 1 and not binding.codes:
        return names & {path[0]}
    return names
