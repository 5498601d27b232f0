"""``det submit`` and ``det notebook``: notebooks that run as a whole, in fresh kernels of this machine."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from det_native.client.output import Output, takes_output_options
from det_native.errors import ArgumentError, DetError, NotFoundError
from det_native.schema.home import Home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from det_native.client.session import Session
    from det_native.schema import routes
    from det_native.schema.notebook_runs import NotebookRun, RunRequest
    from det_native.schema.schedules import Timing

Answer = TypeVar("Answer")

_NUMBER = click.IntRange(min=1)


@click.command("submit")
@click.argument("path", metavar="NOTEBOOK", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value for a name of the cell tagged `parameters`; may be repeated.",
)
@click.option("--kernel", default="", metavar="NAME", help="Kernel to run it in; the notebook's by default.")
@click.option(
    "--place",
    type=click.Choice(["cluster", "local"]),
    help="Where its training calls train; as the cells say by default.",
)
@click.option("--slots", type=_NUMBER, metavar="N", help="Slots of each trial.")
@click.option("--test", "is_test", is_flag=True, help="One minimal loop of each training only.")
@click.option("--limit", metavar="TIME", help='Stop it after this time: "30min", "12h"; 1w by default.')
@click.option("--beside", is_flag=True, help="Also save the executed notebook beside the notebook.")
@click.option("--wait", is_flag=True, help="Show its progress until it has ended; exit with 1 if it fails.")
@click.option("--there", is_flag=True, help="Run it on the master's machine (ssh://), to which its folder is sent.")
@click.option("--at", metavar="TIME", help='Run it then: "22:00", "2030-01-31 03:00".')
@click.option("--every", metavar="SPEC", help='Run it again and again: "12h", "1d", "0 3 * * *".')
@click.option("--timezone", metavar="ZONE", help="In which --at and --every count, such as Europe/Zurich.")
@click.option("--name", default="", help="Name of the schedule; the notebook's name by default.")
@click.option("--overlap", is_flag=True, help="Run it although the run before goes on.")
@click.pass_context
def submit(context: click.Context, /, *, path: Path, wait: bool, there: bool, **options: Any) -> None:
    """Run a notebook in a fresh kernel in the background: now, at a time, or again and again."""
    from det_native.client.timing import timing_of
    from det_native.notebook_runs.start import start_run

    at, every, timezone, name, overlap = (options[each] for each in ("at", "every", "timezone", "name", "overlap"))
    is_scheduled = at is not None or every is not None
    if (timezone or overlap or name) and not is_scheduled:
        raise click.UsageError("--timezone, --overlap and --name go with --at or --every.")
    if wait and is_scheduled:
        raise click.UsageError("--wait does not go with --at or --every.")
    if there:
        if wait or options["beside"]:
            raise click.UsageError("--wait and --beside do not go with --there: the run is on the other machine.")
        _submit_there(context, path, options)
        return
    request = _request_of(path, context.obj, options)
    if is_scheduled:
        _schedule(request, timing_of(at, every, timezone), name or path.stem, overlap=overlap)
        return
    run = start_run(request, Home.default())
    click.echo(f"Run {run.id}: {path.name}, {run.cells} cells, kernel {run.kernel}.")
    if wait:
        _follow(context, run.id)
    else:
        click.echo(f"`det notebook wait {run.id}` shows its progress, `det notebook stop {run.id}` stops it.")


def _request_of(path: Path, master: str | None, options: Mapping[str, Any]) -> RunRequest:
    from det_native.client.addresses import named_master
    from det_native.notebook_runs.parameters import parse_parameters
    from det_native.schema.notebook_runs import LIMIT_SECONDS, RunRequest
    from det_native.schema.schedules import interval_of

    limit = options["limit"]
    try:
        interval = interval_of(limit) if limit is not None else timedelta(seconds=LIMIT_SECONDS)
    except ValueError:
        interval = None
    if interval is None:
        raise ArgumentError(f'--limit: invalid duration {limit!r}: write "30min", "12h" or "2d".')
    return RunRequest(
        path=str(path.absolute()),
        kernel=options["kernel"],
        parameters=parse_parameters(options["parameters"]),
        place=options["place"] or "",
        slots=options["slots"],
        test=options["is_test"],
        limit_seconds=interval.total_seconds(),
        beside=options["beside"],
        master=named_master(master) or "",
    )


def _schedule(request: RunRequest, timing: Timing, name: str, *, overlap: bool) -> None:
    """Have the master of this machine run a notebook as its file is now, whichever master experiments go to."""
    import nbformat

    from det_native.client.remote.target import is_ssh
    from det_native.notebook_runs.folders import KEPT_RUNS
    from det_native.notebook_runs.start import check_request
    from det_native.schema.routes import CREATE_SCHEDULE
    from det_native.schema.schedules import ScheduleCreate

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
    body = ScheduleCreate(name=name, timing=timing, request=kept, overlap=overlap)
    listing = "DET_MASTER= det schedule list" if request.master else "det schedule list"
    made = _master_here().call(CREATE_SCHEDULE, body)
    click.echo(f"Schedule {made.id} ({made.name}) runs it next at {made.next}. `{listing}` shows it.")
    click.echo(f"The executed notebooks of the last {KEPT_RUNS} runs are kept.")


def _master_here() -> Session:
    from det_native.client.connect import connect

    names = ("DET_MASTER", "DET_MASTER_ADDR")
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        return connect(None)
    finally:
        os.environ.update(kept)


def _submit_there(context: click.Context, path: Path, options: Mapping[str, Any]) -> None:
    from det_native.client.remote_commands import run_there
    from det_native.notebook_runs.parameters import parse_parameters, put_parameters
    from det_native.notebook_runs.reading import read_notebook

    put_parameters(read_notebook(path), parse_parameters(options["parameters"]))  # faults are said before it is sent
    words = ["submit", "{notebook}"]
    for text in options["parameters"]:
        words += ["-p", text]
    for name, value in options.items():
        if name != "parameters" and value:
            option = "--test" if name == "is_test" else f"--{name}"
            words += [option] if value is True else [option, str(value)]
    run_there(context, context.obj, words, folder_of=path)


@click.group()
def notebook() -> None:
    """Run notebooks in the background, and look after these runs."""


notebook.add_command(submit)

_THERE = click.option("--there", is_flag=True, help="Of the machine of the master that -m or DET_MASTER names.")


@notebook.command("list")
@takes_output_options
@click.pass_context
def list_command(context: click.Context, /, *, output: Output) -> None:
    """Show the runs of notebooks on this machine and on that of the named master, newest first."""
    runs = _runs(context)
    head = ("id", "machine", "notebook", "state", "cell", "experiments", "started", "schedule")
    rows = [
        (
            run.id,
            run.machine or "here",
            Path(run.path).name,
            run.state.lower(),
            f"{run.cell} of {run.cells}",
            ", ".join(run.experiments),
            _time(run.started),
            run.schedule or "",
        )
        for run in runs
    ]
    output.table(head, rows, [run.model_dump(mode="json") for run in runs], empty="No notebook has been submitted yet.")


@notebook.command("describe")
@click.argument("number", metavar="RUN", type=_NUMBER)
@_THERE
@takes_output_options
@click.pass_context
def describe_command(context: click.Context, /, *, number: int, there: bool, output: Output) -> None:
    """Show a run of a notebook."""
    from det_native.notebook_runs.folders import list_runs
    from det_native.schema.routes import LIST_NOTEBOOK_RUNS

    runs = _ask_there(context, LIST_NOTEBOOK_RUNS) if there else list_runs(Home.default())
    run = next((run for run in runs if run.id == number), None)
    if run is None:
        raise NotFoundError(f"Notebook run {number} does not exist{' there' if there else ''}.")
    facts = [
        ("run", run.id),
        ("machine", run.machine or "this one"),
        ("notebook", run.path),
        ("kernel", run.kernel),
        ("state", run.state.lower()),
        ("cell", f"{run.cell} of {run.cells}"),
        ("experiments", ", ".join(run.experiments) or "none"),
        ("started", _time(run.started)),
        *([("ended", _time(run.ended))] if run.ended else []),
        ("executed notebook", run.executed),
        *([("error", run.error)] if run.error else []),
        *(("note", note) for note in run.notes),
    ]
    output.facts(facts, run.model_dump(mode="json"))


@notebook.command("wait")
@click.argument("number", metavar="RUN", type=_NUMBER)
@click.pass_context
def wait_command(context: click.Context, /, *, number: int) -> None:
    """Show the progress of a run until it has ended; exit with 0 if every cell has run, else 1."""
    _follow(context, number)


@notebook.command("stop")
@click.argument("number", metavar="RUN", type=_NUMBER)
@_THERE
@click.pass_context
def stop_command(context: click.Context, /, *, number: int, there: bool) -> None:
    """Stop a run, and the experiments that it waits for."""
    from det_native.notebook_runs.start import stop_run
    from det_native.schema.routes import STOP_NOTEBOOK_RUN as STOP

    click.echo(_ended(_ask_there(context, STOP, number=number) if there else stop_run(Home.default(), number)))


@notebook.command("save")
@click.argument("number", metavar="RUN", type=_NUMBER)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_THERE
@click.pass_context
def save_command(context: click.Context, /, *, number: int, file: Path, there: bool) -> None:
    """Write the executed notebook of a run to FILE, as far as it has come."""
    from det_native.notebook_runs.folders import find_run
    from det_native.schema.routes import GET_RUN_NOTEBOOK as GET

    _write(file, _ask_there(context, GET, number=number) if there else find_run(Home.default(), number).content())


def _write(file: Path, content: bytes) -> None:
    if file.exists():
        raise click.UsageError(f"{file} exists; name a file that does not.")
    file.write_bytes(content)
    click.echo(f"Wrote {file}.")


def _runs(context: click.Context) -> list[NotebookRun]:
    from det_native.client.addresses import named_master
    from det_native.notebook_runs.folders import list_runs, with_others
    from det_native.schema.routes import LIST_NOTEBOOK_RUNS

    here = list_runs(Home.default())
    try:
        return (
            with_others(here, _ask_there(context, LIST_NOTEBOOK_RUNS, start=False))
            if named_master(context.obj)
            else here
        )
    except DetError as error:
        click.echo(f"Runs on the machine of {named_master(context.obj)} are not listed: {error}", err=True)
        return here


def _ask_there(
    context: click.Context, route: routes.Route[None, Answer], *, start: bool = True, **parts: int
) -> Answer:
    from det_native.client.addresses import named_master
    from det_native.client.connect import connect

    if not named_master(context.obj):
        raise click.UsageError("--there needs a master that is named (-m, or DET_MASTER).")
    return connect(context.obj, start=start).call(route, **parts)


def _follow(context: click.Context, number: int) -> None:
    from det_native.notebook_runs.start import follow_run

    shown: list[tuple[int, tuple[str, ...]]] = []

    def show(run: NotebookRun) -> None:
        state = (run.cell, tuple(run.experiments))
        if run.cell and state not in shown and not run.is_ended:
            shown.append(state)
            experiments = f" (experiments {', '.join(run.experiments)})" if run.experiments else ""
            click.echo(f"cell {run.cell} of {run.cells}{experiments}")

    try:
        run = follow_run(Home.default(), number, show)
    except KeyboardInterrupt:
        click.echo(f"Run {number} goes on; `det notebook stop {number}` stops it.", err=True)
        context.exit(130)
    click.echo(_ended(run), err=run.state != "COMPLETED")
    for note in run.notes:
        click.echo(note, err=True)
    if run.state != "COMPLETED":
        context.exit(1)


def _ended(run: NotebookRun) -> str:
    experiments = f"; experiments: {', '.join(run.experiments)}" if run.experiments else ""
    return f"Run {run.id} {run.outcome.removesuffix('.')}.\nExecuted notebook: {run.executed}{experiments}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="seconds")


@click.command("notebook")
@click.argument("experiment_id", metavar="ID", type=_NUMBER)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--executed", is_flag=True, help="The notebook whose run began it, with its outputs.")
@click.pass_context
def experiment_notebook(context: click.Context, /, *, experiment_id: int, file: Path, executed: bool) -> None:
    """Write the program of an experiment to FILE as a notebook: the cells that it consists of."""
    from det_native.client.connect import connect
    from det_native.client.handles import Experiment
    from det_native.client.http_source import HttpSource
    from det_native.schema.routes import GET_NOTEBOOK

    session = connect(context.obj, start=False)
    if executed:
        _write(file, session.call(GET_NOTEBOOK, experiment_id=experiment_id))
        return
    Experiment(HttpSource(session), experiment_id).notebook(file)
    click.echo(f"Wrote {file}.")
