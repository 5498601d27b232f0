"""``notebook-runs...`` and ``experiments/<n>/notebook/open``: notebooks that run as a whole, and what they executed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Literal, TypeVar

import nbformat
from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import ApiPath, to_os_path
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from tornado import web

from det_jupyter.copies import write_copy
from det_jupyter.handlers import DetHandler
from det_jupyter.statuses import UnavailableError
from det_native.client.addresses import named_master
from det_native.errors import ArgumentError, DetError, NotFoundError, Problem, ProblemsError, StorageError
from det_native.notebook_runs.folders import find_run, list_runs, with_others
from det_native.notebook_runs.keeping import executed_name
from det_native.notebook_runs.parameters import parameters_in, typed_value
from det_native.notebook_runs.reading import check_kernel
from det_native.notebook_runs.start import start_run, stop_run
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest
from det_native.schema.rest import ExperimentDetail
from det_native.schema.routes import (
    GET_EXPERIMENT,
    GET_NOTEBOOK,
    GET_RUN_NOTEBOOK,
    LIST_NOTEBOOK_RUNS,
    STOP_NOTEBOOK_RUN,
    Route,
)

#: Runs in an answer, the newest ones.
MOST_RUNS = 100

_RUNS = TypeAdapter(list[NotebookRun])

Body = TypeVar("Body", bound=BaseModel)


class DescribeBody(BaseModel):
    """Body of ``notebook-runs/describe``; `source` is the text of the cell tagged ``parameters``."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    kernel: str = Field(min_length=1)
    source: str = ""


class StartBody(BaseModel):
    """Body of ``POST notebook-runs``: a ``RunRequest`` with a path of this server, and parameters as they are typed."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    kernel: str = ""
    parameters: dict[str, str] = Field(default_factory=dict)
    place: Literal["", "cluster", "local"] = ""
    slots: int | None = Field(default=None, ge=1)
    test: bool = False
    beside: bool = False
    key: str = Field(default="", pattern=r"^[\x21-\x7e]{0,200}$")


class NotebookHandler(DetHandler):
    """Knows the notebooks of this server; what goes wrong is one sentence."""

    async def tell(self, work: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Answer with what `work` returns in a thread, while the server goes on; `then` sees it before, in this one."""
        try:
            found = await asyncio.to_thread(work)
        except ProblemsError as error:
            self.refuse(HTTPStatus.BAD_REQUEST, error.headline, error.problems)
        except DetError as error:
            self.refuse(_status_of(error), str(error))
        else:
            if then is not None:
                then(found)
            self.set_header("Cache-Control", "no-store")
            self.answer(found)

    def refuse(self, status: HTTPStatus, error: str, problems: tuple[Problem, ...] | list[Problem] = ()) -> None:
        """Answer with what is wrong."""
        listed = [{"where": found.where, "what": found.what, "remedy": found.remedy} for found in problems]
        self.answer({"error": error, "problems": listed}, status)

    def read(self, model: type[Body]) -> Body:
        """Return the body of this request.

        Raises
        ------
        ProblemsError
            If it is of another form.
        """
        try:
            return model.model_validate_json(self.request.body)
        except ValidationError as error:
            problems = [Problem(".".join(map(str, found["loc"])), found["msg"]) for found in error.errors()]
            raise ProblemsError("The request is not of the form that this version understands.", problems) from error

    @property
    def root(self) -> Path:
        """The folder that this server shows."""
        server = self.serverapp
        assert server is not None, "a handler has a server"
        return Path(os.path.abspath(getattr(self.contents_manager, "root_dir", None) or server.root_dir))

    @property
    def specs(self) -> Any:
        """The server's kernelspecs; None, for those of this machine, where the server asks another one for them."""
        manager = self.kernel_spec_manager
        return None if iscoroutinefunction(manager.get_kernel_spec) else manager

    def notebook(self, path: str) -> Path:
        """Return where a notebook of this server lies; the front end's name of a drive is left out.

        Names of folders and files may have a colon too.
        """
        root = str(self.root)
        found = Path(os.path.abspath(to_os_path(ApiPath(path), root)))
        if ":" in path.split("/")[0] and not found.exists():
            found = Path(os.path.abspath(to_os_path(ApiPath(path.partition(":")[2]), root)))
        if not found.is_relative_to(root) or not found.parent.is_dir():
            raise ArgumentError(f"{path} lies in no folder of this Jupyter server: save the notebook there first.")
        parts = found.relative_to(root).parts
        if not getattr(self.contents_manager, "allow_hidden", False) and any(part.startswith(".") for part in parts):
            raise ArgumentError(f"{path} is hidden, and this Jupyter server shows no hidden files.")
        return found

    def open_copy(self, content: bytes, notebook: Path | None, name: str, seen: Path | None = None) -> dict[str, Any]:
        """Write an executed notebook where the front end can open it; return its path there.

        Parameters
        ----------
        notebook : Path or None
            Beside which it is wanted.
        seen : Path, optional
            Keeps what was written before, which may be written over.
        """
        root = self.root
        beside = None if notebook is None else _inside(root, notebook.parent)
        folders = [root] if beside is None or beside == root else [beside, root]
        written = write_copy(content, name, folders, seen)
        return {"path": written.relative_to(root).as_posix()}

    def trust(self, opened: dict[str, Any]) -> None:
        """Have the outputs shown as those of a notebook that ran here; the server's signatures are of its thread."""
        with suppress(Exception):
            self.contents_manager.notary.sign(nbformat.read(self.root / opened["path"], as_version=4))

    async def ask(self, route: Route[None, Any], **parts: int) -> bytes | None:
        """Return what the master answers; None where it refuses.

        Raises
        ------
        UnavailableError
            If there is no master to answer.
        """
        async with self.master.open(route.method, route.address(**parts)) as answer:
            return await answer.aread() if answer.is_success else None

    async def runs_there(self) -> list[NotebookRun]:
        """Return the runs on the master's machine; the list of experiments says what is wrong with a master."""
        with suppress(UnavailableError, ValidationError):
            return _RUNS.validate_json(await self.ask(LIST_NOTEBOOK_RUNS) or b"[]")
        return []


class NotebookRunsHandler(NotebookHandler):
    """The runs of this machine, and of that of the master."""

    # A page that only looks does not keep an idle server alive.
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the runs, newest first; with `path`, those of a notebook here."""
        path = self.get_query_argument("path", "")
        there = [] if path or named_master() is None else await self.runs_there()

        def runs() -> list[Any]:
            wanted = str(self.notebook(path)) if path else None
            here = list_runs(Home.default(), wanted)
            return [run.model_dump(mode="json") for run in with_others(here, there)[:MOST_RUNS]]

        await self.tell(runs)

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin a run and answer with it; requests with one key begin one."""

        def start() -> NotebookRun:
            body = self.read(StartBody)
            values = {name: typed_value(text) for name, text in body.parameters.items()}
            given = body.model_dump() | {"path": str(self.notebook(body.path)), "parameters": values}
            given["spec"] = check_kernel(body.kernel, self.specs) if body.kernel else None
            return start_run(RunRequest(**given), Home.default())

        await self.tell(start)


class DescribeHandler(NotebookHandler):
    """What the dialog asks before anything runs."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer with the parameters of a notebook, and the run of it that goes on; 400 if its kernel cannot run."""

        def describe() -> dict[str, Any]:
            body = self.read(DescribeBody)
            path = str(self.notebook(body.path))
            check_kernel(body.kernel, self.specs)
            running = [run for run in list_runs(Home.default(), path) if not run.is_ended]
            return {
                "parameters": parameters_in(body.source),
                "running": running[0].model_dump(mode="json") if running else None,
            }

        await self.tell(describe)


class NotebookRunHandler(NotebookHandler):
    """A run, here or on the master's machine."""

    @web.authenticated
    @authorized
    async def post(self, there: str | None, number: str, action: Literal["stop", "open"]) -> None:
        """Stop it and answer with how it stands, or answer where its executed notebook can be opened."""
        if there:
            await self._post_there(int(number), action)
        elif action == "stop":
            await self.tell(lambda: stop_run(Home.default(), int(number)))
        else:
            await self.tell(lambda: self._open(int(number)), self.trust)

    async def _post_there(self, number: int, action: Literal["stop", "open"]) -> None:
        run = next((run for run in await self.runs_there() if run.id == number), None)
        content = None
        with suppress(UnavailableError):
            content = await self.ask(STOP_NOTEBOOK_RUN if action == "stop" else GET_RUN_NOTEBOOK, number=number)
        if run is None or content is None:
            self.refuse(HTTPStatus.NOT_FOUND, f"The master has no notebook run {number}, or does not answer.")
        elif action == "stop":
            self.answer(NotebookRun.model_validate_json(content))
        else:
            await self.tell(lambda: self.open_copy(content, None, executed_name(run)))

    def _open(self, number: int) -> dict[str, Any]:
        folder = find_run(Home.default(), number)
        run = folder.run()
        return self.open_copy(folder.content(), Path(run.path), executed_name(run), folder.path / "opened.txt")


class ExperimentNotebookHandler(NotebookHandler):
    """The executed notebook of an experiment."""

    @web.authenticated
    @authorized
    async def post(self, number: str) -> None:
        """Answer where it can be opened; 404 where none was kept."""
        try:
            detail = await self.ask(GET_EXPERIMENT, experiment_id=int(number))
            if detail is None:
                self.refuse(HTTPStatus.NOT_FOUND, f"There is no experiment {number} on this master.")
                return
            experiment = ExperimentDetail.model_validate_json(detail)
            content = await self.ask(GET_NOTEBOOK, experiment_id=int(number)) if experiment.notebook else None
        except UnavailableError as error:
            self.answer(error.status, HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if content is None:
            self.refuse(HTTPStatus.NOT_FOUND, f"No executed notebook was kept of experiment {number}.")
            return
        own = await asyncio.to_thread(_own_run, number, content)
        if own is not None:
            await self.tell(lambda: self.open_copy(content, Path(own.path), executed_name(own)), self.trust)
            return
        name = f"{_file_name(experiment.name)} (experiment {number}).ipynb"
        await self.tell(lambda: self.open_copy(content, None, name))


def _status_of(error: DetError) -> HTTPStatus:
    if isinstance(error, NotFoundError):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, ArgumentError):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INSUFFICIENT_STORAGE if isinstance(error, StorageError) else HTTPStatus.INTERNAL_SERVER_ERROR


def _inside(root: Path, folder: Path) -> Path | None:
    """Return a folder as a path below the root; None where it lies elsewhere, or is hidden there."""
    below = folder if folder.is_relative_to(root) else root / os.path.relpath(folder.resolve(), root.resolve())
    parts = below.relative_to(root).parts
    return None if any(part.startswith(".") for part in parts) else below


def _own_run(experiment: str, content: bytes) -> NotebookRun | None:
    """Return the run on this machine that has executed a notebook; experiments of other masters have numbers, too."""
    for run in list_runs(Home.default()):
        with suppress(OSError):
            if experiment in run.experiments and Path(run.executed).read_bytes() == content:
                return run
    return None


def _file_name(name: str) -> str:
    """Return a name without what separates folders."""
    return (
        "".join("_" if letter in '/\\:"' or ord(letter) < 32 else letter for letter in name).strip(". ") or "notebook"
    )
