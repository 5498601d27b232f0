"""``det experiment set``: its share of the slots, how many checkpoints stay, and what people write of it."""

from __future__ import annotations

import click

from det_native.client.json_output import AS_JSON, print_json
from det_native.client.life_commands import change_facts
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT


@click.group("set")
def change() -> None:
    """Change how an experiment shares the slots, which of its checkpoints stay, and what is written of it."""


@change.command("priority")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("priority", metavar="N", type=click.IntRange(1, 99))
@AS_JSON
@click.pass_context
def set_priority(context: click.Context, experiment_id: int, priority: int, *, as_json: bool) -> None:
    """Have an experiment come before others: 1 to 99, lower first. Running trials of higher numbers make room."""
    _set(context.obj, experiment_id, "priority", priority, as_json=as_json)


@change.command("weight")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("weight", metavar="N", type=click.FloatRange(0, min_open=True))
@AS_JSON
@click.pass_context
def set_weight(context: click.Context, experiment_id: int, weight: float, *, as_json: bool) -> None:
    """Change an experiment's share of the slots, as compared with others."""
    _set(context.obj, experiment_id, "weight", weight, as_json=as_json)


@change.command("max-slots")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("max_slots", metavar="N", type=click.IntRange(1))
@AS_JSON
@click.pass_context
def set_max_slots(context: click.Context, experiment_id: int, max_slots: int, *, as_json: bool) -> None:
    """Change how many slots an experiment may hold at once; what it holds above that is given up."""
    _set(context.obj, experiment_id, "max_slots", max_slots, as_json=as_json)


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
    from det_native.client.catalog import source_of
    from det_native.client.life import retain, retained_text

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


def _set(master: str | None, experiment_id: int, name: str, value: float, *, as_json: bool) -> None:
    from det_native.client.catalog import source_of
    from det_native.client.shares import change_resources

    source = source_of(master)
    change_resources(source, experiment_id, **{name: value})
    if as_json:
        print_json(source.experiment(experiment_id))
    else:
        click.echo(f"Experiment {experiment_id} has {name} {value:g} now.")
