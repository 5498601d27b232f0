"""One rule says which trial and which checkpoint is best; the front end's tests read the same cases."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from det_native.client.selection import best_trial, top_checkpoints
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.ranking import checkpoints_best_first, trials_best_first
from det_native.schema.retention import superfluous
from det_native.schema.states import CheckpointState, TrialState

CASES = json.loads((Path(__file__).parent / "ranking_cases.json").read_text())
SEED = 5


def trial(number: int, best: Any) -> rest.Trial:
    return rest.Trial(
        id=number,
        experiment_id=1,
        state=TrialState.COMPLETED,
        hparams={},
        seed=0,
        restarts=0,
        run_id=None,
        batches=1,
        target_batches=1,
        best_validation=None if best is None else float(best),
        error=None,
        created="",
        started=None,
        ended=None,
    )


def checkpoint(uuid: str, trial_id: int, batch: int, value: Any) -> rest.Checkpoint:
    manifest = CheckpointManifest(
        uuid=uuid,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=batch,
        experiment_id=1,
        trial_id=trial_id,
        run_id="r",
        bundle_id=None,
        hparams={},
        created="",
    )
    return rest.Checkpoint(
        uuid=uuid,
        trial_id=trial_id,
        experiment_id=1,
        batch=batch,
        state=CheckpointState.COMPLETED,
        size=0,
        metrics={} if value is None else {"loss": value},
        location="",
        created="",
        manifest=manifest,
    )


@pytest.mark.parametrize("case", CASES["trials"], ids=lambda case: case["case"])
def test_trials_are_ranked(case: dict[str, Any]) -> None:
    smaller = case["smaller_is_better"]
    found = [trial(*each) for each in case["trials"]]
    random.Random(SEED).shuffle(found)
    assert [each.id for each in trials_best_first(found, smaller_is_better=smaller)] == case["order"]
    best = best_trial(found, smaller_is_better=smaller)
    assert best is not None
    assert best.id == case["order"][0]


@pytest.mark.parametrize("case", CASES["checkpoints"], ids=lambda case: case["case"])
def test_checkpoints_are_ranked(case: dict[str, Any]) -> None:
    smaller = case["smaller_is_better"]
    found = [checkpoint(*each) for each in case["checkpoints"]]
    random.Random(SEED).shuffle(found)
    ranked = checkpoints_best_first(found, metric="loss", smaller_is_better=smaller)
    assert [each.uuid for each in ranked] == case["order"]
    (top,) = top_checkpoints(found, metric="loss", smaller_is_better=smaller, limit=1)
    assert top.uuid == case["order"][0]


@pytest.mark.parametrize("case", CASES["checkpoints"][:3], ids=lambda case: case["case"])
def test_what_is_kept_is_what_is_called_best(case: dict[str, Any]) -> None:
    found = [checkpoint(*each) for each in case["checkpoints"]]
    doomed = superfluous(
        found,
        metric="loss",
        smaller_is_better=case["smaller_is_better"],
        experiment_best=1,
        trial_best=0,
        trial_latest=0,
    )
    assert {each.uuid for each in found} - set(doomed) == {case["order"][0]}
