"""``det experiment set``: its share of the slots, how many checkpoints stay, and what people write of it."""

from __future__ import annotations

from typing import Any

import click

from det_native.client.catalog import source_of
from det_native.client.json_output import AS_JSON, print_json
from det_native.client.life import retain, retained_text
from det_native.client.life_commands import change_facts
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT
from det_native.client.shares import change_resources


@click.group("set")
def change() -> None:
    """Change how an experiment shares the slots, which of its checkpoints stay, and what is written of it."""


def _shared(field: str, kind: click.ParamType[Any], text: str) -> None:
    """Add a command that changes an experiment's share of the slots."""

    @change.command(field.replace("_", "-"), help=text)
    @click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
    @click.argument("value", metavar="N", type=kind)
    @AS_JSON
    @click.pass_context
    def set_share(context: click.Context, experiment_id: int, value: float, *, as_json: bool) -> None:
        source = source_of(context.obj)
        change_resources(source, experiment_id, **{field: value})
        if as_json:
            print_json(source.experiment(experiment_id))
        else:
            click.echo(f"Experiment {experiment_id} has {field} {value:g} now.")


for _field, _kind, _text in (
    (
        "priority",
        click.IntRange(1, 99),
        "Have an experiment come before others: 1 to 99, lower first. Running trials of higher numbers make room.",
    ),
    (
        "weight",
        click.FloatRange(0, min_open=True),
        "Change an experiment's share of the slots, as compared with others.",
    ),
    (
        "max_slots",
        click.IntRange(1),
        "Change how many slots an experiment may hold at once; what it holds above that is given up.",
    ),
):
    _shared(_field, _kind, _text)


@change.command("gc-policy")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--save-experiment-best", "best", type=click.IntRange(0), required=True, help="Of the whole experiment.")
@click.option("--save-trial-best", "trial_best", type=click.IntRange(0), required=True, help="The best of each trial.")
@click.option("--save-trial-latest", "trial_latest", type=click.IntRange(0), required=True, help="The last of each.")
@click.option("-y", "--yes", is_flag=True, help="Taken, since Determined has it: nothing is asked.")
@takes_output_options
@click.pass_context
def set_gc_policy(
    context: click.Context,
    experiment_id: int,
    *,
    best: int,
    trial_best: int,
    trial_latest: int,
    yes: bool,
    output: Output,
) -> None:
    """Change how many checkpoints of an experiment stay; the others are deleted, and what that frees is told."""
    retained = retain(source_of(context.obj), experiment_id, best, trial_best, trial_latest)
    if output.as_json or output.as_csv:
        output.facts(list(retained.model_dump(mode="json").items()))
    else:
        click.echo(retained_text(experiment_id, retained))


def _described(field: str, what: str) -> None:
    """Add a command that sets a text of an experiment."""

    @change.command(field, help=f"Set {what} of an experiment.")
    @click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
    @click.argument("text")
    @takes_output_options
    @click.pass_context
    def set_text(context: click.Context, experiment_id: int, text: str, *, output: Output) -> None:
        change_facts(context.obj, experiment_id, output, **{field: text})


for _field, _what in (
    ("name", "the name"),
    ("description", "the description, a sentence,"),
    ("notes", "the notes, which are Markdown,"),
    ("project", "the project, a path of folders such as vision/digits,"),
):
    _described(_field, _what)
