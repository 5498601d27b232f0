"""The answers of ``inspect`` and ``submit`` about a document."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from det_native.capture.document import Document
from det_native.capture.document_calls import FoundCall
from det_native.capture.request import HEADLINE
from det_native.client.connect import connect, locate
from det_native.errors import CaptureError, DetError, MasterError, Problem, ProblemsError, RequestError
from det_native.experimental.arguments import Place, resolve
from det_native.experimental.document_request import Request
from det_native.experimental.document_run import run_document
from det_native.experimental.scheduled import Scheduled, scheduling
from det_native.experimental.worker_environment import notices_of

_MODULE = "det_native.experimental.document"


# inspect --------------------------------------------------------------------------------------------------------------


def inspect(request: Request) -> dict[str, Any]:
    """Say what a submit of a document would do; see ``det_native.experimental.document``."""
    document = Document(request.document_cells(), request.call)
    call, place = document.call, _written_place(document)
    master, master_problem, notices = _master()
    return {
        "ok": True,
        "prompts": document.prompts,
        "call": {
            **_cell(document, call.owner),
            "line": call.node.lineno,
            "kind": call.kind,
            "framework": call.framework or (document.init.framework if document.init is not None else None) or "",
        },
        "calls": [_call(document, each) for each in document.calls],
        "chosen": next(at for at, each in enumerate(document.calls) if each is call),
        "master": master,
        "master_problem": master_problem,
        "warnings": list(dict.fromkeys([*_warnings(document), *notices])),
        "changed": list(_changed(document)),
        "cells_in_all": len(document.cells),
        "written": {"place": "here" if place.local else "cluster", "test": place.test},
        "here": here(document, test=request.test),
        "problems": problem_list(_problems(document)),
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
    return [{"where": each.where, "what": each.what, "remedy": each.remedy} for each in problems]


def _written_place(document: Document) -> Place:
    """Return where the document itself says that it trains, as far as constants in the call say so."""
    call = document.call if document.call.kind == "create" else document.init
    keywords = call.node.keywords if call is not None else []
    constants: dict[str | None, Any] = {
        each.arg: each.value.value for each in keywords if isinstance(each.value, ast.Constant)
    }
    try:
        return resolve(**{name: constants.get(name) for name in ("mode", "local", "test")})
    except (DetError, TypeError):
        return Place(local=False, test=False)  # the run says what is wrong


def _master() -> tuple[str | None, str, Sequence[str]]:
    """Return the address of the master, why it cannot be used, and what a user should know of its slots."""
    try:
        if locate(None) is None:
            return None, "", ()  # it is started when the document is submitted
        session = connect(None, start=False)
        return session.url, "", notices_of(session)
    except MasterError as error:
        return None, str(error), ()


def _cell(document: Document, index: int) -> dict[str, Any]:
    return {"cell": document.number(index), "id": document.cells[index].id}


def _call(document: Document, call: FoundCall) -> dict[str, Any]:
    """Return a training call for who chooses one."""
    running = None if call.running == call.owner else document.number(call.running)
    return {**_cell(document, call.owner), "line": call.node.lineno, "kind": call.kind, "running": running}


def _changed(document: Document) -> Iterator[dict[str, Any]]:
    latest = 0
    for index in document.above:
        cell = document.cells[index]
        if cell.executed is not None and cell.executed != cell.source:
            yield {**_cell(document, index), "why": "text differs from what last ran"}
        elif cell.executed is None and cell.execution_count is None:
            yield {**_cell(document, index), "why": "not run yet"}
        elif cell.executed is not None and cell.execution_count is not None:
            if cell.execution_count < latest:
                why = "last ran before a cell above; a submit runs the cells from top to bottom"
                yield {**_cell(document, index), "why": why}
            latest = max(latest, cell.execution_count)


def _problems(document: Document) -> list[Problem]:
    call = document.call
    if call.route.loop is None:
        return []
    what = f"{call.kind}() is in a loop (line {call.route.loop}): a document is sent as one experiment."
    remedy = "Take it out of the loop, let a searcher vary the hyperparameters, or run the cell itself."
    return [Problem(f"{document.label(call.owner)}, line {call.node.lineno}", what, remedy)]


def _warnings(document: Document) -> Iterator[str]:
    call = document.call
    for at, why in document.invalid.items():
        if at <= call.running:
            yield f"{document.label(at)} is not valid Python ({why}) and is left out."
    others = [
        (each.running, f"{document.within(each.running)} ({each.kind})") for each in document.calls if each is not call
    ]
    if others:
        labels = ", ".join(dict.fromkeys(label for _, label in others))
        text = f"Only one training call is sent, {document.title()}; not sent: {labels}."
        if any(running <= call.running for running, _ in others):
            text += (
                " Those above it do not train: what they return is empty, and models are as they were before. To go "
                "on from trained weights, write them to a file, and load that where the model is made."
            )
        yield text


# submit ---------------------------------------------------------------------------------------------------------------


def submit(request: Request, folder: Path) -> dict[str, Any]:
    """Submit a document; see ``det_native.experimental.document``."""
    document = Document(request.document_cells(), request.call)
    problems = _problems(document)
    if problems:
        raise CaptureError(HEADLINE, problems)
    try:
        with scheduling(request.schedule):
            experiment = run_document(document, request, folder)
    except Scheduled as made:
        return {"ok": True, "schedule": made.schedule}
    return {"ok": True, "experiment": {"id": experiment.id, "name": experiment.name}}


def failure(error: DetError) -> dict[str, Any]:
    """Return the answer for an error."""
    problems: Sequence[Problem] = error.problems if isinstance(error, ProblemsError) else ()
    if isinstance(error, RequestError) and error.body is not None:
        problems = [Problem(each.where, each.what, each.remedy) for each in error.body.problems]
    headline = error.headline if isinstance(error, ProblemsError) else str(error)
    return {"ok": False, "error": headline, "problems": problem_list(problems)}
