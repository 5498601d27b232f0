"""The answers of ``inspect`` and ``submit`` about a document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from det_native._version import PROTOCOL
from det_native.capture.bundle import assemble
from det_native.capture.document import Document
from det_native.capture.document_calls import FoundCall
from det_native.capture.document_program import Collected, collect_document
from det_native.capture.model import Bundle, BundleRow
from det_native.capture.nesting import refusing_deep_code
from det_native.capture.request import HEADLINE
from det_native.capture.script import capture_script
from det_native.client.connect import connect, locate, named_master
from det_native.client.handles import Experiment
from det_native.client.session import Session
from det_native.errors import (
    CaptureError,
    DetError,
    MasterError,
    NotFoundError,
    Problem,
    ProblemsError,
    RequestError,
    WorkerEnvironmentError,
)
from det_native.experimental.cluster import for_master, send_capture, stored_at
from det_native.experimental.document_plan import Plan, plan_document
from det_native.experimental.document_request import Request
from det_native.experimental.scheduled import Scheduled, scheduling
from det_native.experimental.worker_environment import fit_to_workers, notices_of
from det_native.schema import routes
from det_native.schema.effects import unsearched_ranges
from det_native.schema.rest import CaptureRow, HashList
from det_native.search.make import planned_trials

_MODULE = "det_native.experimental.document"
_MARK = re.compile(r"\[(\d+)\]")


class Reading:
    """A document that was read, planned and captured.

    Parameters
    ----------
    request : Request
    folder : Path
        The notebook's folder; it is the working directory.

    Raises
    ------
    CaptureError
        If it makes no training call.
    """

    def __init__(self, request: Request, folder: Path) -> None:
        self.request, self.folder = request, folder
        self.document: Document = Document(request.document_cells(), request.call)
        with refusing_deep_code(self.document.sources):
            self.plan: Plan = plan_document(self.document, test=request.test, slots=request.slots)
            self.collected: Collected = self._collect()
        self.problems = list(dict.fromkeys([*self.plan.problems, *self.collected.problems]))

    def _collect(self) -> Collected:
        wanted, settings = self.plan.request(), self.plan.settings
        collected = collect_document(self.document, wanted, self.folder)
        if settings.command is None:
            return collected
        capture = capture_script(wanted, None, settings.command)
        return Collected(capture)

    @property
    def must_run(self) -> bool:
        """Whether the cells have to run before the call can be submitted."""
        return bool(self.plan.reasons)

    def raise_problems(self) -> None:
        """Raise what stands in the way.

        Raises
        ------
        CaptureError
        """
        if self.problems:
            raise CaptureError(HEADLINE, self.problems)


# inspect --------------------------------------------------------------------------------------------------------------


def _of_configuration(plan: Plan) -> list[str]:
    """Return what a submit from the notebook warns of in the configuration, where that can be read."""
    note = unsearched_ranges(plan.config) if plan.config is not None else ""
    return [note] if note else []


def inspect(request: Request, folder: Path) -> dict[str, Any]:
    """Say what a document would send; see ``det_native.experimental.document``."""
    reading = Reading(request, folder)
    document, plan = reading.document, reading.plan
    bundle, problems = _assembled(reading)
    there = _there(reading, bundle) if bundle is not None else _There()
    total, new = _sizes(bundle) if bundle is not None else (0, 0)
    call = document.call
    return {
        "ok": True,
        "prompts": document.prompts,
        "call": {
            **_cell(document, call.owner),
            "line": call.node.lineno,
            "kind": call.kind,
            "framework": plan.framework,
        },
        "calls": [_call(document, each) for each in document.calls],
        "chosen": next(at for at, each in enumerate(document.calls) if each is call),
        "rows": [_row(document, row) for row in (*(bundle.report if bundle is not None else ()), *there.rows)],
        "total": total,
        "new": new,
        "master": there.master,
        "master_problem": there.in_the_way,
        "warnings": [*_of_configuration(plan), *reading.collected.capture.notes.warnings, *there.warnings],
        "changed": _changed(document),
        "must_run": _must_run(reading) if reading.must_run else [],
        "config": plan.config.model_dump(mode="json") if plan.config is not None else None,
        "trials": planned_trials(plan.config) if plan.config is not None else None,
        "cells_in_all": sum(bool(cell.source.strip()) for cell in document.cells),
        "slots": plan.slots,
        "written": {"place": "here" if plan.written.local else "cluster", "test": plan.written.test},
        "here": here(document, test=request.test),
        "problems": problem_list([*problems, *there.problems]),
    }


def here(document: Document, *, test: bool) -> dict[str, Any]:
    """Return what a front end executes to train the document's call in the notebook's own kernel."""
    call = document.cells[document.call.running].id
    return {
        "before": f"from {_MODULE} import run_here as _det_run; _det_run({call!r}, test={test}); del _det_run",
        "cells": [document.cells[index].id for index in document.above],
        "after": f"from {_MODULE} import run_as_written as _det_end; _det_end(); del _det_end",
    }


def problem_list(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return problems as the answers have them."""
    return [{"where": one.where, "what": one.what, "remedy": one.remedy} for one in problems]


def _assembled(reading: Reading) -> tuple[Bundle | None, list[Problem]]:
    settings = reading.plan.settings
    try:
        bundle = assemble(
            reading.collected.capture,
            context_dir=settings.context_dir,
            protocol=PROTOCOL,
            stored=stored_at(settings.master_url),
            elsewhere=bool(named_master(settings.master_url)),
        )
    except ProblemsError as error:
        return None, [*reading.problems, *error.problems]
    return for_master(bundle, settings.master_url), reading.problems


@dataclass
class _There:
    """What the master says of a document.

    Attributes
    ----------
    master : str or None
        Its address; None if none can be asked.
    in_the_way : str
        Why it cannot be used; empty if none runs, too.
    warnings, problems, rows
        What the workers lack, or have in another version, and GPUs that other processes fill.
    """

    master: str | None = None
    in_the_way: str = ""
    warnings: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    rows: Sequence[CaptureRow] = ()


def _there(reading: Reading, bundle: Bundle) -> _There:
    """Ask the master, and mark in the report what it has."""
    master_url = reading.plan.settings.master_url
    try:
        if locate(master_url) is None:
            return _There()  # it is started when the document is submitted
        session = connect(master_url, start=False)
        existed, missing = _lacking(session, bundle)
        found = _compared(session, reading, bundle)
    except MasterError as error:
        return _There(in_the_way=str(error))
    for row in bundle.report:
        if row.status != "not sent" and row.how != "requirement":
            there = existed or (isinstance(row, BundleRow) and not row.hashes & missing)
            row.status = "already there" if there else "new"
    return found


def _compared(session: Session, reading: Reading, bundle: Bundle) -> _There:
    """Return what a submit would say of the workers' Python, packages and GPUs."""
    config = reading.plan.config
    # Before cells have run it may be unknown what is to be installed: then nothing is refused for want of it.
    wanted: Literal["auto"] | list[str] | None = "auto" if config is None else config.environment.packages
    try:
        fitted = fit_to_workers(session, bundle, reading.collected.capture.packages, wanted)
    except WorkerEnvironmentError as error:
        return _There(session.url, warnings=notices_of(session), problems=error.problems)
    return _There(session.url, warnings=fitted.warnings, rows=fitted.rows)


def _lacking(session: Session, bundle: Bundle) -> tuple[bool, set[str]]:
    """Return whether the master has the bundle, and the blobs of it that it lacks."""
    try:
        session.call(routes.GET_BUNDLE_CREATED, bundle_id=bundle.manifest.id)
    except NotFoundError:
        hashes = sorted(bundle.manifest.hashes())
        return False, set(session.call(routes.FIND_MISSING, HashList(hashes=hashes)).hashes)
    return True, set()


def _sizes(bundle: Bundle) -> tuple[int, int]:
    """Return the bytes of all that travels, and of what the master lacks."""
    travelling = [row for row in bundle.report if row.status != "not sent" and row.how != "made again"]
    return sum(row.size for row in travelling), sum(row.size for row in travelling if row.status == "new")


def _cell(document: Document, index: int) -> dict[str, Any]:
    return {"cell": document.number(index), "id": document.cells[index].id}


def _call(document: Document, call: FoundCall) -> dict[str, Any]:
    """Return a training call for who chooses one."""
    running = None if call.running == call.owner else document.number(call.running)
    return {**_cell(document, call.owner), "line": call.node.lineno, "kind": call.kind, "running": running}


def _row(document: Document, row: CaptureRow) -> dict[str, Any]:
    """Return a row as the answer has it: brackets are for what the notebook shows in brackets."""
    found = row.model_dump(mode="json")
    if not document.prompts:
        found["cell"] = _MARK.sub(r"\1", found["cell"])
        if row.how == "runs again":
            found["what"] = _MARK.sub(r"\1", f"code {row.what}")
    return found


def _changed(document: Document) -> list[dict[str, Any]]:
    found = []
    latest = 0
    for index in document.above:
        cell = document.cells[index]
        if cell.executed is not None and cell.executed != cell.source:
            found.append({**_cell(document, index), "why": "text differs from what last ran"})
        elif cell.executed is None and cell.execution_count is None:
            found.append({**_cell(document, index), "why": "not run yet"})
        elif cell.executed is not None and cell.execution_count is not None:
            if cell.execution_count < latest:
                found.append(
                    {
                        **_cell(document, index),
                        "why": "last ran before a cell above; what is sent runs from top to bottom",
                    }
                )
            latest = max(latest, cell.execution_count)
    return found


def _must_run(reading: Reading) -> list[dict[str, Any]]:
    document = reading.document
    cells = {cell.cell_id: cell.reason for cell in reading.collected.capture.program.cells}
    found = [
        {**_cell(document, index), "why": cells.get(document.cells[index].id, "makes what values= sends")}
        for index in document.above
    ]
    if found:
        found[-1]["why"] = "; ".join(dict.fromkeys(reading.plan.reasons))
    return found


# submit ---------------------------------------------------------------------------------------------------------------


def submit(request: Request, folder: Path) -> dict[str, Any]:
    """Submit a document; see ``det_native.experimental.document``."""
    reading = Reading(request, folder)
    reading.raise_problems()
    try:
        with scheduling(request.schedule):
            experiment = _run(reading) if reading.must_run else _send(reading)
    except Scheduled as made:
        return {"ok": True, "schedule": made.schedule}
    return {"ok": True, "experiment": {"id": experiment.id, "name": experiment.name}}


def _send(reading: Reading) -> Experiment:
    plan, request = reading.plan, reading.request
    assert plan.config is not None, "it is only missing where cells must run, or with problems"
    return send_capture(reading.collected.capture, plan.config, plan.framework, plan.settings, request.idempotency_key)


def _run(reading: Reading) -> Experiment:
    from det_native.experimental.document_run import run_document

    return run_document(reading.document, reading.request, reading.folder)


def failure(error: DetError) -> dict[str, Any]:
    """Return the answer for an error."""
    problems: Sequence[Problem] = error.problems if isinstance(error, ProblemsError) else ()
    if isinstance(error, RequestError) and error.body is not None:
        problems = [Problem(one.where, one.what, one.remedy) for one in error.body.problems]
    headline = error.headline if isinstance(error, ProblemsError) else str(error)
    return {"ok": False, "error": headline, "problems": problem_list(problems)}
