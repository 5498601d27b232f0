"""What a document's call sends: every Python cell above it, with the modules, data files and values that they need."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_native.capture.call import with_includes
from det_native.capture.data import collect_data
from det_native.capture.document import Document
from det_native.capture.document_names import name_problems
from det_native.capture.explain_secrets import secret_problems, secret_rows
from det_native.capture.model import Capture, CapturedValue
from det_native.capture.modules import collect_modules, imported_modules, is_local
from det_native.capture.names import cell_names
from det_native.capture.packages import packages_of
from det_native.capture.request import Request
from det_native.capture.scopes import bound_names, own_nodes
from det_native.capture.values import CannotSendError, encode
from det_native.errors import Problem
from det_native.schema.manifests import CallSite, Cell, Program, ReadEntry
from det_native.schema.rest import CaptureRow

#: Gives the place of the call, and of its ``init()``, in the cells that are sent.
Sites = Callable[[Sequence[int]], tuple[CallSite | None, CallSite | None]]


@dataclass
class Collected:
    """What a document would send, and what stands in the way.

    Attributes
    ----------
    capture : Capture
    problems : list of Problem
        With any of them it cannot be sent.
    sent : list of int
        Indices of the cells that are sent.
    """

    capture: Capture
    problems: list[Problem] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)


def collect_document(
    document: Document,
    request: Request,
    folder: Path,
    *,
    sites: Sites | None = None,
    namespace: Mapping[str, Any] | None = None,
) -> Collected:
    """Return what the call of a document sends. Nothing of it is run or imported.

    Parameters
    ----------
    document : Document
    request : Request
        What the call asks for.
    folder : Path
        The notebook's folder.
    sites : callable, optional
        Where the calls were made, once the cells have run; by default as the text says.
    namespace : mapping, optional
        What the names hold at the call; without it, rows say which values would be sent.
    """
    made = list(_only_values(document, request.values))
    sent = [at for at in document.above if at not in made]
    init = document.init
    call_site, init_site = (
        sites(sent)
        if sites is not None
        else (document.site(document.call, sent), document.site(init, sent) if init and not init.loop else None)
    )
    reasons = {at: _reason(document, at) for at in sent}
    cells = tuple(
        Cell(number=document.number(at), cell_id=document.cells[at].id, source=document.source(at), reason=reasons[at])
        for at in sent
    )
    capture = Capture(
        Program(
            kind="cells",
            framework=request.framework,
            cells=cells,
            call=call_site,
            init=init_site,
            prompts=document.prompts,
        )
    )
    found = Collected(capture, sent=sent)
    for at in sent:
        mark = _mark(document, at)
        source = document.source(at)
        capture.rows.append(CaptureRow(what=f"cell {mark}", how="runs again", size=0, cell=mark, note=reasons[at]))
        capture.rows.extend(secret_rows(source, mark))
        found.problems.extend(secret_problems(source, document.label(at), request.values))
    capture.rows.extend(
        CaptureRow(
            what=document.within(at),
            how="stays here",
            size=0,
            cell=_mark(document, at),
            status="not sent",
            note="makes only what values= sends",
        )
        for at in made
    )
    _add_files(document, request, folder, found)
    _add_values(document, request, namespace, found)
    found.problems.extend(name_problems(document, sent, request.values))
    capture.requirements = list(dict.fromkeys(one for cell in document.cells for one in cell.python.requirements))
    said = [*_warnings(document, request.values), *_unwritten(document, folder)]
    capture.warnings = list(dict.fromkeys([*said, *capture.warnings]))
    found.problems = list(dict.fromkeys(found.problems))
    return found


def _mark(document: Document, at: int) -> str:
    return f"[{document.number(at)}]"


def _reason(document: Document, at: int) -> str:
    if at == document.call.running:
        return "makes the call"
    if any(at == init.running for init in document.inits):
        return "calls init()"
    return "stands above the call"


def _warnings(document: Document, values: Sequence[str]) -> Iterator[str]:
    call = document.call
    for at, why in document.invalid.items():
        if at <= call.running:
            yield f"{document.label(at)} is not valid Python ({why}) and is left out."
    others = [
        (one.running, f"{document.within(one.running)} ({one.kind})") for one in document.calls if one is not call
    ]
    if others:
        text = f"Only one training call is sent, {document.title()}; not sent: "
        text += f"{', '.join(dict.fromkeys(label for _, label in others))}."
        if any(running <= call.running for running, _ in others):
            text += (
                " Those above it do not train on the worker: what they return is empty there, and models are as they "
                "were before. To go on from trained weights, write them to a file, and load that where the model is "
                "made."
            )
        yield text
    left = [at for at in range(call.running) if document.cells[at].python.language and not document.cells[at].skipped]
    if left:
        names = ", ".join(f"{document.within(at)} ({document.cells[at].python.language})" for at in left)
        yield f"Cells in other languages than Python are not sent: {names}."
    for at in (at for at in range(call.running) if not document.cells[at].skipped):
        shell = document.cells[at].python.shell
        for name, line in ((name, line) for name, line in shell.items() if name not in values):
            yield (
                f"`{name}` is set by `{line}` in {document.within(at)}, which does not run on the cluster. If it is "
                f"needed, write it in Python, or send its value: values=['{name}']."
            )


def _unwritten(document: Document, folder: Path) -> Iterator[str]:
    """Say which cells would write another file than there is: files are sent as they lie there."""
    last: dict[str, int] = {}
    for at in range(document.call.running):
        written = document.cells[at].python.writes
        if written is not None and not document.cells[at].skipped:
            last[written.path] = at
    for path, at in last.items():
        written = document.cells[at].python.writes
        assert written is not None
        try:
            there: str | None = (folder / Path(path).expanduser()).read_text("utf-8", errors="replace").strip()
        except (OSError, RuntimeError, ValueError):  # no such user for ~, or no name that a file can have
            there = None
        wanted = written.content.strip()
        if there is None or not (there.endswith(wanted) if written.added else there == wanted):
            what = "there is no such file" if there is None else "the file has another content than the cell"
            label = document.label(at)
            yield f"{label} writes {path} and does not run on the cluster, and {what}: run that cell first."


# Files ----------------------------------------------------------------------------------------------------------------


def _add_files(document: Document, request: Request, folder: Path, found: Collected) -> None:
    capture = found.capture
    sources = [(document.source(at), _mark(document, at)) for at in found.sent]
    names = [(name, mark) for source, mark in sources for name in imported_modules(source)]
    calls = capture.program.call, capture.program.init
    names += [(Path(site.file).stem, "") for site in calls if site is not None and site.file is not None]
    root = request.context_dir or folder
    modules = collect_modules(names, list(dict.fromkeys([root, folder])), request.include, request.context_dir)
    code = list(sources)
    for file in modules.files:
        if file.path.suffix == ".py":
            text = file.path.read_text("utf-8")
            code.append((text, file.target))
            if file.path not in request.include:
                found.problems.extend(secret_problems(text, file.target, request.values, form_only=True))
    titles = {_mark(document, at): document.label(at) for at in found.sent}
    data = collect_data(code, root, folder, request.context_dir, titles)
    capture.packages = packages_of([*sources, *modules.sources])
    capture.files = [*modules.files, *data.files]
    capture.reads = [ReadEntry(path=path, where=where) for path, where in data.reads]
    capture.outside = data.outside
    capture.rows.extend([*modules.rows, *data.rows])
    capture.warnings.extend([*modules.warnings, *data.warnings])
    found.problems.extend(modules.problems)
    with_includes(capture, request)


# Values ---------------------------------------------------------------------------------------------------------------


def _only_values(document: Document, values: Sequence[str]) -> Iterator[int]:
    """Yield the cells that bind nothing but values that are sent, and that no other cell needs before the call."""
    if not values:
        return
    trees = {at: tree for at in document.above if (tree := document.trees[at]) is not None}
    del trees[document.call.running]
    binds = {at: bound_names(tree.body) for at, tree in trees.items()}
    makers = [at for at, names in binds.items() if names and names <= set(values)]
    loads = {at: _loads(ast.walk(tree)) for at, tree in trees.items()}
    needed: set[str] = set()
    for at in trees.keys() - set(makers):
        names = cell_names(document.source(at))
        needed |= names.used | names.bound
        named = _loads(own_nodes(trees[at].body)).union(*(loads[one] for one in loads if one != at))
        if binds[at] & named:  # what it defines may run before the call
            needed |= names.late.keys()
    yield from (at for at in makers if not binds[at] & needed)


def _loads(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _add_values(document: Document, request: Request, namespace: Mapping[str, Any] | None, found: Collected) -> None:
    """Add the values that are sent: they are bound just before the cell that makes the call."""
    capture, running = found.capture, document.call.running
    tree = document.trees[running]
    for name in request.values:
        if tree is not None and name in bound_names(tree.body):
            capture.warnings.append(
                f"values={name!r}: the cell that makes the call sets `{name}` itself, so its code is sent and not the "
                "value."
            )
        elif namespace is None:
            note = "declared; its size is known when the cells have run"
            capture.rows.append(CaptureRow(what=name, how="value", size=0, status="new", note=note))
        elif name not in namespace:
            what = "there is no such name in the notebook."
            found.problems.append(Problem(f"values={name!r}", what, "Set it in a cell above the call."))
        else:
            try:
                one = encode(name, namespace[name], declared=True, is_local=is_local)
            except CannotSendError as error:
                found.problems.append(
                    Problem("", f"Cannot send `{name}` ({error}), declared in values=.", error.remedy)
                )
                continue
            position = found.sent.index(running)
            description = f"declared: {one.description}"
            capture.values.append(
                CapturedValue(name, one.codec, one.content, position, description, _mark(document, running))
            )
