"""Whether the change of one value reaches settings that it was given: plain data, which only the cells change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from det_native.capture.argument_changes import ArgumentChanges
from det_native.capture.bindings import Binding, CodeRegistry, Environment, import_path
from det_native.capture.events import Call, Change, Code
from det_native.capture.vocabulary import CONTAINER_CHANGES

#: Libraries whose functions change tensors, but no dictionaries or lists.
_OF_TENSORS = frozenset({"torch", "tensorflow", "keras"})


class Reach:
    """Answers for one pass over the log.

    Libraries leave the dictionaries, lists and the like that they are given as they are: what
    ``Adam(parameters, lr=c["lr"])`` gives has nothing to do with `c` when it steps. Code of the cells may change them.

    Parameters
    ----------
    codes : CodeRegistry
        Functions and classes that the cells define.
    arguments : ArgumentChanges
    """

    def __init__(self, codes: CodeRegistry, arguments: ArgumentChanges) -> None:
        self._codes, self._arguments = codes, arguments

    def spared(self, environment: Environment, numbers: frozenset[int], settings: Iterable[str]) -> frozenset[str]:
        """Return those of the names of settings that code does not change, what it is called on or given aside.

        Parameters
        ----------
        environment : Environment
        numbers : frozenset of int
            The code: methods of what changes, and the function that changes it.
        settings : iterable of str
            Names that share state with what changes.
        """
        bindings = {name: environment[name] for name in settings}
        others = numbers.difference(*(binding.codes for binding in bindings.values()))
        found = [self._codes[number] for number in sorted(self._with_called(environment, others))]
        made = _made_here(found)
        if any(self._changes_given(environment, code, made) for code in found):
            return frozenset()
        return frozenset(name for name, one in bindings.items() if not self._asks(environment, others, one))

    def _with_called(self, environment: Environment, numbers: frozenset[int]) -> set[int]:
        """Add the functions and classes of the cells that hear of what the code is given."""
        found, waiting = set(numbers), list(numbers)
        while waiting:
            for event in self._calls(self._codes[waiting.pop()]):
                if _is_defined(event, environment):
                    called = environment[event.callee[0]].codes
                    waiting.extend(called - found)
                    found |= called
        return found

    def _calls(self, code: Code) -> Iterator[Call]:
        for event in code.changes_and_calls:
            if isinstance(event, Call) and any(names.intersection(code.parameters) for _, names in event.arguments):
                yield event

    def _changes_given(self, environment: Environment, code: Code, made: frozenset[str]) -> bool:
        """Return whether a function changes something kept in what it is given, but for what is `made` there."""
        for event in code.changes_and_calls:
            if isinstance(event, Change) and event.name in code.parameters:
                own = "." in code.name and code.bound and event.name == code.parameters[0]
                if _changes_plain(event, own) and not (own and event.chain[:1] and event.chain[0][1] in made):
                    return True
        for call in self._calls(code):
            full = call.callee if call.imported else import_path(environment, call.callee)
            if full is not None and full[0] in _OF_TENSORS:
                continue
            if _is_defined(call, environment):
                continue  # its code is looked at itself
            for position, names in call.arguments:
                given = names.intersection(code.parameters)
                if given and self._arguments.changes(environment, call, full, position):
                    return True
        return False

    def _asks(self, environment: Environment, numbers: frozenset[int], settings: Binding) -> bool:
        """Return whether the code calls a method of an own object that changes it, or an operator may."""
        if not settings.codes:
            return False
        methods = {
            event.chain[-1][1]
            for number in numbers
            for event in self._codes[number].changes_and_calls
            if isinstance(event, Change) and event.how == "call"
        }
        own = {self._codes[number].name.rpartition(".")[2] for number in settings.codes}
        operators = {name for name in own if name.startswith("__")} - {"__init__", "__post_init__", "__new__"}
        return any(
            self._arguments.own_method_changes(environment, settings, name) for name in methods & own | operators
        )


def _is_defined(call: Call, environment: Environment) -> bool:
    """Whether a call is one of a function or class that a cell defines."""
    binding = environment.get(call.callee[0])
    return binding is not None and binding.origin.kind in {"def", "class"} and len(call.callee) == 1


def _changes_plain(event: Change, own: bool) -> bool:
    """Whether a change may be one of a dictionary or the like; a method that binds an attribute changes its object."""
    if event.how == "call":
        return event.in_place or event.chain[-1][1] in CONTAINER_CHANGES
    return not own or event.how != "attribute" or len(event.chain) > 1 or event.accumulates


def _made_here(codes: Iterable[Code]) -> frozenset[str]:
    """Return the attributes that methods bind to nothing but what they make themselves: ``self.seen = []``."""
    bound: dict[str, bool] = {}
    for code in codes:
        for event in code.changes_and_calls:
            if isinstance(event, Change) and event.how == "attribute" and len(event.chain) == 1:
                name = event.chain[0][1]
                bound[name] = bound.get(name, True) and (event.fresh or event.accumulates)
    return frozenset(name for name, fresh in bound.items() if fresh)
