"""What the classes and functions that cells define do out of sight: what Python calls by itself, and what they keep."""

from __future__ import annotations

from det_native.capture.analysis import Statement
from det_native.capture.argument_changes import ArgumentChanges
from det_native.capture.bindings import Binding, CodeRegistry, Environment
from det_native.capture.events import Bind, Call, Change, Code, Read, flat


def call_keeps_something(event: Change, binding: Binding, environment: Environment, arguments: ArgumentChanges) -> bool:
    """Return whether a call changes a value by what the cells define, whatever the names in it are known for.

    Parameters
    ----------
    event : Change
        One with ``how="call"``.
    binding : Binding
        What it is made on.
    environment : Environment
    arguments : ArgumentChanges
    """
    if event.chain[0] == ("call", ""):
        # Of what a decorator has made in place of a function, too: its class may have a `__call__` that counts.
        if binding.origin.kind != "def":
            return False
        return arguments.keeps_state(binding) or arguments.own_method_changes(environment, binding, "__call__")
    methods = [method for link, method in event.chain if link == "call" and method]
    return any(arguments.own_method_changes(environment, binding, method) for method in methods)


def told_of_classes(event: Bind, environment: Environment, codes: CodeRegistry) -> list[str]:
    """Return the classes of the cells that hear of the class that is bound: they may keep it, as a registry does."""
    bindings = (environment[source] for source in event.sources if source in environment)
    hearing = {code.name for binding in bindings for code in map(codes.__getitem__, binding.codes) if _hears(code)}
    return sorted({name.rpartition(".")[0] for name in hearing} & environment.keys() - {event.name})


def _hears(code: Code) -> bool:
    """Whether a method runs when a class is derived from its own: ``__init_subclass__``, or that of a metaclass."""
    method = code.name.rpartition(".")[2]
    if method == "__init_subclass__":
        return True
    return method in {"__new__", "__init__"} and "bases" in code.parameters  # (metaclass, name, bases, namespace)


def offered_codes(statement: Statement, environment: Environment, codes: CodeRegistry) -> frozenset[int]:
    """Return the functions and methods that a statement may have put into a container which it fills.

    Those that it only calls are left out.
    """
    events = list(flat(statement.events))
    called = {event.callee[0] for event in events if isinstance(event, Call)}
    names = {event.name for event in events if isinstance(event, Read)} - called
    made = [code for event in events if isinstance(event, Bind) for code in event.codes]
    known = (environment[name].codes for name in names if name in environment)
    return frozenset(codes.number(code) for code in (*statement.codes, *made)).union(*known)


def returned_names(name: str, environment: Environment, codes: CodeRegistry) -> frozenset[str]:
    """Return the global names of which a call of the function `name` may give the value, or a part of it."""
    if name not in environment or environment[name].origin.kind != "def":
        return frozenset()
    names = frozenset().union(*(codes[number].returns for number in environment[name].codes))
    return frozenset(n for n in names & environment.keys() if environment[n].origin.kind in {"value", "loop"})


def derived_classes(event: Change, binding: Binding, environment: Environment) -> list[str]:
    """Return the classes that ``Base.__subclasses__()`` gives, and those derived from them."""
    if event.how != "call" or event.chain[-1][1] != "__subclasses__":
        return []
    return sorted(
        name
        for name, present in environment.items()
        if present.origin.kind == "class" and present.classes & binding.tokens
    )
