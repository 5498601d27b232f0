"""Runs of notebooks as the front end asks for them: real servers, real processes and kernels."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import nbformat
import psutil
import pytest
from click.testing import CliRunner
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_parts import PATIENCE, Jupyter, MasterProcess, until
from jupyter_server.serverapp import ServerApp

from det_native.client.command import cli
from det_native.notebook_runs.folders import RunFolder, find_run, runs_folder
from det_native.notebook_runs.start import start_run
from det_native.schema import routes
from det_native.schema.home import Home
from det_native.schema.notebook_runs import RunRequest
from det_native.schema.processes import start_mark, wait_until_gone

pytestmark = pytest.mark.slow

TAGGED = {"tags": ["parameters"]}


def write(path: Path, *sources: str, tagged: str = "") -> Path:
    """Write a notebook of code cells, the first of which is tagged `parameters` if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [nbformat.v4.new_code_cell(tagged, metadata=TAGGED)] if tagged else []
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def outputs(path: Path) -> str:
    """Return what the cells of a notebook have printed."""
    notebook = nbformat.read(path, as_version=4)
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)


async def end_of(jupyter: Jupyter, number: int) -> dict[str, Any]:
    """Return a run once it has ended."""

    async def ask() -> dict[str, Any]:
        runs: list[dict[str, Any]] = (await jupyter.get("notebook-runs")).json()
        return next(run for run in runs if run["id"] == number)

    return await until(ask, lambda run: run["state"] not in ("STARTING", "RUNNING"))


async def begin(jupyter: Jupyter, **body: Any) -> dict[str, Any]:
    """Begin a run."""
    answer = await jupyter.post("notebook-runs", json=body)
    assert answer.status_code == 200, answer.text
    run: dict[str, Any] = answer.json()
    return run


def sentence(answer: httpx.Response, status: int = 400) -> str:
    """Return what a refusal says."""
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error", "problems"}
    return str(answer.json()["error"])


async def is_trusted(jupyter: Jupyter, path: str) -> bool:
    """Return whether the front end shows all outputs of a notebook."""
    answer = await jupyter.client.get(f"{jupyter.base}api/contents/{path}")
    return all(cell["metadata"]["trusted"] for cell in answer.json()["content"]["cells"])


async def test_a_notebook_runs_whole_with_what_was_typed_and_is_opened_beside_it(jupyter: Jupyter) -> None:
    path = write(jupyter.root / "deep" / "train.ipynb", "print(rate * 2, size)", tagged="rate = 0.1\nsize = (2, 3)")
    typed = {"rate": "0.5", "size": "(4, 5)"}
    body = {"path": "deep/train.ipynb", "kernel": "python3", "parameters": typed, "key": "once"}
    begun = await begin(jupyter, **body)
    assert (await begin(jupyter, **body))["id"] == begun["id"], "a repeat begins no second run"
    run = await end_of(jupyter, begun["id"])
    assert (run["state"], run["cell"], run["cells"], run["error"]) == ("COMPLETED", 3, 3, "")
    assert (await jupyter.get("notebook-runs", params={"path": "deep/train.ipynb"})).json() == [run]
    assert (await jupyter.get("notebook-runs", params={"path": "deep/other.ipynb"})).json() == []

    opened = (await jupyter.post(f"notebook-runs/{run['id']}/open")).json()
    assert opened == {"path": f"deep/train (run {run['id']}).ipynb"}
    assert outputs(jupyter.root / opened["path"]) == "1.0 (4, 5)\n"
    assert await is_trusted(jupyter, opened["path"]), "its outputs are shown as those of the notebook"
    assert outputs(path) == "", "the notebook itself is as it was"


async def test_what_a_user_has_changed_in_a_copy_stays(jupyter: Jupyter) -> None:
    write(jupyter.root / "a.ipynb", "print(1)")
    run = await end_of(jupyter, (await begin(jupyter, path="a.ipynb"))["id"])
    first, again = [(await jupyter.post(f"notebook-runs/{run['id']}/open")).json()["path"] for _ in range(2)]
    assert first == again
    (jupyter.root / first).write_text("mine")
    other = (await jupyter.post(f"notebook-runs/{run['id']}/open")).json()["path"]
    assert other == first.replace(".ipynb", " 2.ipynb")
    assert (jupyter.root / first).read_text() == "mine"
    folder = find_run(Home.default(), run["id"])
    grown = folder.executed.read_text().replace("1", "2")
    folder.executed.write_text(grown)
    assert (await jupyter.post(f"notebook-runs/{run['id']}/open")).json()["path"] == other, "our own copy is renewed"
    assert (jupyter.root / other).read_text() == grown


async def test_a_notebook_elsewhere_is_opened_in_the_servers_root(jupyter: Jupyter, tmp_path: Path) -> None:
    path = write(tmp_path / "elsewhere" / "b.ipynb", "print(1)")
    write(jupyter.root / "b.ipynb", "print(1)")
    run = await end_of(jupyter, (await begin(jupyter, path="b.ipynb"))["id"])
    folder = find_run(Home.default(), run["id"])
    folder.write(folder.run().model_copy(update={"path": str(path)}))
    opened = (await jupyter.post(f"notebook-runs/{run['id']}/open")).json()["path"]
    assert opened == f"b (run {run['id']}).ipynb"
    assert (jupyter.root / opened).is_file()


async def test_a_run_is_stopped_and_says_so(jupyter: Jupyter) -> None:
    write(jupyter.root / "long.ipynb", "print('begun')", "import time; time.sleep(3600)")
    number = (await begin(jupyter, path="long.ipynb"))["id"]

    async def ask() -> dict[str, Any]:
        answer = await jupyter.post("notebook-runs/describe", json={"path": "long.ipynb", "kernel": "python3"})
        running: dict[str, Any] = answer.json()["running"]
        return running

    running = await until(ask, lambda run: run["cell"] == 2)
    assert (running["id"], running["cells"]) == (number, 2)
    stopped = (await jupyter.post(f"notebook-runs/{number}/stop")).json()
    assert (stopped["state"], stopped["error"]) == ("STOPPED", "It was stopped.")
    assert await ask() is None
    opened = (await jupyter.post(f"notebook-runs/{number}/open")).json()["path"]
    assert outputs(jupyter.root / opened) == "begun\n"


async def test_a_run_whose_process_is_killed_has_failed(jupyter: Jupyter) -> None:
    write(jupyter.root / "killed.ipynb", "import time; time.sleep(3600)")
    number = (await begin(jupyter, path="killed.ipynb"))["id"]
    pid = find_run(Home.default(), number).process()
    assert pid is not None
    children = psutil.Process(pid).children(recursive=True)
    mark = start_mark(pid) or ""
    os.killpg(pid, signal.SIGKILL)
    assert await asyncio.to_thread(wait_until_gone, pid, mark, PATIENCE)
    for child in children:
        child.kill()
    run = await end_of(jupyter, number)
    assert run["state"] == "FAILED"
    assert run["error"].startswith("Its process ended without a word")


async def test_the_dialog_is_told_the_parameters_of_the_page(jupyter: Jupyter) -> None:
    source = "rate: float = 1e-3\nlayers, name = [2, 3], 'a'\nname = 'adam'\nprint(rate)"
    body = {"path": "new.ipynb", "kernel": "python3", "source": source}
    found = (await jupyter.post("notebook-runs/describe", json=body)).json()
    assert found == {"parameters": {"rate": "0.001", "name": "'adam'"}, "running": None}
    broken = (await jupyter.post("notebook-runs/describe", json=body | {"source": "rate ="})).json()
    assert broken["parameters"] == {}


async def test_what_cannot_run_is_one_sentence_and_begins_nothing(jupyter: Jupyter) -> None:
    write(jupyter.root / "good.ipynb", "1")
    write(jupyter.root / "empty.ipynb")
    (jupyter.root / "broken.ipynb").write_text("{")
    wrong = {
        "is not a notebook of format 4": {"path": "broken.ipynb"},
        "has no code to run": {"path": "empty.ipynb"},
        "cannot be read: No such file": {"path": "missing.ipynb"},
        "'gone' is not installed on this machine: use one of": {"path": "good.ipynb", "kernel": "gone"},
        "runs echo": {"path": "good.ipynb", "kernel": "echo"},
        "has no cell tagged 'parameters'": {"path": "good.ipynb", "parameters": {"rate": "1"}},
    }
    for words, body in wrong.items():
        assert words in sentence(await jupyter.post("notebook-runs", json=body))
    kernel = {"path": "good.ipynb", "kernel": "gone"}
    assert "'gone' is not installed" in sentence(await jupyter.post("notebook-runs/describe", json=kernel))
    assert (await jupyter.get("notebook-runs")).json() == []
    assert "run 7" in sentence(await jupyter.post("notebook-runs/7/open"), 404)
    assert "run 7" in sentence(await jupyter.post("notebook-runs/7/stop"), 404)


class ServerSpecs(KernelSpecManager):
    """Kernelspecs that only the server has, such as those of conda environments."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        if kernel_name != "conda-env-py":
            return super().get_kernel_spec(kernel_name)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, language="python", display_name="conda", env={"FROM_SPEC": "1"})


async def test_a_kernel_that_only_the_server_knows_runs_a_notebook(jupyter: Jupyter, jp_serverapp: ServerApp) -> None:
    jp_serverapp.web_app.settings["kernel_spec_manager"] = ServerSpecs()
    write(jupyter.root / "conda.ipynb", "import os; print(os.environ['FROM_SPEC'])")
    body = {"path": "conda.ipynb", "kernel": "conda-env-py"}
    assert (await jupyter.post("notebook-runs/describe", json=body)).status_code == 200
    run = await end_of(jupyter, (await begin(jupyter, **body))["id"])
    assert (run["state"], run["error"], run["kernel"]) == ("COMPLETED", "", "conda-env-py")
    assert outputs(Path(run["executed"])) == "1\n"


async def test_a_run_on_the_machine_of_the_master_is_listed_opened_and_stopped(
    jupyter: Jupyter, shared_master: MasterProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(jupyter.root / "here.ipynb", "print('here')")
    here = await end_of(jupyter, (await begin(jupyter, path="here.ipynb"))["id"])
    path = write(tmp_path / "there" / "far.ipynb", "print('there')", "import time; time.sleep(3600)")
    there = await asyncio.to_thread(start_run, RunRequest(path=str(path)), shared_master.home)
    monkeypatch.setenv("DET_MASTER", shared_master.runtime.url)
    monkeypatch.setenv("DET_TOKEN", shared_master.token)

    async def ask() -> dict[str, Any]:
        runs: list[dict[str, Any]] = (await jupyter.get("notebook-runs")).json()
        assert {(run["id"], run["machine"]) for run in runs} >= {(here["id"], ""), (there.id, platform.node())}
        return next(run for run in runs if run["machine"])

    assert (await until(ask, lambda run: run["cell"] == 2))["path"] == str(path)
    listed = await asyncio.to_thread(CliRunner().invoke, cli, ["notebook", "list", "--json"])
    assert {run["machine"] for run in json.loads(listed.output)} == {"", platform.node()}
    stopped = (await jupyter.post(f"notebook-runs/there/{there.id}/stop")).json()
    assert stopped["state"] == "STOPPED"
    opened = (await jupyter.post(f"notebook-runs/there/{there.id}/open")).json()
    assert opened == {"path": f"far (run {there.id}).ipynb"}
    assert outputs(jupyter.root / opened["path"]) == "there\n"
    sentence(await jupyter.post("notebook-runs/there/99/stop"), 404)
    saved = tmp_path / "saved.ipynb"
    words = ["notebook", "save", str(there.id), str(saved), "--there"]
    assert (await asyncio.to_thread(CliRunner().invoke, cli, words)).exit_code == 0
    assert outputs(saved) == "there\n"


async def test_a_home_that_cannot_be_written_is_said(jupyter: Jupyter) -> None:
    write(jupyter.root / "good.ipynb", "1")
    home = Home.default()
    home.path.mkdir(parents=True, exist_ok=True)
    runs_folder(home).write_text("a file in its place")
    assert "cannot be written" in sentence(await jupyter.post("notebook-runs", json={"path": "good.ipynb"}), 507)


@pytest.mark.parametrize("path", ["../outside.ipynb", "a/../../outside.ipynb", "missing/folder/line.ipynb"])
async def test_a_notebook_outside_of_the_servers_folder_is_refused(jupyter: Jupyter, path: str) -> None:
    body = {"path": path, "kernel": "python3"}
    for route in ("notebook-runs", "notebook-runs/describe"):
        assert path in sentence(await jupyter.post(route, json=body))
    assert path in sentence(await jupyter.get("notebook-runs", params={"path": path}))


async def test_a_colon_in_the_name_of_a_folder_is_no_name_of_a_drive(jupyter: Jupyter) -> None:
    write(jupyter.root / "lr: 0.1" / "line.ipynb", "1")
    write(jupyter.root / "plain.ipynb", "1")
    for path in ("lr: 0.1/line.ipynb", "RTC:plain.ipynb"):
        run = await end_of(jupyter, (await begin(jupyter, path=path))["id"])
        assert run["state"] == "COMPLETED"
        assert run["path"] == str(jupyter.root / path.removeprefix("RTC:"))


async def test_a_body_of_another_form_is_refused_with_the_field(jupyter: Jupyter) -> None:
    for changes in ({"slots": 0}, {"key": "a b"}, {"place": "moon"}, {"parameters": {"a": 1}}, {"surprise": 1}):
        answer = await jupyter.post("notebook-runs", json={"path": "a.ipynb"} | changes)
        sentence(answer)
        assert answer.json()["problems"][0]["where"].startswith(next(iter(changes)))
    answer = await jupyter.post("notebook-runs", content=b"{")
    sentence(answer)


async def test_the_executed_notebook_of_an_experiment_is_opened_and_downloaded(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    number = master.experiment()
    assert f"experiment {number}" in sentence(await jupyter.post(f"experiments/{number}/notebook/open"), 404)
    assert "no experiment 999" in sentence(await jupyter.post("experiments/999/notebook/open"), 404)
    write(jupyter.root / "deep" / "mine.ipynb", "print(1)")
    run = await end_of(jupyter, (await begin(jupyter, path="deep/mine.ipynb"))["id"])
    folder = RunFolder(Path(run["executed"]).parent)
    folder.experiments.write_text(f"{number}\n")
    executed = folder.executed.read_bytes()
    session = master.session
    session.call(routes.KEEP_NOTEBOOK, executed, experiment_id=number)
    name = session.call(routes.GET_EXPERIMENT, experiment_id=number).name

    opened = (await jupyter.post(f"experiments/{number}/notebook/open")).json()["path"]
    assert opened == f"deep/mine (experiment {number}).ipynb"
    assert await is_trusted(jupyter, opened)
    other = executed.replace(b"1\\n", b"2\\n")
    assert other != executed
    session.call(routes.KEEP_NOTEBOOK, other, experiment_id=number)
    session.close()
    opened = (await jupyter.post(f"experiments/{number}/notebook/open")).json()["path"]
    assert opened == f"{name} (experiment {number}).ipynb"
    assert (jupyter.root / opened).read_bytes() == other
    assert not await is_trusted(jupyter, opened), "others have made it"
    download = await jupyter.get(f"master/experiments/{number}/notebook")
    assert download.content == other
    assert download.headers["Content-Disposition"] == f'attachment; filename="experiment-{number}.ipynb"'
