"""Having the interpreter of a notebook's kernel look at the notebook, or submit it, in a process of its own."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from det_jupyter.kernels import HEADLINE, Interpreter
from det_jupyter.programs import run_program
from det_native.errors import DetError, Problem, ProblemsError

Command = Literal["inspect", "submit"]

PROGRAM = "det_native.experimental.document"
_SHOWN_LINES = 20


class DocumentTimeoutError(DetError):
    """The process took longer than allowed."""


class Cell(BaseModel):
    """A code cell as the front end has it; `executed` is the source that last ran, None if none is known."""

    model_config = ConfigDict(extra="forbid")

    id: str
    source: str
    execution_count: int | None = None
    executed: str | None = None
    tags: list[str] = Field(default_factory=list)


class DocumentRequest(BaseModel):
    """Body of ``document/inspect`` and ``document/submit``; `path` is relative to the server's root."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    kernelspec: str = Field(min_length=1)
    cells: list[Cell]
    place: Literal["cluster"] = "cluster"
    call: int | None = Field(default=None, ge=0)
    slots: int | None = Field(default=None, ge=1)
    test: bool = False
    idempotency_key: str = Field(default_factory=lambda: uuid.uuid4().hex, pattern=r"^[\x21-\x7e]{1,200}$")


async def run_document(
    command: Command, request: DocumentRequest, interpreter: Interpreter, notebook: Path, *, seconds: float
) -> dict[str, Any]:
    """Run the program in the notebook's folder and return what it answers.

    Cancelled, or after `seconds`, the process and what it has started in its group are ended.

    Parameters
    ----------
    notebook : Path
        Absolute.

    Raises
    ------
    ProblemsError
        If it cannot run, or what it says is wrong with the notebook.
    DocumentTimeoutError
        If it takes longer than `seconds`.
    """
    body = request.model_dump(mode="json") | {"path": str(notebook)}
    # -P: no module of the notebook's folder takes the place of one of ours.
    program = (interpreter.executable, "-P", "-m", PROGRAM, command)
    try:
        finished = await run_program(
            program,
            json.dumps(body).encode(),
            seconds=seconds,
            folder=notebook.parent,
            environment=interpreter.environment,
        )
    except TimeoutError as error:
        raise DocumentTimeoutError(
            f"Looking at the notebook took longer than {seconds:.0f} s and was ended. If its cells have to run for "
            "that long, raise DetJupyter.document_seconds in Jupyter's configuration."
        ) from error
    except OSError as error:
        raise ProblemsError(
            HEADLINE,
            [Problem(f"kernel {interpreter.kernelspec!r}", f"does not start: {error.strerror or error}.", "")],
        ) from error
    return _understood(finished.answered, finished.said, finished.code, interpreter)


def _understood(answered: bytes, said: str, code: int, interpreter: Interpreter) -> dict[str, Any]:
    try:
        answer = json.loads(answered)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ProblemsError(HEADLINE, [_no_answer(said, code, interpreter)])
    if not answer.get("ok"):
        problems = [Problem(**found) for found in answer.get("problems", [])]
        raise ProblemsError(str(answer.get("error", HEADLINE)), problems)
    return answer


def _no_answer(said: str, code: int, interpreter: Interpreter) -> Problem:
    where = f"kernel {interpreter.kernelspec!r}"
    if "No module named 'det_native'" in said or "No module named det_native" in said:
        what = "has no det_native, or one too old to look at notebooks."
        return Problem(where, what, f"Install it there: {interpreter.install_command()}")
    if "nknown option" in said and "-P" in said:
        what = "runs a Python older than 3.11, which det_native needs."
        return Problem(where, what, "Choose another kernel for the notebook.")
    end = "\n".join(said.strip().splitlines()[-_SHOWN_LINES:]) or "It wrote nothing."
    return Problem(where, f"ended with status {code} without an answer:\n{end}", "")
