"""Experiments that have ended, put into the database of a running master: for what reads them, without training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from master_parts import Master

from det_native.master.service import OWNER
from det_native.master.store import bundles, experiments, logs, reports, runs, summaries, trials
from det_native.master.store.encoding import now
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest
from det_native.schema.outputs import WrittenFile
from det_native.schema.run_ids import new_id
from det_native.schema.states import ExperimentState, MetricKind, TrialState


def put_experiment(
    master: Master,
    *,
    name: str = "digits",
    count: int = 1,
    metric: str = "val_loss",
    config: Mapping[str, Any] | None = None,
    bundle: BundleManifest | None = None,
    contents: Mapping[str, bytes] | None = None,
    last_row: Mapping[str, Any] | None = None,
    written: Sequence[Mapping[str, Any]] = (),
    printed: str = "",
    **more: Any,
) -> int:
    """Put an experiment with so many trials, each better than the one before it; return its number.

    Parameters
    ----------
    master : Master
    name : str
    count : int
        Of trials.
    metric : str
    config : mapping, optional
    bundle : BundleManifest, optional
        The program.
    contents : mapping, optional
        Blobs of it, by their hashes.
    last_row : mapping, optional
        What the validation reports beside the metric.
    written : sequence of mapping
        Files that each trial has written.
    printed : str
        What each trial has printed; ``{trial}`` stands for its place.
    **more
        Further fields of ``NewExperiment``.
    """
    for content in (contents or {}).values():
        master.service.blobs.put(hashlib.sha256(content).hexdigest(), content)
    configured = {"searcher": {"name": "random" if count > 1 else "single"}, "records_per_epoch": 0}
    with master.service.database.write() as transaction:
        if bundle is not None:
            bundles.add(transaction, bundle)
        known = {"owner": OWNER, "framework": "keras", "smaller_is_better": True, "report": [], **more}
        new = experiments.NewExperiment(
            name=name,
            config=dict(config or configured),
            bundle_id=None if bundle is None else bundle.id,
            metric=metric,
            **known,
        )
        number = experiments.create(transaction, new)
        for place in range(1, count + 1):
            facts: dict[str, Any] = {"hparams": {"lr": 0.1 * place}, "seed": 7, "target_batches": 4}
            trial = trials.create(transaction, number, request=place - 1, started=now(), **facts)
            run_id = new_id()
            runs.create(transaction, trial, run_id, token_hash="", slots=[])
            last = {metric: [1.0 / place], **{key: [value] for key, value in (last_row or {}).items()}}
            told: list[rest.Report] = [
                rest.StartedReport(seq=1, batch=0),
                rest.MetricsReport(
                    seq=2, kind=MetricKind.TRAINING, batches=[1, 2, 3, 4], metrics={"loss": [2.0, 1.0, 2 / 3, 0.5]}
                ),
                rest.MetricsReport(seq=3, kind=MetricKind.VALIDATION, batches=[4], metrics=last),
            ]
            if written:
                files = [WrittenFile.model_validate(file) for file in written]
                told.append(rest.ArtifactsReport(seq=4, files=files))
            reports.accept(transaction, run_id, rest.ReportBatch(reports=told))
            logs.add_output(transaction, trial, run_id, printed.format(trial=place), [0])
            runs.end(transaction, run_id)
            summaries.refresh(transaction, trial, [MetricKind.TRAINING])
            trials.set_state(transaction, trial, TrialState.COMPLETED)
        experiments.set_state(transaction, number, ExperimentState.COMPLETED)
    return number
