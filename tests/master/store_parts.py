"""An experiment, trials and runs in a store, without a master around them."""

from __future__ import annotations

from typing import Any

from master_parts import manifest

from det_native.master.store import bundles, experiments, reports, runs, trials
from det_native.master.store.database import Database
from det_native.schema import rest
from det_native.schema.run_ids import new_id

OWNER = "user"


class Fixture:
    """One experiment with one trial, and runs as the test makes them.

    Parameters
    ----------
    database : Database
    smaller_is_better : bool
    """

    def __init__(self, database: Database, *, smaller_is_better: bool = True, owner: str = OWNER) -> None:
        self.database = database
        with database.write() as transaction:
            bundles.add(transaction, manifest())
            self.experiment_id = experiments.create(
                transaction,
                experiments.NewExperiment(
                    owner, "", {"max_restarts": 5}, manifest().id, "torch", "loss", smaller_is_better, []
                ),
            )
        self.trial_id = self.add_trial(0)

    def add_trial(self, request: int) -> int:
        """Add a trial."""
        with self.database.write() as transaction:
            return trials.create(
                transaction, self.experiment_id, request=request, hparams={"x": 1}, seed=7, target_batches=100
            )

    def run(self, start_batch: int = 0, trial_id: int | None = None) -> Voice:
        """Make a new current run."""
        run_id = new_id()
        with self.database.write() as transaction:
            runs.create(
                transaction,
                trial_id or self.trial_id,
                run_id,
                token_hash=runs.hash_of("t"),
                slots=["cpu:0"],
                start_batch=start_batch,
            )
        return Voice(self.database, run_id)


class Voice:
    """Reports of one run."""

    def __init__(self, database: Database, run_id: str) -> None:
        self.database = database
        self.run_id = run_id
        self.seq = 0

    def say(self, *found: dict[str, Any]) -> reports.Accepted:
        """Report, numbered."""
        numbered = []
        for report in found:
            self.seq += 1
            numbered.append({"seq": self.seq, **report})
        return self.say_raw(*numbered)

    def say_raw(self, *found: dict[str, Any]) -> reports.Accepted:
        """Report as it is."""
        batch = rest.ReportBatch.model_validate({"reports": list(found)})
        with self.database.write() as transaction:
            return reports.accept(transaction, self.run_id, batch)


def metrics_report(kind: str, batches: list[int], **columns: list[float | None]) -> dict[str, Any]:
    """Return a metrics report without its number."""
    return {"type": "metrics", "kind": kind, "batches": batches, "metrics": columns}
