"""Capture from a notebook's document: its code cells from top to bottom, with no kernel and no values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from det_native.capture.analysis import analyse
from det_native.capture.cells import PROVIDED, CellCapture
from det_native.capture.document_calls import FoundCall
from det_native.capture.document_log import DocumentCell, DocumentLog
from det_native.capture.document_reading import read_calls
from det_native.capture.events import Bind, Star, flat
from det_native.capture.log import CallRecord
from det_native.capture.model import Capture
from det_native.capture.modules import module_file
from det_native.capture.names import check_bundle_names
from det_native.capture.records import Missing
from det_native.capture.request import HEADLINE, Request
from det_native.capture.slicer import Execution, Slice
from det_native.errors import CaptureError, Problem
from det_native.schema.manifests import CallSite, Program
from det_native.schema.rest import CaptureRow

NO_CALL = "The notebook has no training call that could be sent."
_LOOKED_FOR = (
    "Looked for: model.fit(...) of a model from context.wrap_model(...), where context comes from "
    "det.experimental.keras.init(...); context.fit(...) or a loop over context.train(...) of "
    "det.experimental.pytorch.init(...); or det.experimental.create(TrialClass, config)."
)


@dataclass
class Document:
    """A document that has been read.

    Attributes
    ----------
    log : DocumentLog
    calls : list of FoundCall
        All training calls, in order.
    call : FoundCall
        The one that is sent: the last, or that which was chosen.
    init : FoundCall or None
        The ``init()`` that it belongs to.
    """

    log: DocumentLog
    calls: list[FoundCall]
    call: FoundCall
    init: FoundCall | None

    @property
    def record(self) -> CallRecord:
        """Where the call is made."""
        return self.log.record(self.call)

    def label(self, index: int) -> str:
        """Return how messages call a cell."""
        return self.log.executions[index].title


def read_document(cells: Sequence[DocumentCell], folder: Path, chosen: int | None = None) -> Document:
    """Read a document and find the call that is to be sent.

    Parameters
    ----------
    cells : sequence of DocumentCell
    folder : Path
        The notebook's folder.
    chosen : int, optional
        Which of its training calls, from 0; the last one by default.

    Raises
    ------
    CaptureError
        If it makes none, or not so many.
    """
    log = DocumentLog(cells)
    calls = read_calls(log.sources(), folder)
    inits = [call for call in calls if call.kind == "init"]
    wraps = any("wrap_model" in (source or "") for source in log.sources())
    trainings = [call for call in calls if call.kind != "init" and (call.sure or inits or wraps)]
    candidates = [call for call in trainings if call.sure] or trainings
    if not candidates:
        raise CaptureError(NO_CALL, [_no_call(log, inits)])
    if chosen is not None and chosen >= len(candidates):
        what = (
            f"has {len(candidates)} training call{'s' if len(candidates) > 1 else ''}; number {chosen + 1} was chosen."
        )
        raise CaptureError(HEADLINE, [Problem("The notebook", what, "Press Submit again: it has changed since.")])
    call = candidates[-1 if chosen is None else chosen]
    log.number_cells(call.running + 1)
    init = call.init
    if call.kind != "create" and init is None:
        init = next((one for one in reversed(inits) if one.running <= call.running), None)
    return Document(log, candidates, call, init)


def _no_call(log: DocumentLog, inits: list[FoundCall]) -> Problem:
    invalid = [f"{log.executions[index].title} is not valid Python ({why})" for index, why in log.invalid.items()]
    what = f"{'; '.join(invalid)}." if invalid else "There is none among its code cells."
    if inits:
        where = log.executions[inits[-1].running].title
        return Problem(where, f"init() is called, but no model that its context wraps is trained. {what}", _LOOKED_FOR)
    return Problem("", what, _LOOKED_FOR)


@dataclass
class Collected:
    """What a document would send, and what stands in the way.

    Attributes
    ----------
    capture : Capture
    problems : list of Problem
        With any of them it cannot be sent.
    included : list of int
        Indices of the cells that it needs.
    unresolved : list of (int, str)
        Cells with ``from module import *`` whose names only running them tells, and the modules.
    """

    capture: Capture
    problems: list[Problem]
    included: list[int]
    unresolved: list[tuple[int, str]] = field(default_factory=list)


def collect_document(document: Document, request: Request, folder: Path) -> Collected:
    """Return what the call of a document needs. Nothing of it is run or imported.

    Parameters
    ----------
    document : Document
    request : Request
        Values named in it are not sent: the rows say that they would be.
    folder : Path
        The notebook's folder.
    """
    document.log.calls[:] = [document.log.record(call) for call in document.calls if call is not document.call]
    collector = _DocumentCapture(replace(request, values=()), document.log, document.record, folder, document=document)
    capture = collector.collect()
    for name in request.values:
        note = "declared; its size is known when the cells have run"
        capture.rows.append(CaptureRow(what=name, how="value", size=0, status="new", note=note))
    problems = list(dict.fromkeys(collector.problems))
    if not problems and not collector.unresolved:
        problems = check_bundle_names(capture.program, request.values, star_names)
    return Collected(capture, problems, collector.included, collector.unresolved)


@dataclass
class _DocumentCapture(CellCapture):
    document: Document = field(kw_only=True)
    included: list[int] = field(default_factory=list, kw_only=True)
    unresolved: list[tuple[int, str]] = field(default_factory=list, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        stars = dict(self.facts.stars)
        for execution in self.executions:
            if execution.skipped:
                continue
            for event in (event for statement in execution.statements for event in flat(statement.events)):
                if isinstance(event, Star):
                    names = star_names(event.module)
                    stars[event.module, event.level] = names or frozenset()
                    if names is None:
                        self.unresolved.append((execution.index, event.module))
        self.facts.stars = stars

    def collect(self) -> Capture:
        self._warn_of_cells()
        return super().collect()

    def _warn_of_cells(self) -> None:
        for index, why in self.document.log.invalid.items():
            if index <= self.calling:
                self.warnings.append(f"{self.document.label(index)} is not valid Python ({why}) and is left out.")
        others = [call for call in self.document.calls if call is not self.document.call]
        labels = dict.fromkeys(f"{_lower(self.document.label(call.running))} ({call.kind})" for call in others)
        if labels:
            self.warnings.append(
                f"Only one training call is sent, {call_title(self.document)}; not sent: {', '.join(labels)}."
            )

    def _init_executions(self) -> tuple[int, ...]:
        init = self.document.init
        return (init.running,) if init is not None and init.running <= self.calling else ()

    def _program(self, found: Slice, included: list[int]) -> Program:
        self.included = included
        return super()._program(found, included)

    def _call_site(self, included: list[int]) -> CallSite | None:
        site = super()._call_site(included)
        return _times(site, self.document.call)

    def _init_site(self, included: list[int]) -> CallSite | None:
        init = self.document.init
        if init is None or init.loop is not None:
            return None
        request, self.request = self.request, replace(self.request, init=self.document.log.record(init))
        try:
            return _times(super()._init_site(included), init)
        finally:
            self.request = request

    def _check_missing(self, found: Slice) -> None:
        for missing, user in found.missing:
            certain = missing.certain or (user.index == self.calling and len(missing.path) > 1)
            stars = [module for index, module in self.unresolved if index <= user.index]
            if certain and missing.name not in PROVIDED and not stars:
                self.problems.append(self._undefined(missing, user))

    def _undefined(self, missing: Missing, user: Execution) -> Problem:
        name = missing.name
        used = f"`{name}` is used" + (f" by {missing.path[-2]}" if len(missing.path) > 1 else "")
        where = f"{user.label}, line {missing.line}"
        log = self.document.log
        skipped = [e for e in self.executions if e.skipped and _binds(e, name)]
        if skipped:
            return Problem(
                where, f"{used}, but {skipped[-1].label}, which defines it, is tagged det-skip.", "Untag it."
            )
        later = [i for i, one in enumerate(log.sources()) if i > user.index and one and _binds_name(one, name)]
        if later:
            what = f"{used}, but only {_lower(self.document.label(later[0]))}, further down, defines it."
            return Problem(where, what, "Move that cell up: cells are sent in the order of the document.")
        invalid = [index for index in log.invalid if index <= user.index and name in log.cells[index].source]
        if invalid:
            why = f"is not valid Python ({log.invalid[invalid[-1]]})"
            return Problem(where, f"{used}, but {_lower(self.document.label(invalid[-1]))} {why}.", "Fix that cell.")
        hidden = [e for e in self.executions if (e.magics or e.language) and e.index <= user.index]
        why = f"; {hidden[-1].label} runs `{(*hidden[-1].magics, hidden[-1].language)[0]}`" if hidden else ""
        return Problem(where, f"{used}, but no cell above defines it{why}.", "Define it in a cell above.")


def call_title(document: Document) -> str:
    """Return ``fit() in cell [7], line 3``."""
    call = document.call
    return f"{call.kind}() in {_lower(document.label(call.owner))}, line {call.node.lineno}"


def _lower(label: str) -> str:
    return label[0].lower() + label[1:]


def _times(site: CallSite | None, call: FoundCall) -> CallSite | None:
    return site.model_copy(update={"occurrence": call.occurrence}) if site is not None else None


def _binds(execution: Execution, name: str) -> bool:
    events = (event for statement in execution.statements for event in flat(statement.events))
    return any(isinstance(event, Bind) and event.name == name for event in events)


def _binds_name(source: str, name: str) -> bool:
    events = (event for statement in analyse(source) for event in flat(statement.events))
    return any(isinstance(event, Bind) and event.name == name for event in events)


def star_names(module: str) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds, read from its source; None if that does not tell."""
    if module == "det_native":
        import det_native

        return frozenset(det_native.__all__)
    file = _source_of(module)
    if file is None:
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    names: set[str] = set()
    for statement in analyse(ast.unparse(tree)):
        for event in flat(statement.events):
            if isinstance(event, Star):
                return None
            if isinstance(event, Bind):
                names.add(event.name)
    if "__all__" in names or "__getattr__" in names:
        return _exported(tree)
    return frozenset(name for name in names if not name.startswith("_"))


def _source_of(module: str) -> Path | None:
    """The source of a module, found without importing the packages that it is in."""
    top, _, rest = module.partition(".")
    file = module_file(top)
    if file is None or not rest:
        return file
    base = file.parent.joinpath(*rest.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """The names in ``__all__``, if it is one list of literals."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and any(isinstance(name, ast.Name) and name.id == "__all__" for name in ast.walk(node))
    ]
    if len(values) != 1 or values[0] is None:
        return None
    try:
        return frozenset(ast.literal_eval(values[0]))
    except (ValueError, TypeError):
        return None
