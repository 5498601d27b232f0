"""Files of a training that is submitted: which it may write, and whether what follows the call reads them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from det_native.capture.call import notebook_folder
from det_native.capture.log import current_log
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.files_home import registry
from det_native.files_home.bringing import watch_ends
from det_native.files_home.expected import classes_of, expected_uses
from det_native.files_home.registry import PendingFiles
from det_native.files_home.uses import Lookup, PathUse
from det_native.files_home.waiting import bring_read, reads_of
from det_native.pending.cells import AGAIN, watch_cells
from det_native.pending.following import Around, around_call
from det_native.pending.reading import main_namespace

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def note_files(
    experiment: Experiment,
    payload: Any,
    cells: Sequence[tuple[str, bool]],
    *,
    search: bool,
    submitted: float,
    show: Show,
) -> None:
    """Note that the files of a training which is being submitted are to come home.

    Parameters
    ----------
    experiment : Experiment
    payload : FitCall, TorchCall, EstimatorCall or type
        What was submitted.
    cells : sequence of (str, bool)
        Texts of the cells that were sent, and whether the call needs them.
    search : bool
        There are several trials: their files stay on the cluster.
    submitted : float
        When, in seconds since 1970.
    show : {"view", "bar", "none"}
        What is shown while it is waited for.
    """
    around = around_call(loop=_is_loop(payload)) or []
    given, folder = _called_back(payload), _folder()
    owners = tuple((owner, path) for owner, path in getattr(payload, "owners", ()) if path)
    expected: tuple[PathUse, ...] = ()
    try:
        expected = expected_uses(
            [source for source, _ in cells],
            _running(around),
            given,
            namespace=main_namespace(),
            folder=str(Path.cwd()),
            folders=[path for _, path in owners],
            seen_of_cells=_seen_of({source for source, needed in cells if needed}).__contains__,
        )
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything; the experiment is submitted)
        warnings.warn(
            f"Which files the training writes cannot be told ({type(error).__name__}: {error}): code that reads one "
            "waits only once it is written. experiment.wait() waits for the end.",
            stacklevel=2,
        )
    files = PendingFiles(experiment, folder, submitted, expected, search, show, classes_of(given))
    files.owners = owners
    files.trainers = frozenset(outer.frame.f_code for outer in around if not outer.frame.f_code.co_name.startswith("<"))
    files.call = ast.unparse(around[0].path[-1]) if around else ""
    registry.add(files)
    watch_ends()
    watch_cells()


def wait_if_read(experiment: Experiment, payload: Any) -> None:
    """Wait for the files of a training if what follows its call reads one.

    Raises
    ------
    DetError
        If a file is waited for and cannot come.
    KeyboardInterrupt
        If the waiting was interrupted.
    """
    files = registry.of_experiment(experiment)
    if files is None or getattr(payload, "wait", None) is False:
        return
    around = around_call(loop=_is_loop(payload)) or []
    reads = [reads_of(outer.segments, outer.lookup(), [files], outer.commands) for outer in around]
    bring_read([read for several in reads for read in several], AGAIN)


def _is_loop(payload: Any) -> bool:
    return getattr(payload, "kind", "") == "train"


def _folder() -> Path:
    """Return the folder for which the worker's working directory stands: there the program begins.

    Cells that go elsewhere by ``os.chdir`` run again there; ``%cd`` is left out of what runs there.
    """
    log = current_log()
    moved = log is not None and any("chdir(" in execution.source for execution in log.executions)
    return notebook_folder() if moved else Path.cwd()


def _called_back(payload: Any) -> list[Any]:
    callbacks = getattr(payload, "callbacks", ())
    return list(callbacks() if callable(callbacks) else callbacks)


def _running(around: Sequence[Around]) -> Iterator[tuple[Sequence[ast.stmt], Lookup, Mapping[str, Any]]]:
    """Yield what runs on after a call is made, with its names: the statement of the cell, and functions around it."""
    for outer in around:
        scope = next((node for node in reversed(outer.path) if isinstance(node, _SCOPES)), None)
        if scope is None or outer.frame.f_code.co_name.startswith("<"):
            statement = next((node for node in outer.path if isinstance(node, ast.stmt)), None)
            yield [] if statement is None else [statement], outer.lookup(), {}
        elif not isinstance(scope, ast.Lambda):
            yield scope.body, outer.lookup(), outer.frame.f_locals


def _seen_of(sources: Collection[str]) -> set[str]:
    """Return the files that cells of these texts were seen to read or write here."""
    log = current_log()
    seen: set[str] = set()
    for execution in log.executions if log is not None else ():
        if execution.source in sources and execution.paths is not None:
            seen.update(path for _, path in execution.paths.reads())
            seen.update(execution.paths.writes())
    return seen
