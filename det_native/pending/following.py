"""What follows a call in the program that makes it: the rest of each function, loop and cell around it.

It is read from the text of the frames between the call and the cell (or the script). A call inside of what has no text,
or in a thread, where nobody sees the cell, is followed by anything.
"""

from __future__ import annotations

import ast
import copy
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from det_native.capture.calls import cell_line
from det_native.capture.log import ExecutionLog, current_log
from det_native.capture.syntax import tree_of
from det_native.capture.tracebacks import MAGIC_FILES
from det_native.capture.transform import transform
from det_native.pending.reach import Reach, in_namespace
from det_native.pending.reading import Reading, main_namespace, reading_of, reading_of_lines
from det_native.pending.registry import PendingTraining

_OURS = frozenset({"det_native", "det_harness"})
#: Who runs cells and their magics gives back what they return, and does no more with it.
_SHELL = frozenset({"IPython"})
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.Module
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_LOOPS = ast.For | ast.AsyncFor
_BLOCKS = ("body", "orelse", "finalbody")

Span = tuple[int, int, int, int]


@dataclass(frozen=True)
class Around:
    """A function, or the top level, in which a call is being made.

    Attributes
    ----------
    frame : FrameType
    path : list of AST
        The nodes of its text from the root to the call.
    segments : list of list of ast.stmt
        The pieces of it that may run after the call; none is sure to run before another one.
    """

    frame: FrameType
    path: list[ast.AST]
    segments: list[list[ast.stmt]]

    def lookup(self) -> Callable[[str], Any]:
        """Return what gives the value of a name there."""
        return _in_frame(self.frame)


def around_call(*, loop: bool) -> list[Around] | None:
    """Return the functions around the call that is being made and the cell, the innermost first.

    None if what follows the call may be anything.

    Parameters
    ----------
    loop : bool
        It was made by a loop that asks for its first batch, and gets none.
    """
    namespace, log = main_namespace(), current_log()
    frames = _frames(sys._getframe(1), namespace)
    if frames is None:
        return None
    several = []
    for frame in frames:
        if _is_around_magic(frame, log):
            continue
        place = _place(frame, log, namespace)
        path = _path_to(*place) if place is not None else None
        segments = _following(path, frame.f_code.co_name, loop=loop) if path is not None else None
        if path is None or segments is None:
            return None
        several.append(Around(frame, path, segments))
    return several


def is_read_later(training: PendingTraining, *, loop: bool) -> bool:
    """Whether what follows the call that is being made may read what it trains.

    Parameters
    ----------
    training : PendingTraining
        Of the call.
    loop : bool
        See :func:`around_call`.
    """
    namespace, log = main_namespace(), current_log()
    several = around_call(loop=loop)
    if several is None:
        return True
    reach = Reach(namespace, [training])
    trained = reach.wanted
    whole = Reading()
    lookups: list[Callable[[str], Any]] = []
    for place, around in enumerate(several):
        lookup, code = around.lookup(), around.frame.f_code
        readings = [reading_of(segment, lookup, trained, training.renewed()) for segment in around.segments]
        own = () if _is_top(around.frame, namespace) else {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        in_loop = place == 0 and training.loop is not None and training.loop.in_function
        variables = training.loop.awaited() if in_loop else frozenset()
        for reading in (*readings, _lines_after(around.frame, log, around.path)):
            reach.add(reading, lookup, own)
            whole.add(reading)
            if not variables.isdisjoint(reading.all_names):
                reach.add_training(training)
        lookups.append(lookup)
        for outer in lookups:
            reach.add_stored(whole, outer)
        training.read |= whole.all_names
        if reach.met():
            return True
    return False


def _is_around_magic(frame: FrameType, log: ExecutionLog | None) -> bool:
    """Whether a frame is that of a cell which is one cell magic: what that runs has a frame of its own."""
    running, file = log.running if log is not None else None, frame.f_code.co_filename
    return running is not None and running.source.lstrip().startswith("%%") and running.files.get(file) == 0


def _lines_after(frame: FrameType, log: ExecutionLog | None, path: Sequence[ast.AST]) -> Reading:
    """Return what lines of the cell read that are no Python, and may run after the place where it stands."""
    cell = _cell_of(frame, log)
    if cell is None:
        return Reading()
    transformed, first = transform(cell), _first_line(path)
    return reading_of_lines([(line, text) for line, text in transformed.left_out if line > first], transformed.hidden)


def _cell_of(frame: FrameType, log: ExecutionLog | None) -> str | None:
    """Return the text of the running cell if a frame is its top level."""
    running = log.running if log is not None else None
    return running.source if running is not None and _is_top(frame, frame.f_globals) else None


def _first_line(path: Sequence[ast.AST]) -> int:
    """Return the line of the statement of the cell in which a call stands: what is within a loop runs again."""
    line: int = getattr(path[1], "lineno", 0)
    return line


def _frames(frame: FrameType | None, namespace: Mapping[str, Any]) -> list[FrameType] | None:
    """Return the frames of the program around a call, the innermost first; None if the cell is not among them."""
    frames, top = [], 0
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _OURS and (package not in _SHELL or frame.f_globals is namespace):
            frames.append(frame)
            if _is_top(frame, namespace):
                top = len(frames)
                if frame.f_code.co_filename in MAGIC_FILES:
                    break  # the text of the cell has what it runs
        frame = frame.f_back
    return frames[:top] or None


def _is_top(frame: FrameType, namespace: Mapping[str, Any]) -> bool:
    name = frame.f_code.co_name
    return frame.f_globals is namespace and (name == "<module>" or name.startswith("<cell line"))


def _in_frame(frame: FrameType) -> Callable[[str], Any]:
    local, outside = dict(frame.f_locals), in_namespace(frame.f_globals)

    def lookup(name: str) -> Any:
        return local[name] if name in local else outside(name)

    return lookup


# Where a frame stands in its text.


def _place(frame: FrameType, log: ExecutionLog | None, namespace: Mapping[str, Any]) -> tuple[ast.Module, Span] | None:
    """Return the text that a frame runs, as a tree, and what of it; None if that cannot be told."""
    line, end_line, column, end_column = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    file = frame.f_code.co_filename
    running = log.running if log is not None else None
    owner = log.owner_of(file) if log is not None else None
    if file in MAGIC_FILES and running is not None:
        owner = running
    if owner is None:
        source = "".join(linecache.getlines(file, frame.f_globals))
        return _parsed(source, (line, column, end_line, end_column))
    transformed = transform(owner.source)
    is_body = file in MAGIC_FILES or owner.files.get(file, 0) > 0
    if file in MAGIC_FILES and not owner.source.lstrip().startswith("%%"):
        outer: FrameType | None = frame.f_back
        while outer is not None and not (_is_top(outer, namespace) and outer.f_code.co_filename in owner.files):
            outer = outer.f_back
        if outer is None or end_line != line:
            return None
        line = end_line = cell_line(transformed.kernel_lines, owner.source, outer.f_lineno, False)
        shift = transformed.magic_columns.get(line, 0)
        return _parsed(transformed.source, (line, column + shift, line, end_column + shift))
    first, last = (cell_line(transformed.kernel_lines, owner.source, one, is_body) for one in (line, end_line))
    return _parsed(transformed.source, (first, column, last, end_column))


def _parsed(source: str, span: Span) -> tuple[ast.Module, Span] | None:
    try:
        return (tree_of(source), span) if source else None
    except SyntaxError:
        return None


def _path_to(tree: ast.Module, span: Span) -> list[ast.AST] | None:
    """Return the nodes from the tree's root to the expression of this span; None if there is none."""
    exact, by_end = None, None
    waiting: list[list[ast.AST]] = [[tree]]
    while waiting:
        path = waiting.pop()
        node = path[-1]
        if isinstance(node, _LOOPS) and _span_of(node) == span:  # Python 3.11 tells so that a loop asks its iterator
            exact = [*path, node.iter]
        elif isinstance(node, ast.expr) and _span_of(node)[2:] == span[2:]:
            if _span_of(node) == span:
                exact = path
            elif isinstance(node, ast.Call) and node.lineno <= span[0]:  # of a chain over lines, a part is named
                by_end = path
        for child in ast.iter_child_nodes(node):
            begin, end_line = getattr(child, "lineno", 0), getattr(child, "end_lineno", None)
            if end_line is None or (begin <= span[2] and span[0] <= end_line) or isinstance(child, _STATEMENTS):
                waiting.append([*path, child])
    return exact if exact is not None else by_end


def _span_of(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


_STATEMENTS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef  # their decorators stand above their line


# What follows.


def _following(path: Sequence[ast.AST], name: str, *, loop: bool) -> list[list[ast.stmt]] | None:
    """Return the pieces of a function, or of the top level, that may run after an expression has been evaluated.

    None if that may be anything. The pieces are not to be read together: none is sure to run before another one.

    Parameters
    ----------
    path : sequence of AST
        From the root of the text to the expression.
    name : str
        Of the code that runs.
    loop : bool
        The expression is what a loop goes over, and that has no element.
    """
    scope = max(place for place, node in enumerate(path) if _is_scope(node, path[place + 1 :]))
    root, inner = path[scope], path[scope + 1 :]
    if any(isinstance(node, _COMPREHENSIONS) for node in inner) or not _is_named(root, name):
        return None
    if isinstance(root, ast.Lambda):
        return [[ast.Expr(_without(root.body, path[-1]), lineno=1, col_offset=0)]]
    place = max(place for place, node in enumerate(inner) if isinstance(node, ast.stmt))
    statement: Any = inner[place]
    if loop and isinstance(statement, _LOOPS) and _is_within(statement.iter, path[-1]):
        pieces = [statement.orelse]
    else:
        pieces = [[_without(statement, path[-1])]]
        if isinstance(statement, ast.While):
            pieces.append([statement])
    for child, parent in _outwards([root, *inner[: place + 1]]):
        pieces += _after(child, parent)
    return [piece for piece in pieces if piece]


def _is_scope(node: ast.AST, inside: Sequence[ast.AST]) -> bool:
    """Whether what is inside of a node runs as code of its own: decorators and defaults do not."""
    if not isinstance(node, _SCOPES) or not inside:
        return False
    body = node.body
    return inside[0] in body if isinstance(body, list) else inside[0] is body


def _is_named(root: ast.AST, name: str) -> bool:
    if isinstance(root, ast.Module):
        return name == "<module>" or name.startswith("<cell line")
    return name == ("<lambda>" if isinstance(root, ast.Lambda) else getattr(root, "name", ""))


def _is_within(outer: ast.AST, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(outer))


def _without(outer: Any, node: ast.AST) -> Any:
    """Return a copy of code in which an expression has been evaluated: its value is a handle, or plain."""
    return copy.deepcopy(outer, {id(node): ast.Constant(None, lineno=1, col_offset=0)})


def _outwards(path: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, Any]]:
    for place in range(len(path) - 1, 0, -1):
        yield path[place], path[place - 1]


def _after(child: ast.AST, parent: Any) -> list[list[ast.stmt]]:
    """Return what of a block, or of what has blocks, may run after one of its statements."""
    block = next((name for name in _BLOCKS if child in (getattr(parent, name, None) or ())), "")
    pieces: list[list[ast.stmt]] = []
    if block:
        several = getattr(parent, block)
        pieces.append(several[several.index(child) + 1 :])
    if isinstance(parent, _LOOPS) and block == "body":
        again = copy.copy(parent)
        again.iter = ast.Constant(None, lineno=1, col_offset=0)
        pieces.append([again])
    elif isinstance(parent, ast.While) and block == "body":
        pieces.append([parent])
    elif isinstance(parent, ast.With | ast.AsyncWith):
        pieces.append([ast.Expr(one.context_expr, lineno=1, col_offset=0) for one in parent.items])
    elif isinstance(parent, ast.Try | ast.TryStar) and block != "finalbody":
        if block == "body":
            pieces += [handler.body for handler in parent.handlers] + [parent.orelse]
        pieces.append(parent.finalbody)
    return pieces
