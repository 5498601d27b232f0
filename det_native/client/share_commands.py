"""``det experiment set``: priority, weight and max_slots of an experiment that goes on."""

from __future__ import annotations

import click

from det_native.client.json_output import AS_JSON, print_json
from det_native.client.run_names import EXPERIMENT


@click.group("set")
def change() -> None:
    """Change how an experiment that goes on shares the slots with others."""


@change.command("priority")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("priority", metavar="N", type=click.IntRange(1, 99))
@AS_JSON
@click.pass_context
def set_priority(context: click.Context, experiment_id: int | str, priority: int, *, as_json: bool) -> None:
    """Have an experiment come before others: 1 to 99, lower first. Running trials of higher numbers make room."""
    _set(context.obj, experiment_id, "priority", priority, as_json=as_json)


@change.command("weight")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("weight", metavar="N", type=click.FloatRange(0, min_open=True))
@AS_JSON
@click.pass_context
def set_weight(context: click.Context, experiment_id: int | str, weight: float, *, as_json: bool) -> None:
    """Change an experiment's share of the slots, as compared with others."""
    _set(context.obj, experiment_id, "weight", weight, as_json=as_json)


@change.command("max-slots")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("max_slots", metavar="N", type=click.IntRange(1))
@AS_JSON
@click.pass_context
def set_max_slots(context: click.Context, experiment_id: int | str, max_slots: int, *, as_json: bool) -> None:
    """Change how many slots an experiment may hold at once; what it holds above that is given up."""
    _set(context.obj, experiment_id, "max_slots", max_slots, as_json=as_json)


def _set(master: str | None, experiment_id: int | str, name: str, value: float, *, as_json: bool) -> None:
    from det_native.client.catalog import source_of
    from det_native.client.shares import change_resources

    source = source_of(experiment_id, master)
    change_resources(source, experiment_id, **{name: value})
    if as_json:
        print_json(source.experiment(experiment_id))
    else:
        click.echo(f"Experiment {experiment_id} has {name} {value:g} now.")
