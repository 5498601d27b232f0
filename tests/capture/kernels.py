"""A kernel for the tests of capture, and a fresh process to prove that a captured program gives the same."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from jupyter_client.manager import KernelManager

from det_native.schema.manifests import Program
from det_native.schema.rest import CaptureRow

#: What stands in for fit(): captures the call and shows what it found. It lives outside the user's namespace.
TRAINING = """
import base64, json, os, re
from det_native.capture.call import capture_call
from det_native.capture.calls import note_call
from det_native.capture.log import current_log, running_execution
from det_native.errors import DetError

found = []


class Model:
    def __init__(self):
        self.layers = []

    def add(self, layer):
        self.layers.append(layer)

    def fit(self, *data, **options):
        return fit(*data, **options)


def fit(*data, local=False, **options):
    call = note_call("fit")
    if local:
        return None
    found.append({**captured(call, options), "given": [shown(one) for one in data]})
    return None


def shown(value):
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


def captured(call, options):
    for execution in current_log().executions:  # a busy machine makes no cell slow: `Kernel.slowly` does
        if execution.time.duration is not None and execution.time.duration < 40:
            execution.time.elsewhere = max(execution.time.elsewhere, execution.time.duration - 0.01)
    try:
        capture = capture_call("fit", framework="keras", call=call, **options)
    except DetError as error:
        return {"error": str(error), "kind": type(error).__name__}
    return {
        "program": capture.program.model_dump(mode="json"),
        "values": [
            [v.name, base64.b64encode(v.content).decode(), v.before_cell, v.cell, v.in_place]
            for v in capture.values
        ],
        "streams": [[base64.b64encode(one.content).decode(), one.before_cell] for one in capture.history.streams],
        "files": [[str(f.path), f.target, f.why, f.cell] for f in capture.files],
        "requirements": capture.requirements,
        "rows": [row.model_dump(mode="json") for row in capture.notes.rows],
        "warnings": capture.notes.warnings,
        "folders": folders_of(capture),
        "settled": [
            entry.model_dump(mode="json") for entry in capture.paths.settled({file.target for file in capture.files})
        ],
    }


def folders_of(capture):
    if not (capture.paths.folders or capture.files):
        return []
    from det_native.capture.bundle import assemble
    manifest = assemble(capture, context_dir=None, protocol=1).manifest
    return [folder.model_dump(mode="json") for folder in manifest.folders]


def init(config=None):
    return Context(note_call("init"), running_execution())


class Context:
    def __init__(self, record, execution):
        self.record, self.execution = record, execution

    def fit(self, *data):
        return fit(*data, init=self.record, init_executions=(self.execution,))


def show(path):
    tell(path, found.pop())


def tell(path, what):
    with open(path, "w") as file:
        json.dump(what, file)
"""

#: Starts the log as the import of `det_native` does; the cell that does it does not count.
INSTALL = (
    "import det_native.capture.log; det_native.capture.log.install()",
    "import det_native.capture.log as _l; _l._log.executions.clear(); del _l",
)

#: Forks for each job a process that has imported what a worker has, and runs the captured program in it up to its
#: recorded call, then prints names of its namespace.
REPLAY = """
import __future__, ast, asyncio, base64, hashlib, importlib, inspect, json, os, sys, traceback, types
import numpy  # once, and not in each fork
from pathlib import Path
from det_harness.program.made_folders import made_folders
from det_harness.program.settled_paths import SettledPaths
from det_harness.program.values import bind
from det_harness.trial import rng
from det_native.schema.manifests import FileEntry, FolderEntry, Program, SettledEntry, ValueEntry
from det_native.capture.call import capture_call  # as the stand-in for fit() does


class Stop(BaseException):
    pass


def replay(job):
    os.chdir(job["folder"])
    sys.path[:0] = [job["folder"]]
    sys.path.append(job["shared"])
    import det_stand_in

    program = Program.model_validate(job["program"])
    running, counts, given, passed = None, {}, [], []

    def fit(*data, **options):
        frame = sys._getframe(1)
        while not (frame.f_code.co_filename.startswith("<cell") or frame.f_code.co_filename.startswith(os.getcwd())):
            frame = frame.f_back
        line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        place = (frame.f_code.co_filename, line, column)
        counts[place] = counts.get(place, 0) + 1
        call = program.call
        name = f"<cell {call.cell}>" if call.cell is not None else os.path.join(os.getcwd(), call.file)
        last = running == len(program.cells) - 1
        if last and place == (name, call.line, call.column) and counts[place] == call.occurrence:
            given.extend(det_stand_in.shown(one) for one in data)
            raise Stop

    det_stand_in.fit = fit
    module = sys.modules["__main__"] = types.ModuleType("__main__")  # where pickle looks for classes
    namespace = vars(module)
    namespace.update({"display": print, "get_ipython": lambda: None})
    reached, futures = False, 0
    files = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in job["files"]}
    contents = {sha256: Path(path).read_bytes() for path, sha256 in files.items()}
    entries = [FileEntry(path=path, sha256=sha256, size=0) for path, sha256 in files.items()]
    settled = SettledPaths(
        [SettledEntry(**one) for one in job["settled"]], entries, contents.__getitem__, Path(job["folder"])
    )
    folders = made_folders([FolderEntry(**one) for one in job["folders"]], Path(job["folder"]))
    folders.__enter__()
    try:
        for running, cell in enumerate(program.cells):
            counts.clear()
            settled.before_cell(running)
            entries = [
                ValueEntry(name=name, sha256=content, size=0, before_cell=before, in_place=rest[1])
                for name, content, before, *rest in job["values"]
                if before == running
            ]
            bind(entries, namespace, base64.b64decode)
            for content, before in job["streams"]:
                if before == running:
                    rng.apply_encoded(base64.b64decode(content))
            for statement in ast.parse(cell.source).body:
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | futures
                code = compile(ast.Module([statement], []), f"<cell {running}>", "exec", flags, dont_inherit=True)
                futures |= code.co_flags & __future__.annotations.compiler_flag
                try:
                    outcome = eval(code, namespace)
                    if inspect.iscoroutine(outcome):
                        asyncio.run(outcome)
                except Exception as error:
                    if cell.optional_from is None or statement.end_lineno < cell.optional_from:
                        raise
                    passed.append(f"{cell.number}: {error!r}")
                    break
    except Stop:
        reached = True
    names = {e: repr(eval(e, namespace)) for e in job["show"]}
    return {"reached": reached, "given": given, "passed": passed, "names": names}


for line in sys.stdin:
    for library in ("pandas", "torch", "sklearn", "tensorflow"):  # once, and not in each of the processes that need it
        if library in line:
            importlib.import_module(library)
    child = os.fork()
    if not child:
        try:
            answer = replay(json.loads(line))
        except BaseException:
            answer = {"error": traceback.format_exc()}
        print("RESULT" + json.dumps(answer), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of what runs cells: the compiler of PyTorch has a place for its cache."""
    return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}


class Worker:
    """Runs captured programs, each in a process of its own that has seen nothing of the notebook."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", REPLAY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment_of(folder),
        )

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if "RESULT" in line:
                answer: dict[str, Any] = json.loads(line.split("RESULT", 1)[1])
                return answer
        raise AssertionError("the worker died")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)


@dataclass
class Found:
    """What capture found for one call, as it came out of the kernel."""

    error: str = ""
    kind: str = ""
    program: Program | None = None
    values: list[list[Any]] = field(default_factory=list)
    streams: list[list[Any]] = field(default_factory=list)
    files: list[list[str]] = field(default_factory=list)
    folders: list[dict[str, Any]] = field(default_factory=list)
    settled: list[dict[str, Any]] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)
    rows: list[CaptureRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)

    @property
    def cells(self) -> list[int | None]:
        """Numbers of the cells that are sent."""
        assert self.program is not None, self.error
        return [cell.number for cell in self.program.cells]

    def source_of(self, number: int) -> str:
        """Text of a cell that is sent."""
        assert self.program is not None, self.error
        return next(cell.source for cell in self.program.cells if cell.number == number)

    def needs_none_of(self, *numbers: int) -> bool:
        """Whether the call can be made without these cells: they stay behind, or an error of theirs is passed over."""
        assert self.program is not None, self.error
        needed = [one for one in self.program.cells if one.optional_from != 1 and not one.reason.startswith("settings")]
        return not {cell.number for cell in needed} & set(numbers)

    @property
    def value_names(self) -> set[str]:
        return {value[0] for value in self.values}

    def row(self, what: str) -> CaptureRow:
        """Return the one row about `what`."""
        [row] = [row for row in self.rows if row.what == what]
        return row


def _found(data: dict[str, Any]) -> Found:
    if "program" in data:
        data["program"] = Program.model_validate(data["program"])
        data["rows"] = [CaptureRow.model_validate(row) for row in data["rows"]]
    return Found(**data)


class Kernel(ABC):
    """Executes cells with what JupyterLab sends with them (cell id, tags)."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self.shared = shared

    @abstractmethod
    def close(self) -> None:
        """End it for good."""

    @abstractmethod
    def begin(self, folder: Path, imported: bool = True) -> None:
        """Start over as in a fresh kernel, in `folder`; `imported` tells whether det_native has been imported."""

    @abstractmethod
    def end(self) -> None:
        """End what `begin` has begun."""

    @abstractmethod
    def run(self, code: str, *, cell: str | None = None, tags: tuple[str, ...] = (), silent: bool = False) -> str:
        """Execute as a front end does; return what was printed, tracebacks included."""

    def cells(self, *sources: str) -> None:
        """Execute several cells in order."""
        for source in sources:
            self.run(source)

    def slowly(self, source: str, seconds: float = 45.0) -> None:
        """Execute a cell that counts as one that took so long."""
        self.run(source)
        aged = f"import det_native.capture.log as _l\n_l._log.executions[-1].time.duration = {seconds}\ndel _l"
        self.run(aged, silent=True)

    def found(self) -> Found:
        """Return what the last captured call found."""
        return _found(self._told("show", silent=True))

    def live(self, *expressions: str) -> dict[str, str]:
        """Return the repr of expressions in the kernel now."""
        values: dict[str, str] = self._told("tell", f"{{e: repr(eval(e)) for e in {list(expressions)!r}}}")
        return values

    def _told(self, function: str, *what: str, silent: bool = False) -> Any:
        """Return what a function writes to a file: what it prints may come late, among what libraries print."""
        file = self.shared / "told.json"
        arguments = ", ".join([repr(str(file)), *what])
        printed = self.run(f"# det-skip\nimport det_stand_in as _d; _d.{function}({arguments})", silent=silent)
        assert file.exists(), printed
        told = json.loads(file.read_text())
        file.unlink()
        return told


class RealKernel(Kernel):
    """A running IPython kernel."""

    def __init__(self, folder: Path, shared: Path) -> None:
        super().__init__(folder, shared)
        (shared / "det_stand_in.py").write_text(TRAINING)
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder), env=environment_of(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=200)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def begin(self, folder: Path, imported: bool = True) -> None:
        """Start over as in a fresh kernel: empty namespace, numbers from 1, modules of the user forgotten."""
        self.folder = folder
        self.run(
            f"import os, sys\nos.chdir({str(folder)!r})\n"
            "for _m in [m for m, v in sys.modules.items() if str(getattr(v, '__file__', '')).startswith("
            f"{str(folder.parent)!r}) and m != 'det_stand_in']: del sys.modules[_m]\n"
            "import importlib; importlib.invalidate_caches()\n"
            "import det_native.capture.log as _l\n"
            "_s = get_ipython(); _old = _l._log\n"
            "if _old is not None:\n"
            "    _s.events.unregister('pre_run_cell', _old._before); _s.events.unregister('post_run_cell', "
            "_old._after)\n"
            "_l._log = None\n"
            f"sys.path[:] = [p for p in sys.path if p not in ('', {str(self.shared)!r})] + ['', {str(self.shared)!r}]\n"
            "_s.history_manager.exceptions = {}\n"
            "_s.reset(new_session=True)\n"
            "_s.user_ns['__session__'] = None"
        )
        if imported:
            for code in INSTALL:
                self.run(code, silent=True)

    def end(self) -> None:
        """Nothing ends: what was executed is forgotten as the next begins."""

    def run(self, code: str, *, cell: str | None = None, tags: tuple[str, ...] = (), silent: bool = False) -> str:
        """Execute as a front end does; return what was printed, tracebacks included."""
        content = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        metadata = {"cellId": cell or uuid4().hex, "tags": list(tags), "deletedCells": []}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        printed = []
        while True:
            reply = self._next(self.client.get_iopub_msg)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if reply["msg_type"] == "stream":
                printed.append(reply["content"]["text"])
            elif reply["msg_type"] == "error":
                printed.append("\n".join(reply["content"]["traceback"]))
            elif reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle":
                break
        self._next(self.client.get_shell_msg)
        return "".join(printed)

    def _next(self, get: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        """Return the next message, however long the kernel takes: on a busy machine an import may take a minute."""
        while True:
            try:
                return get(timeout=5)
            except Empty:
                assert self.manager.is_alive(), "the kernel has died"


def replay(worker: Worker, found: Found, shared: Path, folder: Path, *show: str) -> dict[str, Any]:
    """Run a captured program in a fresh process, in a folder that holds the captured files only."""
    result = answer_of(worker, found, shared, folder, *show)
    assert "error" not in result, result["error"]
    assert result["reached"], "the program did not reach the recorded call"
    names: dict[str, Any] = result["names"]
    return names


def answer_of(worker: Worker, found: Found, shared: Path, folder: Path, *show: str) -> dict[str, Any]:
    """Return what became of a captured program in a fresh process."""
    assert found.program is not None, found.error
    folder.mkdir()
    for path, target, _, _ in found.files:
        destination = folder / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_bytes(Path(path).read_bytes())
    job = {
        "program": found.program.model_dump(mode="json"),
        "values": found.values,
        "streams": found.streams,
        "folder": str(folder),
        "folders": found.folders,
        "files": [target for _, target, _, _ in found.files],
        "settled": found.settled,
        "shared": str(shared),
        "show": list(show),
    }
    return worker.run(job)


def shown_of(name: str) -> str:
    """Return an expression that shows a value without its place in memory, so that two processes can be compared."""
    return f"__import__('re').sub(' at 0x[0-9a-f]+', '', repr({name}))"


def decoded(found: Found, name: str) -> bytes:
    """Return the bytes of a value that is sent."""
    [content] = [value[1] for value in found.values if value[0] == name]
    return base64.b64decode(content)
