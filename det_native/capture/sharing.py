"""Which values may share state with others: what is bound to a name, and what changes with a value."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_native.capture.bindings import Binding, Environment, import_path
from det_native.capture.events import Bind
from det_native.capture.vocabulary import EXAMPLES_LIBRARY, SHARING_BUILTINS, TRAINING_METHODS, result_shares


def is_taken_over(path: tuple[str, ...], line: int, taken: Collection[int]) -> bool:
    """Whether a call of a cell's top level is a training call that was taken over, in one of the lines `taken`.

    It changes none of its arguments, runs them in a process or with random numbers of their own, and its result, a
    handle or a history, holds none of them.
    """
    return path[-1] in TRAINING_METHODS and line in taken


def holds_examples(event: Bind, environment: Environment) -> bool:
    """Whether a name is bound to what torch's classes of datasets and loaders make."""
    made = [import_path(environment, path) for path, _ in event.through]
    return any(path is not None and path[:3] == EXAMPLES_LIBRARY for path in made)


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
            yield from _through(path, names, environment, local_modules)


def with_state_of(binding: Binding, environment: Environment, apart: Collection[str]) -> frozenset[str]:
    """Return names whose values may share state with one, but for the kinds `apart` and what those are made of."""
    of_apart = (present.tokens for present in environment.values() if present.kind in apart)
    tokens = binding.tokens.difference(*of_apart)
    return frozenset(
        name for name, present in environment.items() if present.tokens & tokens and present.kind != "immutable"
    )


def _through(
    path: tuple[str, ...], names: frozenset[str], environment: Environment, local_modules: Collection[str]
) -> frozenset[str]:
    """Return those arguments of a call whose state its result may hold."""
    binding = environment.get(path[0])
    full = import_path(environment, path)
    if full is not None:
        shares = full[0] in local_modules or result_shares(path[-1], True)
        return names - {path[0]} if shares else frozenset()
    if binding is None:
        return names - {path[0]} if path[0] in SHARING_BUILTINS else frozenset()
    if binding.origin.kind in {"def", "class"}:
        return names - {path[0]} if len(path) == 1 else frozenset()
    if len(path) > 1 and not binding.codes:
        return names & {path[0]}
    return names
