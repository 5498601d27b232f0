"""Whether a call changes what it is given or made on: by what is known of libraries, and by reading the cells."""

from __future__ import annotations

from collections.abc import Callable, Collection

from det_native.capture.bindings import Binding, CodeRegistry, Environment, import_path
from det_native.capture.events import Call, Change, flat
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

    def changes(
        self,
        environment: Environment,
        event: Call,
        full: Path | None,
        position: int | str,
        active: frozenset[int] = frozenset(),
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
        active : frozenset of int
            Functions that are being read already.
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
                return any(self._in_function(environment, number, position, active) for number in binding.codes)
            return False
        if last in ARGUMENT_CHANGING_METHODS or last in WRAPPING_METHODS:
            return True
        return bool(binding.codes) and last not in FRESH_METHODS | VIEW_METHODS | KEEPING_METHODS

    def _in_function(self, environment: Environment, number: int, position: int | str, active: frozenset[int]) -> bool:
        """Return whether a function defined in a cell changes what it is given at `position`."""
        code = self._codes[number]
        if number in active:
            return False
        if isinstance(position, int):
            named = code.parameters[position : position + 1] or code.parameters[-1:]
        else:
            named = (position,) if position in code.parameters else code.parameters
        active = active | {number}
        for event in flat(code.events):
            if isinstance(event, Change) and event.name in named:
                if event.how != "call" or chain_changes(event.chain, None, event.in_place):
                    return True
            elif isinstance(event, Call) and event.callee[0] not in code.parameters:
                full = event.callee if event.imported else import_path(environment, event.callee)
                for inner, names in event.arguments:
                    if names.intersection(named) and self.changes(environment, event, full, inner, active):
                        return True
        return False

    def keeps_state(self, binding: Binding) -> bool:
        """Return whether calling a function of the cells changes what it keeps for its next call, its defaults."""
        return any(
            isinstance(event, Change) and event.name in self._codes[number].kept and _is_plain(event)
            for number in binding.codes
            if self._codes[number].kept
            for event in flat(self._codes[number].events)
        )

    def own_method_changes(
        self, environment: Environment, binding: Binding, method: str, active: frozenset[int] = frozenset()
    ) -> bool:
        """Return whether a method of a class of the cells, whatever its name, changes what it is called on.

        Parameters
        ----------
        environment : Environment
        binding : Binding
            The object, or the class.
        method : str
        active : frozenset of int
            Methods that are being read already.
        """
        return any(
            self.method_changes(environment, binding, number, active | {number})
            for number in self.own_methods(binding, method)
            if number not in active
        )

    def own_methods(self, binding: Binding, method: str, looked_at: bool = False) -> list[int]:
        """Return the numbers of the methods of that name in the classes of the cells which `binding` may be of.

        Parameters
        ----------
        binding : Binding
        method : str
        looked_at : bool
            It is not called by the code, but by Python: as a property, unless its name says otherwise.
        """
        getter = looked_at and not method.startswith("__")
        return [
            number
            for number in sorted(binding.codes)
            if self._codes[number].name.endswith(f".{method}")
            and (len(self._codes[number].parameters) == 1 if getter else self._codes[number].parameters)
        ]

    def method_changes(
        self, environment: Environment, binding: Binding, number: int, active: frozenset[int] = frozenset()
    ) -> bool:
        """Return whether the method of that number changes what it is called on."""
        code = self._codes[number]
        own = code.parameters[0]
        for event in flat(code.events):
            if isinstance(event, Change) and event.name == own:
                if _is_plain(event):
                    return True
                called = event.chain[0][1] if event.how == "call" and len(event.chain) == 1 else ""
                if called and self.own_method_changes(environment, binding, called, active):
                    return True
            elif isinstance(event, Call) and event.callee[0] != own:
                full = event.callee if event.imported else import_path(environment, event.callee)
                for position, names in event.arguments:
                    if own in names and self.changes(environment, event, full, position, active):
                        return True
        return False


def _is_plain(event: Change) -> bool:
    """Whether a change is one for certain, or done by a method of a part of which nothing is known."""
    if event.how != "call":
        return True
    if len(event.chain) == 1:
        return event.chain[0][1] in CONTAINER_CHANGES | ACCUMULATING_METHODS
    return chain_changes(event.chain, None, event.in_place)


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
        return frozenset(n for n in names if n not in environment or environment[n].kind not in {"examples", "dataset"})
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
