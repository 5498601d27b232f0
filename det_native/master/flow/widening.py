"""An experiment whose program gave other inputs than the notebook had takes its wider program."""

from __future__ import annotations

from det_native.master.store import bundles, checkpoints, experiments, logs, trials
from det_native.master.store.database import Transaction
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest


def take_wider_program(
    transaction: Transaction, experiment_id: int, trial_id: int, run_id: str, difference: str
) -> None:
    """Have all further runs of an experiment run its wider program, and say so in its report and in the trial.

    Nothing changes where another trial has done that already.

    Parameters
    ----------
    transaction : Transaction
    experiment_id : int
    trial_id, run_id
        The run that found the difference.
    difference : str
        What was other than in the notebook, a line each below a first one.
    """
    connection = transaction.connection
    bundle_id = experiments.get(connection, experiment_id).bundle_id
    assert bundle_id is not None
    bundle = bundles.get(connection, bundle_id)
    if bundle.wider is None:
        return
    wider = bundle.with_wider(difference)
    bundles.add(transaction, wider)
    what = _named(difference)
    experiments.set_bundle(transaction, experiment_id, wider.id, _row(wider, what))
    cells = f"{len(wider.program.cells)} instead of {len(bundle.program.cells)} cells"
    text = f"Runs {cells}, all that can run again: with those that were picked, {what} differed from the notebook."
    trials.update_row(transaction, trial_id, warning=text)
    logs.add(transaction, trial_id, run_id, "system", [text])
    drop_outdated(transaction, experiment_id)


def drop_outdated(transaction: Transaction, experiment_id: int) -> None:
    """Have no trial of an experiment continue from a checkpoint of another program than it has now."""
    connection = transaction.connection
    bundle_id = experiments.get(connection, experiment_id).bundle_id
    found = checkpoints.complete(connection, experiment_id=experiment_id)
    checkpoints.set_deleted(transaction, [one.uuid for one in found if one.manifest.bundle_id != bundle_id])


def _row(wider: BundleManifest, what: str) -> rest.CaptureRow:
    cells = wider.program.cells
    numbers = [f"[{cell.number}]" for cell in cells if cell.number is not None]
    return rest.CaptureRow(
        what=f"{len(cells)} cells",
        how="run instead",
        size=sum(len(cell.source.encode()) for cell in cells),
        cell=", ".join(numbers),
        status="already there",
        note=f"all that can run again: with the cells that were picked, {what} differed from the notebook",
    )


def _named(difference: str) -> str:
    """Return which inputs differed, without how."""
    lines = [line.strip().partition(":")[0] for line in difference.splitlines() if line.startswith("  ")]
    return ", ".join(lines) or "what the call is given"
