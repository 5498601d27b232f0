"""Experiments that have ended, written into a home before its master starts: thousands of trials without training."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, update

from det_native import PROTOCOL
from det_native.master.service import OWNER
from det_native.master.store import bundles, experiments, reports, runs
from det_native.master.store.database import Database, Transaction
from det_native.master.store.tables import experiments as experiment_table
from det_native.master.store.tables import metric_summaries
from det_native.master.store.tables import trials as trial_table
from det_native.schema import rest
from det_native.schema.home import Home
from det_native.schema.manifests import BundleManifest, Cell, Interpreter, Program
from det_native.schema.run_ids import new_id
from det_native.schema.states import ExperimentState, MetricKind, TrialState

BEGUN = datetime(2026, 11, 20, 12, tzinfo=UTC)
SPACE = {
    "global_batch_size": 32,
    "learning_rate": {"type": "log", "minval": -4, "maxval": -1},
    "units": {"type": "int", "minval": 8, "maxval": 256},
    "dropout": {"type": "double", "minval": 0, "maxval": 0.6},
    "optimizer": {
        "kind": {"type": "categorical", "vals": ["adam", "sgd", "lion"]},
        "momentum": {"type": "double", "minval": 0.5, "maxval": 0.99},
    },
    "layers": {"type": "int", "minval": 1, "maxval": 6},
    "nesterov": {"type": "categorical", "vals": [True, False]},
}


def moment(minutes: float) -> str:
    """Return a time of the searches as it is stored."""
    return (BEGUN + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def drawn(chance: random.Random) -> dict[str, Any]:
    """Return hyperparameters of the space; momentum is not everywhere."""
    optimizer: dict[str, Any] = {"kind": chance.choice(["adam", "sgd", "lion"])}
    if optimizer["kind"] == "sgd":
        optimizer["momentum"] = round(chance.uniform(0.5, 0.99), 3)
    return {
        "global_batch_size": 32,
        "learning_rate": 10 ** chance.uniform(-4, -1),
        "units": chance.randint(8, 256),
        "dropout": round(chance.uniform(0, 0.6), 3),
        "optimizer": optimizer,
        "layers": chance.randint(1, 6),
        "nesterov": chance.choice([True, False]),
    }


def loss_of(hparams: Mapping[str, Any], chance: random.Random) -> float:
    """Return what such a trial would come to."""
    rate = (math.log10(hparams["learning_rate"]) + 2.5) ** 2 / 4
    kind = {"adam": 0.0, "lion": 0.05, "sgd": 0.2}[hparams["optimizer"]["kind"]]
    width = abs(hparams["units"] - 128) / 600
    return 0.15 + rate + kind + width + hparams["dropout"] * 0.2 + chance.random() * 0.08


def program(cells: Sequence[str], packages: Mapping[str, str]) -> BundleManifest:
    """Return a program of cells."""
    return BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.7", executable="", packages=dict(packages)),
        program=Program(
            kind="cells",
            framework="torch",
            cells=tuple(Cell(number=at + 1, cell_id=None, source=source) for at, source in enumerate(cells)),
        ),
    )


def add_search(
    database: Database,
    name: str,
    hparams: Sequence[Mapping[str, Any]],
    values: Sequence[float | None],
    *,
    bundle: BundleManifest,
    curves: int = 0,
    more: Sequence[Mapping[str, float]] = (),
    **config: Any,
) -> int:
    """Write a search that has ended, with a trial for each of `hparams`; return its number.

    Parameters
    ----------
    values : sequence of float or None
        What trials have come to; None for one that failed before.
    curves : int
        Of so many trials there are rows of metrics.
    more : sequence of mapping
        Further metrics of each trial.
    """
    with database.write() as transaction:
        bundles.add(transaction, bundle)
        new = experiments.NewExperiment(
            owner=OWNER,
            name=name,
            config={
                "name": name,
                "hyperparameters": SPACE,
                "searcher": {"name": "random", "metric": "val_loss", "max_length": {"batches": 100}},
                **config,
            },
            bundle_id=bundle.id,
            framework="torch",
            metric="val_loss",
            smaller_is_better=True,
            report=[],
        )
        experiment_id = experiments.create(transaction, new)
        ids = [
            _trial(transaction, experiment_id, at, each, value)
            for at, (each, value) in enumerate(zip(hparams, values, strict=True))
        ]
        for trial_id, value in list(zip(ids, values, strict=True))[:curves]:
            _report(transaction, trial_id, 1.0 if value is None else value)
        _summarise(transaction, experiment_id, ids[curves:], values[curves:], more[curves:])
        finite = [(value, at) for at, value in enumerate(values) if value is not None and math.isfinite(value)]
        ended: dict[str, Any] = {"state": ExperimentState.COMPLETED, "created": moment(0), "ended": moment(len(ids))}
        transaction.connection.execute(
            update(experiment_table).where(experiment_table.c.id == experiment_id).values(**ended)
        )
        if finite:
            best, at = min(finite)
            experiments.set_best(transaction, experiment_id, best, ids[at])
    return experiment_id


def _trial(
    transaction: Transaction, experiment_id: int, at: int, hparams: Mapping[str, Any], value: float | None
) -> int:
    row = {
        "experiment_id": experiment_id,
        "request": at,
        "state": TrialState.ERROR if value is None else TrialState.COMPLETED,
        "hparams": dict(hparams),
        "seed": at,
        "restarts": 0,
        "target_batches": 100,
        "stages": [25] if at % 3 else [25, 100],
        "best_validation": value,
        "best_at": None if value is None else moment(at + 0.5),
        "created": moment(at),
        "started": moment(at),
        "ended": moment(at + 1),
    }
    primary_key = transaction.connection.execute(insert(trial_table).values(**row)).inserted_primary_key
    assert primary_key is not None
    return int(primary_key[0])


def _report(transaction: Transaction, trial_id: int, value: float) -> None:
    state = transaction.connection.execute(trial_table.select().where(trial_table.c.id == trial_id)).one()
    run_id = new_id()
    runs.create(transaction, trial_id, run_id, token_hash="", slots=[])
    last = 100 if len(state.stages) > 1 else 25
    batches = list(range(5, last + 1, 5))
    validated = [value + 1.5 * math.exp(-batch / 20) for batch in batches]
    told: list[rest.Report] = [
        rest.StartedReport(seq=1, batch=0),
        rest.MetricsReport(
            seq=2, kind=MetricKind.TRAINING, batches=batches, metrics={"loss": [each * 0.9 for each in validated]}
        ),
        rest.MetricsReport(
            seq=3,
            kind=MetricKind.VALIDATION,
            batches=batches,
            metrics={"val_loss": validated, "val_accuracy": [1 / (1 + each) for each in validated]},
        ),
    ]
    reports.accept(transaction, run_id, rest.ReportBatch(reports=told))
    transaction.connection.execute(
        update(trial_table).where(trial_table.c.id == trial_id).values(state=state.state, best_validation=value)
    )


def _summarise(
    transaction: Transaction,
    experiment_id: int,
    ids: Sequence[int],
    values: Sequence[float | None],
    more: Sequence[Mapping[str, float]],
) -> None:
    rows = []
    for at, (trial_id, value) in enumerate(zip(ids, values, strict=True)):
        if value is None or not math.isfinite(value):
            continue
        metrics = {"val_loss": value, "val_accuracy": 1 / (1 + value), **(more[at] if at < len(more) else {})}
        rows += [
            {
                "trial_id": trial_id,
                "kind": "validation",
                "name": name,
                "experiment_id": experiment_id,
                "last_batch": 100,
                **dict.fromkeys(("last", "minimum", "maximum"), number),
            }
            for name, number in metrics.items()
        ]
    if rows:
        transaction.connection.execute(insert(metric_summaries), rows)


def fill(home: Home, trials: int = 2000) -> list[int]:
    """Write four experiments: a search of so many trials, two small ones with other code, one with bad input."""
    chance = random.Random(7)
    cells = ["import torch\n\nrate = 0.1\n", "model = torch.nn.Linear(4, 1)\n", "fit(model, rate)\n"]
    packages = {"torch": "2.13.0", "numpy": "2.1.0"}
    first, second = program(cells, packages), program([cells[0].replace("0.1", "0.2"), *cells[1:]], {"torch": "2.12.0"})
    database = Database(f"sqlite:///{home.database}")
    ids = []
    for name, count, bundle, curves in (
        ("large search", trials, first, 60),
        ("first try", 24, first, 24),
        ("second try", 30, second, 30),
    ):
        hparams = [drawn(chance) for _ in range(count)]
        values: list[float | None] = [loss_of(each, chance) for each in hparams]
        values[3] = None
        two = [{"name": "val_loss"}, {"name": "val_accuracy", "smaller_is_better": False}]
        searcher = {"name": "random", "metric": "val_loss", "max_length": {"batches": 100}}
        config = {"searcher": searcher | ({"metrics": two} if name == "first try" else {})}
        ids.append(add_search(database, name, hparams, values, bundle=bundle, curves=curves, **config))
    html = "<img src=x onerror=\"document.title='executed'\">"
    odd: list[dict[str, Any]] = [
        {"rate": "auto", html: 1, "deep": {"a": [1, 2]}},
        {"rate": 0.1, html: 2, "deep": {"a": None}},
        {"rate": 10, html: math.inf, "x" * 10_000: 1},
        {"rate": True, html: 4, "deep": 3},
        {},
    ]
    more = [{html: 1.0, "y" * 400: float(at)} for at in range(len(odd))]
    values = [0.5, math.inf, None, 0.25, 0.75]
    ids.append(add_search(database, html, odd, values, bundle=first, more=more))
    database.close()
    return ids
