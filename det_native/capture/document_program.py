"""What a document's call sends: its Python cells above it, as runs that nobody has seen, by the steps of a kernel's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from det_native.capture.bindings import imports_in
from det_native.capture.call import with_includes
from det_native.capture.document import Document
from det_native.capture.document_names import missing_problem
from det_native.capture.execution import Execution, Facts
from det_native.capture.explain import stays_row
from det_native.capture.explain_secrets import secret_problems, secret_rows
from det_native.capture.log import FrontEnd, LoggedExecution
from det_native.capture.model import Capture
from det_native.capture.program.choose import choose
from det_native.capture.program.records import Plan, Run, Travel
from det_native.capture.program.runs import runs_of
from det_native.capture.program_files import add_files
from det_native.capture.reads import reads_of
from det_native.capture.request import Request
from det_native.capture.stars import star_names
from det_native.capture.syntax import tree_of
from det_native.capture.transform import Transformed
from det_native.errors import Problem
from det_native.schema.manifests import Cell, Program
from det_native.schema.rest import CaptureRow


@dataclass
class Collected:
    """What a document would send, and what stands in the way.

    Attributes
    ----------
    capture : Capture
    problems : list of Problem
        With any of them it cannot be sent.
    """

    capture: Capture
    problems: list[Problem] = field(default_factory=list)


def collect_document(document: Document, request: Request, folder: Path) -> Collected:
    """Return what the call of a document sends, by its text. Nothing of it is run or imported.

    Parameters
    ----------
    document : Document
    request : Request
        What the call asks for.
    folder : Path
        The notebook's folder.
    """
    return _Collector(document, request, folder).collect()


class _Collector:
    def __init__(self, document: Document, request: Request, folder: Path) -> None:
        self.document, self.request, self.folder = document, request, folder
        self.problems: list[Problem] = []
        self.warnings = [*_warnings(document, request.values), *_unwritten(document, folder)]
        self.executions, self.runs, self.unknown = _runs(document)

    def collect(self) -> Collected:
        document = self.document
        plan = self._plan()
        sent = [step.run for step in plan.steps]
        reasons = {at: f"settings only: {plan.left[at]}" if at in plan.left else self._reason(at) for at in sent}
        cells = tuple(
            Cell(
                number=document.number(step.run),
                cell_id=document.cells[step.run].id,
                source=step.source,
                reason=reasons[step.run],
                optional_from=step.optional_from,
            )
            for step in plan.steps
        )
        call, init = document.sites(sent)
        framework, prompts = self.request.framework, document.prompts
        capture = Capture(
            Program(kind="cells", framework=framework, cells=cells, call=call, init=init, prompts=prompts)
        )
        sources = [(step.source, document.mark(step.run)) for step in plan.steps]
        for at, (source, mark) in zip(sent, sources, strict=True):
            capture.notes.rows.append(
                CaptureRow(what=f"cell {mark}", how="runs again", size=0, cell=mark, note=reasons[at])
            )
            capture.notes.rows.extend(secret_rows(source, mark))
            self.problems.extend(secret_problems(source, document.label(at), self.request.values))
        for at in (at for at in plan.left if self.runs[at].source and not self.runs[at].never and at not in sent):
            capture.notes.rows.append(stays_row(self.executions[at], None, "makes only what values= sends", False))
        titles = {document.mark(at): document.label(at) for at in sent}
        roots = [self.request.context_dir or self.folder, self.folder]
        files = add_files(capture, sources, self.request, roots, self.folder, titles=titles)
        with_includes(capture, self.request)
        self.problems.extend(files.problems)
        note = "declared; its size is known when the cells have run"
        for name in self.request.values:
            capture.notes.rows.append(CaptureRow(what=name, how="value", size=0, status="new", note=note))
        for one in plan.refusals:
            if one.maker is not None or not self.unknown:
                maker = (one.maker, self.runs[one.maker].never) if one.maker is not None else None
                read = self.runs[one.user].reads[one.name]
                self.problems.append(missing_problem(document, one.user, one.name, read, maker))
        capture.requirements = list(dict.fromkeys(one for cell in document.cells for one in cell.python.requirements))
        capture.notes.warnings = list(dict.fromkeys([*self.warnings, *files.warnings]))
        return Collected(capture, list(dict.fromkeys(self.problems)))

    # Which cells.

    def _plan(self) -> Plan:
        names = set(self.request.values)
        wanted = [run.wanted or (bool(run.source) and not (run.bound and run.bound <= names)) for run in self.runs]
        self.runs = [replace(run, wanted=one) for run, one in zip(self.runs, wanted, strict=True)]
        read = {n for run in self.runs for n, one in run.reads.items() if one.certain or len(one.path) > 1}
        trees = [tree_of(run.source) for run in self.runs]
        imported = {one.name for tree in trees for statement in tree.body for one in imports_in(statement)}
        away = Travel(refused="only what values= names is sent by value")
        return choose(
            self.runs,
            lambda name: Travel() if name in names else away,
            present=read | names,
            modules=imported,
            declared=[*names],
        )

    def _reason(self, at: int) -> str:
        if at == self.document.call.running:
            return "makes the call"
        if any(at == init.running for init in self.document.inits):
            return "calls init()"
        return "stands above the call"


def _runs(document: Document) -> tuple[list[Execution], list[Run], bool]:
    """Return the cells up to the call, as runs that nobody has seen, and whether they may bind any name."""
    executions = []
    for at, cell in enumerate(document.cells[: document.call.running + 1]):
        language = "is not valid Python" if at in document.invalid else cell.python.language
        source = cell.python.source if at in document.above else ""
        tags = frozenset({"det-skip"} if cell.skipped else ())
        logged = LoggedExecution(at, document.number(at), cell.source, front_end=FrontEnd(tags=tags))
        code = Transformed("", shell={} if cell.skipped else cell.python.shell)
        executions.append(Execution(logged, code, source, language=language))
    codes = [reads_of(one.source) for one in executions if one.source]
    stars = {star: star_names(star[0]) for code in codes for star in code.stars}
    facts = Facts({star: names or frozenset() for star, names in stars.items()})
    called = {at for call in (document.call, *document.inits) for at in (call.owner, call.running)}
    runs = runs_of(executions, document.call.route.line, facts, wanted=called)
    runs[-1] = replace(runs[-1], changed=frozenset(codes[-1].stored_into))
    return executions, runs, None in stars.values() or any(code.runs_text for code in codes)


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
