"""Trials and checkpoints as their handles' one line, in lists too."""

from typing import Any

import pytest
from IPython.lib.pretty import pretty
from made_experiments import make_experiment, source_of, trial_row

from det_native.client.checkpoint import Checkpoint
from det_native.client.listing import ENDS, Listing
from det_native.client.short_forms import checkpoint_short, trial_short
from det_native.client.trial import Trial
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import CheckpointState, TrialState

UUID = "488993b6-0000-4000-8000-000000000000"


def checkpoint(trial: int = 13, batch: int = 44, metrics: dict[str, Any] | None = None) -> rest.Checkpoint:
    manifest = CheckpointManifest(
        uuid=UUID,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=batch,
        experiment_id=1,
        trial_id=trial,
        run_id=None,
        bundle_id=None,
        hparams={},
        created="",
    )
    return rest.Checkpoint(
        uuid=UUID,
        trial_id=trial,
        experiment_id=1,
        batch=batch,
        state=CheckpointState.COMPLETED,
        size=3,
        metrics=metrics or {},
        location="",
        created="",
        manifest=manifest,
    )


@pytest.mark.parametrize(
    ("metrics", "metric", "words"),
    [
        ({"acc": 0.98765, "val_loss": 0.43111}, "val_loss", "val_loss 0.4311"),
        ({"acc": 0.98765, "val_loss": 0.43111}, "", "acc 0.9877, val_loss 0.4311"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "other", "a 1, b 2, c 3"),
        ({"val_loss": "NaN"}, "val_loss", "val_loss nan"),
        ({"val_loss": None}, "val_loss", "not validated"),
        ({}, "val_loss", "not validated"),
        ({"val\n<b>loss\x1b[31m": 0.5}, "val\n<b>loss\x1b[31m", "val<b>loss[31m 0.5"),
        ({"text": "a\nb"}, "text", "text ab"),
        ({"x" * 100: 1.0}, "x" * 100, f"{'x' * 22}...{'x' * 15} 1"),
    ],
)
def test_a_checkpoint_says_trial_batch_and_metric(metrics: dict[str, Any], metric: str, words: str) -> None:
    found = checkpoint(metrics=metrics)
    assert checkpoint_short(found, metric) == f"Checkpoint(488993b6: trial 13, batch 44, {words})"


def test_a_trial_says_state_batches_and_best_value() -> None:
    trial = trial_row(13, {}, 44)
    assert trial_short(trial, "val_loss") == "Trial(1.13: running when asked, 0/44 batches)"
    ended = trial.model_copy(update={"state": TrialState.COMPLETED, "batches": 44, "best_validation": 0.43111})
    assert trial_short(ended, "val_loss") == "Trial(1.13: completed, 44/44 batches, best val_loss 0.4311)"
    assert trial_short(ended, "") == "Trial(1.13: completed, 44/44 batches, best validation 0.4311)"
    assert trial_short(ended, "val\n<b>loss") == "Trial(1.13: completed, 44/44 batches, best val<b>loss 0.4311)"


def test_handles_show_it_without_asking_anybody() -> None:
    nobody: Any = None
    trial = trial_row(2, {}, 4)
    assert repr(Trial(nobody, trial)) == "Trial(1.2: running when asked, 0/4 batches)"
    assert repr(Checkpoint(nobody, checkpoint(metrics={"a": 1.0}))).endswith("batch 44, a 1)")


def test_handles_of_an_experiment_know_its_metric() -> None:
    experiment = make_experiment(trials=2)
    metrics = {"acc": 0.1, "val_loss": 0.25}
    source_of(experiment).write_checkpoints(2, [checkpoint(trial=2, batch=4, metrics=metrics)])
    by_loss = "Checkpoint(488993b6: trial 2, batch 4, val_loss 0.25)"
    assert repr(experiment.trials) == (
        "[Trial(1.1: completed, 4/4 batches, best val_loss 1), Trial(1.2: completed, 4/4 batches, best val_loss 0.5)]"
    )
    assert repr(experiment.best_trial) == "Trial(1.2: completed, 4/4 batches, best val_loss 0.5)"
    for found in (experiment, experiment.trials[1]):
        assert repr(found.checkpoints) == f"[{by_loss}]"
        assert repr(found.top_checkpoint()) == by_loss
        assert repr(found.top_checkpoint("acc")) == "Checkpoint(488993b6: trial 2, batch 4, acc 0.1)"
    assert repr(experiment.checkpoint(UUID[:8])) == by_loss


def test_the_metric_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(make_experiment(trials=3))
    asked: list[object] = []

    def experiment_of(number: int) -> rest.ExperimentDetail:
        asked.append(number)
        return source.detail

    monkeypatch.setattr(source, "experiment", experiment_of)
    trial = Trial(source, source.trial(2))
    assert "best validation 0.5" in repr(trial)
    assert [trial.metric, trial.metric] == ["val_loss", "val_loss"]
    assert "best val_loss 0.5" in repr(trial)
    assert len(asked) == 1


def test_a_notebook_shows_the_ends_of_a_long_list() -> None:
    listing = Listing(f"Trial({number}: {'completed ' * 5})" for number in range(1, 41))
    assert isinstance(listing, list)
    assert repr(listing) == repr(list(listing))
    lines = pretty(Listing(map(Named, listing))).splitlines()
    assert len(lines) == 2 * ENDS + 1
    assert lines[0] == f"[{listing[0]},"
    assert lines[ENDS].strip() == "... 28 more ...,"
    assert lines[-1] == f" {listing[-1]}]"


def test_a_notebook_shows_a_short_list_whole() -> None:
    one_more = 2 * ENDS + 1
    assert pretty(Listing(range(one_more))) == pretty(list(range(one_more)))
    assert pretty(Listing()) == "[]"


class Named:
    """Shows itself by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
