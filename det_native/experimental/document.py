"""Sends a notebook's document: runs its cells, from the top to the call, in a process of their own.

The call is captured there as it is in a notebook's kernel: what is quick runs again on the worker, and values of what
is slow travel. What the text alone tells (which training calls there are, and where) chooses the call.

``python -P -m det_native.experimental.document inspect|submit`` reads one JSON object from stdin and writes one to
stdout. Run it with the interpreter of the notebook's kernelspec and the notebook's folder as working directory
(``-P`` keeps that folder from shadowing modules of ours). Stderr has lines for people: progress, and what went wrong.

Request, the same for both (fields besides these are ignored)::

    {"path": "/abs/folder/notebook.ipynb",     # need not exist: only its folder is used
     "cells": [{"id": str, "source": str,      # code cells only, in the order of the document
                "execution_count": int|null,   # what the notebook shows in brackets
                "executed": str|null,          # what last ran; null: never, or not known
                "tags": [str]}],               # det-skip, det-include
     "call": int|null,                         # which of its training calls, from 0; null: the last
     "place": "cluster", "slots": int|null,    # null: as the configuration says
     "test": bool, "idempotency_key": str,
     "schedule": {"name", "timing", "overlap"}|null}           # not null: the master submits it then, and again

The exit status is 0, and the answer has ``"ok": true``, or it is 1 and the answer is ::

    {"ok": false, "error": str, "problems": [{"where": str, "what": str, "remedy": str}]}

``inspect`` executes and imports nothing of the user's, starts no master, and answers::

    {"ok": true,
     "prompts": bool,                          # whether a cell's number is the one that the notebook shows
     "call": {"cell": int|null, "id": str, "line": int, "kind": "fit"|"train"|"create",
              "framework": str},               # empty where running the cells tells it
     "calls": [{"cell","id","line","kind",     # all that could be sent; running: the cell that calls the function
                "running": int|null}],         # in which it is written
     "chosen": int,                            # which of them this is
     "master": str|null,                       # address of the master that was asked; null if none answers
     "master_problem": str,                    # why it cannot be used; empty if submit would start one
     "warnings": [str],
     "changed": [{"cell": int|null, "id": str, "why": str}],   # of the cells that run
     "cells_in_all": int,                      # code cells that are not empty
     "written": {"place": "cluster"|"here", "test": bool},     # what the document itself says, by constants
     "here": {"before": str, "cells": [id], "after": str},     # see below
     "problems": [...]}                        # not empty: submit would refuse, with these

``submit`` runs the cells ``here.cells``, in its own process and never in the kernel, as far as the call, and answers
``{"ok": true, "experiment": {"id": int, "name": str}}``, or ``{"ok": true, "schedule": {...}}`` as REST has it.
A cell's number is the one that the notebook shows, if all cells that matter show one (``prompts``); else its place
among the code cells that are not empty, from 1.

"Here, in this notebook's kernel": execute ``here.before`` silently (``store_history`` false) in the kernel, then run
the cells ``here.cells`` of the notebook as a user does, in that order, then execute ``here.after`` silently. ``before``
calls :func:`run_here`: until its end every ``init()`` and ``create()`` trains in the kernel, whatever it says itself.
It ends by itself when the cell that makes the call has run, or any cell has failed; ``after`` calls
:func:`run_as_written`, which does no harm then.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError, DetError
from det_native.experimental.document_place import run_as_written, run_here

__all__ = ["main", "run_as_written", "run_here"]

_USAGE = "usage: python -P -m det_native.experimental.document inspect|submit < request.json"


def main(arguments: list[str], text: str) -> dict[str, Any]:
    """Return the answer to a request.

    Parameters
    ----------
    arguments : list of str
        ``["inspect"]`` or ``["submit"]``.
    text : str
        The request, as JSON.
    """
    from det_native.experimental import document_answers as answers

    try:
        if arguments not in (["inspect"], ["submit"]):
            raise ArgumentError(_USAGE)
        request = _request(text)
        folder = _enter(Path(request.path))
        return answers.inspect(request) if arguments == ["inspect"] else answers.submit(request, folder)
    except DetError as error:
        return answers.failure(error)


def _request(text: str) -> Any:
    from pydantic import ValidationError

    from det_native.experimental.document_request import Request

    try:
        return Request.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ArgumentError(f"The request cannot be read: {where or 'it'}: {first['msg']}.") from None


def _enter(path: Path) -> Path:
    """Be where the notebook's kernel is: its folder is the working directory, and the first place of imports."""
    folder = path.parent
    if not path.is_absolute() or not os.path.isdir(folder):
        raise ArgumentError(f"path must be the absolute path of the notebook; its folder must exist: {str(path)!r}.")
    folder = folder.resolve()
    os.chdir(folder)
    if path.suffix == ".ipynb":
        os.environ["JPY_SESSION_NAME"] = str(folder / path.name)
    for place in ("", str(folder)):
        while place in sys.path:
            sys.path.remove(place)
    sys.path.insert(0, str(folder))
    return folder


def _run() -> int:
    text = sys.stdin.read()
    # Whatever is printed from here on is for people; stdout has the answer alone.
    answer = os.dup(1)
    os.dup2(2, 1)
    result = main(sys.argv[1:], text)
    with os.fdopen(answer, "w", encoding="utf-8") as stream:
        json.dump(result, stream)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(_run())
