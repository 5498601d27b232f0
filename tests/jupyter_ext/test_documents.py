"""Notebooks through their kernelspec's own interpreter: real processes, and real ones that go wrong."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from det_jupyter import programs
from det_jupyter.documents import DocumentRequest, run_document
from det_jupyter.kernels import Interpreter
from jupyter_parts import PATIENCE, Jupyter, MasterProcess

from det_native import __version__
from det_native.schema.downloads import attachment
from det_native.schema.processes import start_mark, wait_until_gone

pytestmark = pytest.mark.slow

SOURCES = [
    "import torch\nimport det_native as det\nfrom det_native.pytorch import DataLoader, PyTorchTrial",
    """
class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def data(self):
        x = torch.linspace(-1, 1, 64).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=8)

    build_training_data_loader = build_validation_data_loader = data

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}
""",
    """
config = {
    "name": "line",
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 16}},
    "hyperparameters": {"global_batch_size": 8},
}
det.experimental.create(Line, config)
""",
]


def request(*sources: str, **fields: Any) -> dict[str, Any]:
    """Return the body of a request about a notebook with these cells, all of which have run."""
    cells = [
        {"id": f"cell-{number}", "source": source, "execution_count": number, "executed": source, "tags": []}
        for number, source in enumerate(sources, start=1)
    ]
    return {"path": "line.ipynb", "kernelspec": "python3", "cells": cells, **fields}


@pytest.fixture
def install_kernel(jp_kernel_dir: Path, tmp_path: Path) -> Any:
    """Gives a function that installs a kernelspec whose interpreter is a shell script, or any other command."""

    def install(name: str, script: str | None = None, **fields: Any) -> str:
        program = tmp_path / name / "python"
        if script is not None:
            program.parent.mkdir()
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        folder = jp_kernel_dir / name
        folder.mkdir(parents=True)
        spec = {"argv": [str(program), "-m", "ipykernel_launcher"], "display_name": name, "language": "python"}
        (folder / "kernel.json").write_text(json.dumps(spec | fields))
        return name

    return install


def problem(answer: httpx.Response, status: int = 400) -> dict[str, str]:
    """Return the one problem of a refusal."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["error"]
    (found,) = body["problems"]
    assert found.keys() == {"where", "what", "remedy"}
    return dict(found)


@pytest.mark.long
async def test_a_notebook_is_submitted_and_trained_and_its_checkpoint_comes_back_whole(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    body = request(*SOURCES, idempotency_key=f"key-{len((await jupyter.get('master/experiments')).json())}")
    submitted = await jupyter.post("document/submit", json=body)
    assert submitted.status_code == 200, submitted.text
    number = submitted.json()["experiment"]["id"]
    assert await _end_of(jupyter, number) == "COMPLETED"
    checkpoint = (await jupyter.get(f"master/experiments/{number}/checkpoints")).json()[-1]
    for file in checkpoint["manifest"]["files"]:
        answer = await jupyter.get(f"master/checkpoints/{checkpoint['uuid']}/files/{file['path']}")
        assert answer.status_code == 200
        assert answer.headers["Content-Disposition"] == attachment(file["path"])
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]


async def _end_of(jupyter: Jupyter, number: int) -> str:
    """Follow an experiment to its end; return its state."""
    async with jupyter.events(experiment_id=number) as events:
        while True:
            (event,) = await events.take(1)
            if event["type"] == "experiment" and event["data"]["state"] in ("COMPLETED", "ERROR", "CANCELED"):
                return str(event["data"]["state"])


async def test_what_is_wrong_with_the_notebook_passes_through(jupyter: Jupyter) -> None:
    answer = await jupyter.post("document/inspect", json=request("x = 1", "y = x + 1"))
    assert answer.status_code == 400
    body = answer.json()
    assert "create" in json.dumps(body)
    assert "fit" in json.dumps(body)


async def test_the_interpreter_is_that_of_the_kernelspec_in_the_notebooks_folder(
    jupyter: Jupyter, install_kernel: Any
) -> None:
    script = f"""exec {sys.executable} -c '
import json, os, sys
given = json.load(sys.stdin)
print(json.dumps(dict(ok=True, given=given, folder=os.getcwd(), extra=os.environ["EXTRA"], home=os.environ["DET_HOME"],
                      arguments=sys.argv[1:])))
' "$@" """
    install_kernel("own", script, env={"EXTRA": "${DET_HOME}/extra"})
    folder = jupyter.root / "deep" / "er"
    folder.mkdir(parents=True)
    body = request("x = 'ä'", path="deep/er/line.ipynb", kernelspec="own", slots=1)
    for path in (body["path"], f"RTC:{body['path']}"):
        answer = await jupyter.post("document/inspect", json=body | {"path": path})
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert told["folder"] == str(folder)
        assert told["home"] == os.environ["DET_HOME"]
        assert told["extra"] == f"{os.environ['DET_HOME']}/extra"
        assert told["arguments"] == ["-P", "-m", "det_native.experimental.document", "inspect"]
        assert told["given"]["path"] == str(folder / "line.ipynb")
        assert told["given"]["cells"] == body["cells"]
        assert told["given"]["slots"] == 1
        assert told["given"]["place"] == "cluster"


async def test_a_colon_in_the_name_of_a_folder_is_no_name_of_a_drive(jupyter: Jupyter, install_kernel: Any) -> None:
    install_kernel("own", """exec python3 -c 'import json, os; print(json.dumps(dict(ok=True, folder=os.getcwd())))'""")
    folder = jupyter.root / "lr: 0.1"
    folder.mkdir()
    (folder / "line.ipynb").write_text("{}")
    body = request("x", path="lr: 0.1/line.ipynb", kernelspec="own")
    answer = await jupyter.post("document/inspect", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["folder"] == str(folder)


async def test_a_kernel_that_is_not_there_is_named_with_those_that_would_do(
    jupyter: Jupyter, install_kernel: Any
) -> None:
    install_kernel("julia", "exit 1", language="julia")
    install_kernel("by-shell", argv=["/bin/sh", "-c", "python"])
    for name in ("gone", "no/name"):
        found = problem(await jupyter.post("document/inspect", json=request("x", kernelspec=name)))
        assert name in found["where"]
        assert found["remedy"] == "Choose one for the notebook: Python 3 (ipykernel)."


async def test_a_kernel_of_another_language_is_refused(jupyter: Jupyter) -> None:
    found = problem(await jupyter.post("document/inspect", json=request("x", kernelspec="echo")))
    assert "Python" in found["what"]


async def test_an_interpreter_that_is_gone_is_named(jupyter: Jupyter, install_kernel: Any) -> None:
    install_kernel("removed")
    found = problem(await jupyter.post("document/submit", json=request("x", kernelspec="removed")))
    assert "removed/python" in found["what"]


async def test_a_kernel_without_det_native_is_told_what_to_install(jupyter: Jupyter, install_kernel: Any) -> None:
    install_kernel("bare", f'exec {sys.executable} -S -I "$@"')
    found = problem(await jupyter.post("document/inspect", json=request("x", kernelspec="bare")))
    assert f"bare/python -m pip install det-native=={__version__}" in found["remedy"]


async def test_an_older_python_is_told_so(jupyter: Jupyter, install_kernel: Any) -> None:
    install_kernel("old", "echo 'Unknown option: -P' >&2; exit 2")
    found = problem(await jupyter.post("document/inspect", json=request("x", kernelspec="old")))
    assert "3.11" in found["what"]


async def test_a_process_that_breaks_shows_its_last_words(jupyter: Jupyter, install_kernel: Any) -> None:
    install_kernel("broken", "echo this is no JSON; echo out of memory >&2; exit 9")
    found = problem(await jupyter.post("document/inspect", json=request("x", kernelspec="broken")))
    assert "status 9" in found["what"]
    assert "out of memory" in found["what"]


@pytest.mark.parametrize("extension_settings", [{"document_seconds": 0.5}], indirect=True)
async def test_a_process_that_takes_too_long_is_ended_with_what_it_started(
    jupyter: Jupyter, install_kernel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, known = programs._start, asyncio.Event()

    async def start_until_known(*given: Any) -> asyncio.subprocess.Process:
        process = await start(*given)
        await known.wait()  # it is ended after its time, but not before it has told of itself, however late that is
        return process

    monkeypatch.setattr(programs, "_start", start_until_known)
    processes = await _hanging(jupyter, install_kernel, tmp_path, known)
    await _are_gone(processes)


async def test_a_process_that_nobody_waits_for_is_ended(jupyter: Jupyter, install_kernel: Any, tmp_path: Path) -> None:
    processes = await _hanging(jupyter, install_kernel, tmp_path)
    await _are_gone(processes)


async def test_one_that_is_left_while_it_starts_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    told, program = tmp_path / "told", tmp_path / "python"
    os.mkfifo(told)
    program.write_text(f"#!/bin/sh\nsleep 600 & echo $$ $! > {told}; wait")
    program.chmod(0o755)
    asked = DocumentRequest.model_validate(request("x"))
    interpreter = Interpreter("hanging", str(program), {})
    here = tmp_path / "x.ipynb"
    running = asyncio.create_task(run_document("inspect", asked, interpreter, here, seconds=60))
    before = set(psutil.Process().children())
    while not set(psutil.Process().children()) - before:
        await asyncio.sleep(0)
    numbers = told.read_text()  # the loop stands still: nobody here knows of the process yet
    running.cancel()
    processes = {int(number): start_mark(int(number)) or "" for number in numbers.split()}
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(processes) == 2
    await _are_gone(processes)


async def _hanging(
    jupyter: Jupyter, install_kernel: Any, folder: Path, known: asyncio.Event | None = None
) -> dict[int, str]:
    """Have a process hang that does not listen to SIGTERM, and one that it started; return both.

    The request is left once they are known, or with `known`, which is then set, waited for until its time is over.
    """
    told = folder / "told"
    os.mkfifo(told)
    install_kernel("hanging", f"trap '' TERM; sleep 600 & echo $$ $! > {told}; wait; wait")
    asked = asyncio.create_task(jupyter.post("document/submit", json=request("x", kernelspec="hanging")))
    numbers = await asyncio.to_thread(told.read_text)
    marks = {int(number): start_mark(int(number)) for number in numbers.split()}
    processes = {pid: mark for pid, mark in marks.items() if mark is not None}
    assert len(processes) == 2
    if known is None:
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    else:
        known.set()
        answer = await asked
        assert answer.status_code == 504
        assert "document_seconds" in answer.json()["error"]
    return processes


async def _are_gone(processes: dict[int, str]) -> None:
    """Wait by looking only: psutil would reap the child, whose end the server waits for."""
    for pid, mark in processes.items():
        assert await asyncio.to_thread(wait_until_gone, pid, mark, PATIENCE), pid


@pytest.mark.parametrize("path", ["../outside.ipynb", "a/../../outside.ipynb", "missing/folder/line.ipynb"])
async def test_a_notebook_outside_of_the_servers_folder_is_refused(jupyter: Jupyter, path: str) -> None:
    found = problem(await jupyter.post("document/inspect", json=request("x", path=path)))
    assert found["where"] == path


async def test_a_body_of_another_form_is_refused_with_the_field(jupyter: Jupyter) -> None:
    for changes in ({"cells": None}, {"slots": 0}, {"idempotency_key": ""}, {"place": "moon"}, {"surprise": 1}):
        found = problem(await jupyter.post("document/inspect", json=request("x") | changes))
        assert found["where"] == next(iter(changes))
    answer = await jupyter.post("document/inspect", content=b"{")
    assert answer.status_code == 400
    assert answer.json()["problems"]
