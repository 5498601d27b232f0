"""Submits a notebook's file: runs it in a fresh kernel of this machine, now, at a time, or again and again."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from det_native.client.addresses import named_master
from det_native.client.connect import connect
from det_native.client.remote.target import is_ssh
from det_native.client.session import Session
from det_native.client.timing import timing_of
from det_native.errors import ArgumentError
from det_native.schema import routes
from det_native.schema.home import Home
from det_native.schema.notebook_runs import LIMIT_SECONDS, NotebookRun, RunRequest
from det_native.schema.schedules import Schedule, ScheduleCreate


def request_of(
    path: Path,
    master: str | None = None,
    *,
    parameters: tuple[str, ...] = (),
    kernel: str = "",
    place: str | None = None,
    slots: int | None = None,
    is_test: bool = False,
    limit: str | None = None,
    beside: bool = False,
) -> RunRequest:
    """Return the request for a run of a notebook.

    Raises
    ------
    ArgumentError
        If a parameter or the limit cannot be read.
    """
    from det_native.notebook_runs.parameters import parse_parameters

    return RunRequest(
        path=str(path.absolute()),
        kernel=kernel,
        parameters=parse_parameters(parameters),
        place=place or "",
        slots=slots,
        test=is_test,
        limit_seconds=_seconds(limit),
        beside=beside,
        master=named_master(master) or "",
    )


def submit_notebook(request: RunRequest) -> NotebookRun:
    """Begin a run of a notebook, and return it at once.

    Raises
    ------
    ArgumentError
        If the notebook, its kernel or a parameter cannot be used.
    """
    from det_native.notebook_runs.start import start_run

    return start_run(request, Home.default())


def schedule_notebook(
    request: RunRequest,
    *,
    at: str | None = None,
    every: str | None = None,
    timezone: str | None = None,
    name: str = "",
    overlap: bool = False,
    now: datetime | None = None,
) -> Schedule:
    """Have the master of this machine run a notebook at a time, or again and again.

    The notebook is taken as its file is now; what changes in it afterwards does not change the schedule.

    Raises
    ------
    ArgumentError
        If the time, the notebook, its kernel or a parameter cannot be used.
    """
    import nbformat

    from det_native.notebook_runs.start import check_request

    timing = timing_of(at, every, timezone, now)
    notebook, kernel = check_request(request)
    if request.master and not is_ssh(request.master) and os.environ.get("DET_TOKEN"):
        raise ArgumentError(
            "A schedule keeps no tokens, and DET_TOKEN opens this master: name it as ssh://user@host, or schedule the "
            "notebook on its machine."
        )
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    # The values are in the notebook now, as JSON cannot hold all of them.
    kept = request.model_copy(update={"content": nbformat.writes(notebook), "kernel": kernel, "parameters": {}})
    body = ScheduleCreate(name=name or Path(request.path).stem, timing=timing, request=kept, overlap=overlap)
    return _here().call(routes.CREATE_SCHEDULE, body)


def _here() -> Session:
    """Return a session with the master of this machine, whichever is named for experiments."""
    names = ("DET_MASTER", "DET_MASTER_ADDR")
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        return connect(None)
    finally:
        os.environ.update(kept)


def _seconds(limit: str | None) -> float:
    if limit is None:
        return LIMIT_SECONDS
    from det_native.schema.schedules import interval_of

    try:
        interval = interval_of(limit)
    except ValueError:
        interval = None
    if interval is None:
        raise ArgumentError(f'--limit: invalid duration {limit!r}: write "30min", "12h" or "2d".')
    return interval.total_seconds()
