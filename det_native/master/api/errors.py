"""How refusals look: always an ``ErrorBody``, never a traceback."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from det_native.errors import (
    ArgumentError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    DetError,
    MasterError,
    MissingDependencyError,
    ProblemsError,
    ProtocolMismatchError,
    RequestError,
    StorageError,
    UnsupportedFeatureError,
)
from det_native.master.blobs_missing import MissingBlobsError
from det_native.master.store.columns import UNSTORABLE
from det_native.master.store.database import is_disk_full, is_unwritable
from det_native.schema.rest import ErrorBody, ProblemInfo
from det_native.storage.backups import DamagedDatabaseError
from det_native.storage.frames import FrameError
from det_native.storage.paths import UnsafePathError
from det_native.storage.received_packs import PackError, PackTooLargeError
from det_native.storage.remote_folder import is_remote

logger = logging.getLogger(__name__)

# What was sent may be part of a message, and it may be large.
_LONGEST_MESSAGE = 4000
_MOST_PROBLEMS = 100

_STATUS: Sequence[tuple[type[DetError], int]] = (
    (ProblemsError, 422),
    (UnsupportedFeatureError, 422),
    (MissingDependencyError, 422),
    (ArgumentError, 400),
    (ProtocolMismatchError, 426),
    (CheckpointNotFoundError, 404),
    (CheckpointCorruptError, 409),
    (PackTooLargeError, 413),
    (PackError, 400),
    (FrameError, 400),
    (UnsafePathError, 400),
    (DamagedDatabaseError, 503),
    (MasterError, 503),
)


def refusal(
    status: int,
    error: str,
    *,
    problems: Sequence[ProblemInfo] = (),
    missing: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a refusal."""
    shown = [_shortened(problem) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        shown.append(ProblemInfo(where="", what=f"and {len(problems) - _MOST_PROBLEMS} more problems"))
    body = ErrorBody(error=shorten(error, _LONGEST_MESSAGE), problems=shown, missing=list(missing))
    return Response(body.model_dump_json(), status, dict(headers or {}), media_type="application/json")


def shorten(text: str, longest: int) -> str:
    """Return a text with its middle left out, if it is too long."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


def _shortened(problem: ProblemInfo) -> ProblemInfo:
    parts = {name: shorten(text, _LONGEST_MESSAGE // 4) for name, text in problem if isinstance(text, str)}
    return problem.model_copy(update=parts)


def install(app: FastAPI, log: Path) -> None:
    """Have every exception of `app` end in a refusal; `log` is where an internal error can be looked up."""

    async def internal(request: Request, error: Exception) -> Response:
        return refusal(500, f"Something failed inside the master. Its log says what: {log} (or `det logs`).")

    async def det_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, DetError)
        status = status_of(error)
        outage = request.app.state.service.outage
        if status == 500 and error.__cause__ is not None and outage.note(error.__cause__):
            return refusal(503, outage.sentence)
        if status == 500:
            logger.error("A request failed.", exc_info=error)
        if isinstance(error, MissingBlobsError):
            return refusal(status, str(error), missing=error.missing)
        if status == 507 and not isinstance(error, RequestError):
            return _disk_full(request)  # the error says of which blob, by its hash
        problems = error.problems if isinstance(error, ProblemsError) else ()
        infos = [ProblemInfo(where=one.where, what=one.what, remedy=one.remedy) for one in problems]
        return refusal(status, str(error), problems=infos)

    app.add_exception_handler(DetError, det_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OperationalError, _database_error)
    app.add_exception_handler(OSError, _os_error)
    for kind in UNSTORABLE:
        app.add_exception_handler(kind, _cannot_be_stored)
    app.add_exception_handler(Exception, internal)


def status_of(error: DetError) -> int:
    """Return the HTTP status that says best what an error is."""
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, MissingBlobsError):
        return 409
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 507 if isinstance(error, StorageError) and _no_space(error) else 500


def _no_space(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, str(error.detail), headers=error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [_problem(one) for one in error.errors()]
    return refusal(422, "The request is not valid.", problems=problems)


def _problem(found: Mapping[str, Any]) -> ProblemInfo:
    if found["type"] == "json_invalid":
        return ProblemInfo(where="body", what=f"is not JSON: {found['ctx']['error']}.")
    where = ".".join(str(part) for part in found["loc"])
    # What was sent may hold text that JSON cannot; the message does not.
    return ProblemInfo(
        where=where.encode("utf-8", "replace").decode(), what=str(found["msg"]).encode("utf-8", "replace").decode()
    )


async def _database_error(request: Request, error: Exception) -> Response:
    logger.error("The database refused a change.", exc_info=error)
    if is_disk_full(error):
        return _disk_full(request)
    outage = request.app.state.service.outage.sentence  # which may be over by now
    if outage and is_unwritable(error):
        return refusal(503, outage)
    return refusal(
        503, f"The database refused: {str(error.__cause__ or error).rstrip('.')}. Try again; `det logs` says more."
    )


async def _os_error(request: Request, error: Exception) -> Response:
    if is_remote(error):
        logger.error("The storage failed.", exc_info=error)
        uri = request.app.state.service.places.storage_url
        return refusal(424, f"The storage {uri} failed: {str(error).rstrip('.') or type(error).__name__}. Try again.")
    logger.error("The operating system refused something.", exc_info=error)
    if _no_space(error):
        return _disk_full(request)
    outage = request.app.state.service.outage
    if outage.note(error):
        return refusal(503, outage.sentence)
    return refusal(500, f"The operating system refused something: {type(error).__name__}; the master's log says more.")


async def _cannot_be_stored(request: Request, error: Exception) -> Response:
    return refusal(400, f"A number or text of the request cannot be stored ({type(error).__name__}).")


def _disk_full(request: Request) -> Response:
    return refusal(
        507,
        f"The disk of the master is full, at {request.app.state.service.places.home}. What was stored is safe; free "
        "some space there and try again.",
    )
