"""Whether a call changes what it is given or made on: by what is known of libraries, and by reading the cells."""

from __future__ import annotations

from collections.abc import Callable, Collection

from det_native.capture.bindings import Binding, CodeRegistry, Environment, import_path
from det_native.capture.events import Call, Change
from det_native.capture.vocabulary import (
    ACCUMULATING_METHODS,
    ARGUMENT_CHANGING_METHODS,
    CONTAINER_CHANGES,
    DATA_KINDS,
    FRESH_METHODS,
    KEEPING_METHODS,
    LEARNING_METHODS,
    MUTATING_BUILTINS,
    TRAINING_METHODS,
    VIEW_METHODS,
    WRAPPING_METHODS,
    chain_changes,
    changes_argument,
)

Path = tuple[str, ...]
#: Functions that are being, or have been, looked into for a question, with the position of the argument.
Seen = set[tuple[int, int | str]]
_SELF = "self"


class ArgumentChanges:
    """Answers for one pass over the log.

    Parameters
    ----------
    codes : CodeRegistry
        Functions and classes that the cells define.
    local_modules : collection of str
        Modules that travel as files: nothing is known of what they do.
    """

    def __init__(self, codes: CodeRegistry, local_modules: Collection[str]) -> None:
        self._codes = codes
        self._local_modules = local_modules
        self._named: dict[tuple[frozenset[int], str], tuple[int, ...]] = {}

    def changes(
        self,
        environment: Environment,
        event: Call,
        full: Path | None,
        position: int | str,
        seen: Seen | None = None,
        given: frozenset[int] = frozenset(),
    ) -> bool:
        """Return whether a call may change the argument at `position`.

        Parameters
        ----------
        environment : Environment
            What the names are bound to at the call.
        full : tuple of str or None
            The callee's path if it is imported.
        position : int or str
            Number or keyword of the argument.
        seen : set, optional
            Where the search has been.
        given : frozenset of int
            Code of the cells that the argument carries: its methods.
        """
        root, last = event.callee[0], event.callee[-1]
        binding = environment.get(root)
        if full is not None:
            if full[0] in self._local_modules:
                return not full[-1][:1].isupper()
            return changes_argument(full, position)
        if binding is None:
            return MUTATING_BUILTINS.get(root) == position
        if len(event.callee) == 1:
            if binding.origin.kind == "def":
                seen = set() if seen is None else seen
                return any(self._in_function(environment, number, position, seen, given) for number in binding.codes)
            return False
        if last in ARGUMENT_CHANGING_METHODS or last in WRAPPING_METHODS:
            return True
        return bool(binding.codes) and last not in FRESH_METHODS | VIEW_METHODS | KEEPING_METHODS

    def _in_function(
        self, environment: Environment, number: int, position: int | str, seen: Seen, given: frozenset[int]
    ) -> bool:
        """Return whether a function defined in a cell changes what it is given at `position`."""
        code = self._codes[number]
        if (number, position) in seen:
            return False
        seen.add((number, position))
        if isinstance(position, int):
            named = code.parameters[position : position + 1] or code.parameters[-1:]
        else:
            named = (position,) if position in code.parameters else code.parameters
        for event in code.changes_and_calls:
            if isinstance(event, Change) and event.name in named:
                if event.how != "call" or chain_changes(event.chain, None, event.in_place):
                    return True
                if given and self.own_method_changes(environment, Binding(codes=given), event.chain[-1][1]):
                    return True
            elif isinstance(event, Call) and event.callee[0] not in code.parameters:
                full = event.callee if event.imported else import_path(environment, event.callee)
                for inner, names in event.arguments:
                    if names.intersection(named) and self.changes(environment, event, full, inner, seen, given):
                        return True
        return False

    def keeps_state(self, binding: Binding) -> bool:
        """Return whether calling a function of the cells changes what it keeps for its next call, its defaults."""
        return any(
            isinstance(event, Change) and event.name in self._codes[number].kept and _is_plain(event)
            for number in binding.codes
            if self._codes[number].kept and "." not in self._codes[number].name  # no method of what it makes
            for event in self._codes[number].changes_and_calls
        )

    def own_method_changes(
        self, environment: Environment, binding: Binding, method: str, seen: Seen | None = None
    ) -> bool:
        """Return whether a method of a class of the cells, whatever its name, changes what it is called on.

        Parameters
        ----------
        environment : Environment
        binding : Binding
            The object, or the class.
        method : str
        seen : set, optional
            Where the search has been.
        """
        found: Seen = set() if seen is None else seen
        numbers = self.methods_named(binding, method)
        return any(self.method_changes(environment, binding, number, found) for number in numbers)

    def methods_named(self, binding: Binding, name: str) -> tuple[int, ...]:
        """Return the numbers of the methods of that name in the classes of the cells which `binding` may be of."""
        key = binding.codes, name
        if key not in self._named:
            codes = ((number, self._codes[number]) for number in sorted(binding.codes))
            self._named[key] = tuple(number for number, code in codes if code.name.endswith(f".{name}") and code.bound)
        return self._named[key]

    def getters_named(self, binding: Binding, name: str) -> tuple[int, ...]:
        """Return those of :meth:`methods_named` that run when the attribute is looked at: properties."""
        found = ((number, self._codes[number]) for number in self.methods_named(binding, name))
        return tuple(
            number
            for number, code in found
            if len(code.parameters) == 1 and any(one.endswith("property") for one in code.decorators)
        )

    def method_changes(self, environment: Environment, binding: Binding, number: int, seen: Seen | None = None) -> bool:
        """Return whether the method of that number changes what it is called on."""
        seen = set() if seen is None else seen
        if (number, _SELF) in seen:
            return False
        seen.add((number, _SELF))
        code = self._codes[number]
        own = code.parameters[0]
        for event in code.changes_and_calls:
            if isinstance(event, Change) and event.name == own:
                if _is_plain(event):
                    return True
                called = event.chain[-1][1] if event.how == "call" else ""
                if called and self.own_method_changes(environment, binding, called, seen):
                    return True
            elif isinstance(event, Call) and event.callee[0] != own:
                full = event.callee if event.imported else import_path(environment, event.callee)
                for position, names in event.arguments:
                    if own in names and self.changes(environment, event, full, position, seen):
                        return True
        return False


def _is_plain(event: Change) -> bool:
    """Whether a change is one for certain, whatever is changed."""
    if event.how != "call":
        return True
    return event.in_place or event.chain[-1][1] in CONTAINER_CHANGES | ACCUMULATING_METHODS


def exposed(
    event: Call, names: frozenset[str], environment: Environment, may_be_model: Callable[[str], bool]
) -> frozenset[str]:
    """Return those of the names given to a call whose values it may change.

    Methods that learn leave data as they are; of a function or class, what it makes is wrapped, not itself.

    Parameters
    ----------
    event : Call
    names : frozenset of str
        What is given at one position.
    environment : Environment
    may_be_model : callable
        Whether a bound value of which no kind is known may be a model.
    """
    last = event.callee[-1]
    if event.callee == ("next",):  # those are gone through by an iterator made from them
        kept = {"examples", "loader", "dataset"}
        return frozenset(name for name in names if name not in environment or environment[name].kind not in kept)
    if last in WRAPPING_METHODS:
        return frozenset(n for n in names if n not in environment or environment[n].origin.kind not in {"def", "class"})
    if last not in LEARNING_METHODS:
        return names
    return frozenset(
        name
        for name in names
        if name not in environment
        or (environment[name].kind not in DATA_KINDS and (environment[name].kind is not None or may_be_model(name)))
    )


def call_changes(event: Change, binding: Binding, taken: bool) -> bool:
    """Return whether calling a name, or a method on it, may change the name's value.

    Parameters
    ----------
    event : Change
        One with ``how="call"``.
    binding : Binding
        The name's value.
    taken : bool
        Whether it is a training call's line that the native API has taken over.
    """
    first = event.chain[0]
    origin = binding.origin
    if first == ("call", "") and (origin.kind in {"class", "import"} or binding.kind == "callable"):
        return False
    if first == ("call", "") and origin.kind == "def" and binding.kind != "callable with state":
        return False
    if binding.kind == "module" or (origin.kind == "import" and binding.kind == "callable"):
        return False
    if origin.kind == "import" and (not origin.attribute or origin.attribute[:1].isupper()):
        return False
    if taken and event.chain[-1][1] in TRAINING_METHODS:
        return False
    if first == ("call", ""):
        return len(event.chain) == 1 or chain_changes(event.chain[1:], None, event.in_place)
    return chain_changes(event.chain, binding.kind, event.in_place)
