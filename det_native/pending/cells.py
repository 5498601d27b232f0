"""Before a cell runs: if it reads what a training changes whose weights are not here, they are waited for first."""

from __future__ import annotations

import ast
from typing import Any

from det_native.capture.log import ExecutionLog, current_log
from det_native.errors import shown_alone
from det_native.pending import lost, registry
from det_native.pending.reach import Reach, in_namespace
from det_native.pending.reading import bound_for_certain, reading_of_cell
from det_native.pending.registry import PendingTraining
from det_native.pending.waiting import bring_home

AGAIN = "This cell has not run: run it again to wait again"


def watch_cells() -> None:
    """Look at every cell before it runs, from now on; does nothing the second time, or outside of IPython."""
    log = current_log()
    if log is not None and not any(isinstance(getattr(one, "__self__", None), _Gate) for one in log.before_cells):
        log.before_cells.append(_Gate(log).prepare)


def needed_by(source: str, namespace: dict[str, Any]) -> list[PendingTraining]:
    """Return the trainings whose weights a cell may need."""
    trainings = registry.pending()
    if not trainings:
        return []
    reach = Reach(namespace, trainings)
    lookup = in_namespace(namespace)
    renewed = frozenset().union(*(training.renewed() for training in trainings))
    reading = reading_of_cell(source, lookup, reach.wanted, renewed)
    reach.add(reading, lookup)
    reach.add_stored(reading, lookup)
    return reach.met()


def _say_what_has_not_come(source: str, namespace: dict[str, Any]) -> None:
    if lost.known():
        lost.tell(sorted(reading_of_cell(source, in_namespace(namespace), ()).all_names))


def _give_up_bound(source: str) -> None:
    """Let names be the user's that a cell binds which has not read them."""
    names = bound_for_certain(source)
    lost.forget(names)
    for training in registry.pending():
        if training.loop is not None:
            training.loop.give_up(names)


class _Gate:
    """Keeps a cell from running whose weights have not come.

    IPython asks those who transform syntax trees whether a cell is accepted; this one is among them only while it has
    a refusal to give.
    """

    def __init__(self, log: ExecutionLog) -> None:
        self._log = log
        self._refusal: Exception | None = None

    def prepare(self, source: str) -> None:
        """Wait for what a cell needs."""
        transformers = self._log.shell.ast_transformers
        if self in transformers:  # the cell that was to be refused was no Python
            transformers.remove(self)
        if not (registry.pending() or lost.known()):
            return
        try:
            for training in needed_by(source, self._log.shell.user_ns):
                bring_home(training, AGAIN)
            _say_what_has_not_come(source, self._log.shell.user_ns)
            _give_up_bound(source)
        except BaseException as error:  # noqa: BLE001 (the cell raises it)
            self._refusal = _refusal(error)
            transformers.insert(0, self)

    def visit(self, tree: ast.AST) -> ast.AST:
        """Refuse the cell, in the name of the error that has come instead of weights."""
        self._log.shell.ast_transformers.remove(self)
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal
        return tree


def _refusal(error: BaseException) -> Exception:
    """Return an error as one by which IPython does not run a cell: of the same name, attributes and message."""
    from IPython.core.error import InputRejected

    kind = type(error)
    both: Any = type(kind.__name__, (InputRejected, kind), {"__module__": kind.__module__})
    refusal: Exception = both.__new__(both, *error.args)
    refusal.args = error.args
    vars(refusal).update(vars(error))
    return shown_alone(refusal)
