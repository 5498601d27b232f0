"""``det slot``, ``det nodes`` and ``det queue``: what the cluster has, who has it, and who waits for it."""

from __future__ import annotations

from typing import Any

import click

from det_native.client.connect import connect
from det_native.client.http_source import HttpSource
from det_native.client.output import Output, takes_output_options
from det_native.client.state_words import trial_word
from det_native.errors import DetError
from det_native.schema import routes
from det_native.schema.launchers import LOCAL
from det_native.schema.rest import Experiment, MasterInfo, SlotInfo, Trial
from det_native.schema.states import ExperimentState, TrialState
from det_native.schema.trial_names import trial_name

#: Of experiments that were given none.
DEFAULT_PRIORITY = 42
#: Of so many experiments that go on, the trials are looked at.
_MOST = 1000


@click.group()
def slot() -> None:
    """Look at the slots of the cluster."""


@slot.command("list")
@takes_output_options
@click.pass_context
def list_slots(context: click.Context, *, output: Output) -> None:
    """Show each slot, and the trial that holds it; then the trials that run without a slot."""
    session = connect(context.obj, start=False)
    source = HttpSource(session)
    slots = session.call(routes.GET_MASTER).slots
    beside = [row for row in _rows(source) if row["slots"] == 0 and row["running"]]
    rows = [one.model_dump(mode="json") for one in slots]
    rows += [
        {
            "id": None,
            "device": "cpu",
            "trial_id": row["trial"],
            "trial_number": row["number"],
            "experiment_id": row["experiment"],
        }
        for row in beside
    ]
    held = [one.held_by for one in slots] + [trial_name(row["experiment"], row["number"]) for row in beside]
    titles = [[one.id, slot_name(one)] for one in slots] + [["none", "cpu"]] * len(beside)
    cells = [[*title, holder or "free"] for title, holder in zip(titles, held, strict=True)]
    exact = [[*title, holder] for title, holder in zip(titles, held, strict=True)]
    output.table(("slot", "device", "trial"), cells, rows, exact=exact)


def slot_name(slot: SlotInfo) -> str:
    """Return what a slot is: the GPU's model with its memory where they are known, else the kind of device."""
    return slot.model or slot.accelerator or slot.device


@click.group()
def queue() -> None:
    """Look at what runs and what waits."""


@queue.command("list")
@takes_output_options
@click.pass_context
def list_queue(context: click.Context, *, output: Output) -> None:
    """Show the trials that run, then those that wait, in the order in which they get slots, and for what they wait."""
    rows = _rows(HttpSource(connect(context.obj, start=False)))
    head = ("trial", "experiment", "state", "slots", "priority", "waits for")
    exact = [
        (trial_name(row["experiment"], row["number"]), *(row[name] for name in ("name", *head[2:-1], "notice")))
        for row in rows
    ]
    cells = [(*row[:3], row[3] or "none", *row[4:]) for row in exact]
    output.table(head, cells, rows, empty="Nothing runs, and nothing waits.", exact=exact)


@click.command("nodes")
@takes_output_options
@click.pass_context
def nodes(context: click.Context, *, output: Output) -> None:
    """Show the machines of the cluster: their slots, who uses them, and what is wrong with one."""
    info = connect(context.obj, start=False).call(routes.GET_MASTER)
    if info.outage:
        click.echo(f"Warning: {info.outage}", err=True)
    for remark in info.remarks:
        click.echo(f"Warning: {remark}", err=True)
    rows = [
        {**node.model_dump(mode="json"), "held": held, "trials": sorted(trials)}
        for node in info.nodes
        for held, trials in [_use(info, node.name)]
    ]
    cells = [
        [
            row["name"],
            row["address"],
            row["slots"],
            max(0, row["free"] - row["held"]),
            row["accelerator"] or row["device"],
            ", ".join(f"{name}={value}" for name, value in sorted(row["labels"].items())),
            ", ".join(row["trials"]),
            row["trouble"],
        ]
        for row in rows
    ]
    empty = (
        "The master runs on its own machine only: `det slot list` shows its slots."
        if info.launcher == LOCAL
        else "The cluster has no machine now."
    )
    output.table(
        ("machine", "address", "slots", "free", "accelerator", "labels", "trials", "trouble"), cells, rows, empty=empty
    )


def _use(info: MasterInfo, node: str) -> tuple[int, set[str]]:
    """Return how many slots of a machine trials of this master hold, and which trials that are."""
    holders = [slot.held_by for slot in info.slots if slot.node == node and slot.held_by]
    return len(holders), set(holders)


def count_trials(source: HttpSource) -> tuple[int, int]:
    """Return how many trials run and how many wait."""
    rows = _rows(source)
    running = sum(row["running"] for row in rows)
    return running, len(rows) - running


def left_text(master_url: str | None, *, kill: bool) -> str:
    """Return what becomes of trials when the master stops; of one that cannot be asked, what always holds."""
    try:
        running, waiting = count_trials(HttpSource(connect(master_url, start=False)))
    except DetError:
        return "" if kill else "Running trials go on."
    words = []
    if running and not kill:
        words.append("1 running trial goes on." if running == 1 else f"{running} running trials go on.")
    if kill:  # those that are ended go on from their checkpoints
        waiting += running
    if waiting:
        words.append(
            f"{'1 trial waits' if waiting == 1 else f'{waiting} trials wait'} until a master runs again: `det up`."
        )
    return " ".join(words)


def _rows(source: HttpSource) -> list[dict[str, Any]]:
    open_states = [state for state in ExperimentState if not state.terminal]
    going_on = [one for state in open_states for one in source.experiments(_MOST, state)]
    found: list[tuple[Experiment, Trial]] = [
        (experiment, trial)
        for experiment in sorted(going_on, key=lambda one: one.id)
        for trial in source.trials(experiment.id)
        if not trial.state.terminal
    ]
    found.sort(key=lambda pair: (pair[1].state is not TrialState.RUNNING, _priority(pair[0])))
    return [
        {
            "trial": trial.id,
            "number": trial.shown_number,
            "experiment": experiment.id,
            "name": experiment.name,
            "state": trial_word(trial, experiment.state),
            "slots": int((experiment.config.get("resources") or {}).get("slots_per_trial", 1)),
            "held": list(trial.slots),
            "running": trial.state is TrialState.RUNNING,
            "priority": _priority(experiment),
            "notice": trial.notice or experiment.waits_for or "",
        }
        for experiment, trial in found
    ]


def _priority(experiment: Experiment) -> int:
    given = (experiment.config.get("resources") or {}).get("priority")
    return DEFAULT_PRIORITY if given is None else int(given)
