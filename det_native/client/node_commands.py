"""``det nodes``: the machines of the cluster, and who uses them."""

from __future__ import annotations

import click

from det_native.client.connect import connect
from det_native.client.output import Output, takes_output_options
from det_native.schema import routes
from det_native.schema.launchers import LOCAL
from det_native.schema.rest import MasterInfo


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
