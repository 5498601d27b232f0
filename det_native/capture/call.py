"""The way into capture for ``init()``, ``fit()``, ``create()`` and ``train_and_evaluate()``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from det_native.capture.calls import note_call
from det_native.capture.log import CallRecord, ExecutionLog, current_log
from det_native.capture.model import HEADLINE, Capture, Request
from det_native.capture.nesting import refusing_deep_code
from det_native.capture.transform import transform
from det_native.errors import CaptureError, Problem
from det_native.schema.manifests import CallKind, Framework


def capture_call(
    kind: CallKind,
    payload: object = None,
    *,
    framework: Framework,
    init_executions: Sequence[int] | None = None,
    values: Sequence[str] = (),
    include: Sequence[str | os.PathLike[str]] = (),
    context_dir: str | os.PathLike[str] | None = None,
    command: Sequence[str] | None = None,
    call: CallRecord | None = None,
    init: CallRecord | None = None,
) -> Capture:
    """Return the program, values and files that the training call being made needs.

    To be called from inside the call; the place of the call is found from the stack.

    Parameters
    ----------
    payload : object, optional
        What the call was given: a Trial class, or an object whose attributes are the model, the data and so on. If no
        name that the calling cell reads holds one of them, another name that does is needed.
    init_executions : sequence of int, optional
        What ``running_execution()`` gave when ``init()`` was called; those executions are always sent. By default the
        last one that calls a det_native ``init()``.
    values : sequence of str
        Names to send by value instead of running the cells that make them.
    include : sequence of path
        Files and folders outside the notebook's folder that are to be sent.
    context_dir : path, optional
        Working directory of the code, sent whole.
    command : sequence of str, optional
        A script with arguments, to run instead of what made the call.
    call : CallRecord, optional
        What ``note_call()`` returned for this call; by default the call is noted here.
    init : CallRecord, optional
        What ``note_call("init")`` returned for the ``init()`` that this call belongs to.

    Raises
    ------
    CaptureError
        Something that the call needs cannot be sent; lists every reason with its cell.
    """
    record = call if call is not None else note_call(kind)
    request = Request(
        framework,
        kind,
        tuple(init_executions) if init_executions is not None else None,
        tuple(_parts(payload)),
        tuple(dict.fromkeys(values)),
        tuple(Path(path).expanduser().resolve() for path in include),
        Path(context_dir).expanduser().resolve() if context_dir else None,
        init,
    )
    log = current_log()
    if command or log is None or log.running is None:
        from det_native.capture.script import capture_script

        return with_includes(capture_script(request, record, command or None), request, include)
    if record is None:
        raise CaptureError(
            HEADLINE,
            [Problem("", f"{kind}() was not called from a cell that the notebook logged.", "Call it from a cell.")],
        )
    # Half of capture, and scripts need none of it.
    from det_native.capture.cells import capture_cells

    with refusing_deep_code(lambda: _sources(log)):
        return with_includes(capture_cells(request, log, record, notebook_folder()), request, include)


def _sources(log: ExecutionLog) -> list[tuple[str, str]]:
    """Return the cells as Python, each with what messages call it."""
    return [(transform(one.source).source, f"Cell [{one.number}]") for one in log.executions]


def notebook_folder() -> Path:
    """Return the folder of the running notebook: as the server or VS Code tells it, else the working directory.

    A working directory that cells changed by ``os.chdir`` is not meant.
    """
    log = current_log()
    names = log.shell.user_ns if log is not None else {}
    for name in (os.environ.get("JPY_SESSION_NAME"), names.get("__session__"), names.get("__vsc_ipynb_file__")):
        if (
            isinstance(name, str)
            and name.endswith(".ipynb")
            and Path(name).is_absolute()
            and Path(name).parent.is_dir()
        ):
            return Path(name).parent
    return _started_in(log) or Path.cwd()


def _started_in(log: ExecutionLog | None) -> Path | None:
    """Return where the kernel was before cells went deeper by ``os.chdir``: on the worker they do it again.

    None if no cell did. IPython notes the folders that ``%cd`` goes to, which is left out of what runs on the worker.
    """
    if log is None or not any("chdir(" in execution.source for execution in log.executions):
        return None
    visited = log.shell.user_ns.get("_dh")
    folder = Path(str(visited[-1])) if isinstance(visited, list) and visited else None
    return folder if folder is not None and folder in Path.cwd().parents else None


def _parts(payload: object) -> list[object]:
    """The objects that a call was given."""
    if payload is None or isinstance(payload, type):
        return [payload] if payload is not None else []
    attributes = dict(getattr(payload, "__dict__", {}))
    parts: list[object] = [payload]
    for value in attributes.values():
        parts.extend(
            value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        )
    return [part for part in parts if not isinstance(part, int | float | str | bytes | tuple | type(None))]


def with_includes(
    capture: Capture, request: Request, include: Sequence[str | os.PathLike[str]] | None = None
) -> Capture:
    """Add the files named in ``include=`` that are not sent already; `include` has them as the user wrote them."""
    from det_native.capture.folders import files_in
    from det_native.capture.model import INCLUDED, SourceFile

    root = (request.context_dir or notebook_folder()).resolve()
    sent = {file.path.resolve() for file in capture.files}
    for real, named in zip(request.include, request.include if include is None else include, strict=True):
        path = _through_link(real, Path(named), root)
        base = root if root in path.parents else path.parent
        if path != real:  # what was said of the names that lead there holds no more
            capture.notes.rows = [
                row for row in capture.notes.rows if row.how != "path" or not _is_in(root / row.what, path)
            ]
        for file in [path] if path.is_file() else files_in(path):
            # A file of context_dir is sent with it, unless it is left out by default: then its own name takes it in.
            whole = request.context_dir is not None and root in file.parents
            if file.resolve() not in sent and not (whole and file != path):
                sent.add(file.resolve())
                capture.files.append(SourceFile(file, file.relative_to(base).as_posix(), INCLUDED))
    return capture


def _through_link(real: Path, named: Path, root: Path) -> Path:
    """Return a path by the name that the code has for it, where a link in `root` leads to it from there."""
    path = Path(os.path.abspath(named.expanduser()))
    leads_out = root in path.parents and root not in (real, *real.parents)
    return path if leads_out and path.resolve() == real else real


def _is_in(one: Path, folder: Path) -> bool:
    return folder in (one, *one.parents)
