"""The Core API in a trial of a master: its end, stages of a search, pausing, and the checkpoint it continues from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doors import WorkerDoor

from det_native import core
from det_native.core.cluster_info import info_of
from det_native.errors import DivergedError, InvalidHP, TrialDefinitionError
from det_native.schema.job import Gang, TrialJob
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.storage.checkpoints import CheckpointStorage

SEARCH = {"searcher": {"name": "async_halving", "metric": "loss", "max_length": {"epochs": 8}}}


def started(door: WorkerDoor) -> list[int]:
    """Return after how many batches runs began."""
    return [report["batch"] for report in door.reports.of("started")]


def test_the_length_of_an_operation_is_that_of_the_stage(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path, config=SEARCH, stage={"epochs": 2})
    [operation] = [(op.length, op.report_completed(1.0))[0] for op in door.context.searcher.operations()]
    assert operation == 2
    assert door.context.searcher.get_configured_units() is core.Unit.EPOCHS
    door.context.close()
    assert not door.context.run.outcome().stopped


def test_a_stage_without_a_checkpoint_of_its_end_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    door = WorkerDoor(tmp_path, config=SEARCH, stage={"epochs": 2})
    for operation in door.context.searcher.operations():
        door.context.train.report_training_metrics(9, {"loss": 1.0})
        operation.report_completed(1.0)
    door.context.close()
    assert "No checkpoint of step 9 was saved" in caplog.text


def test_an_operation_that_nobody_reports_as_completed_counts_as_it(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    for _ in door.context.searcher.operations():
        door.context.train.report_validation_metrics(1, {"loss": 1.0})
    door.context.close()
    assert not door.context.run.outcome().stopped


def test_a_trial_of_a_search_that_has_not_reported_its_metric_fails(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path, config=SEARCH)
    door.context.train.report_validation_metrics(1, {"accuracy": 1.0})
    with pytest.raises(TrialDefinitionError, match=r"searcher\.metric is 'loss'"):
        door.context.close()


@pytest.mark.parametrize("acknowledges", [True, False])
def test_a_training_that_was_asked_to_end_goes_on_later(tmp_path: Path, acknowledges: bool) -> None:
    door = WorkerDoor(tmp_path)
    door.context.train.report_training_metrics(1, {"loss": 1.0})
    assert not door.context.preempt.should_preempt()
    door.reports.stop = True
    while not door.context.preempt.should_preempt(auto_ack=False):
        door.context.train.report_training_metrics(1, {"loss": 1.0})
    if acknowledges:
        door.context.preempt.acknowledge_preemption_signal()
    door.context.close()
    assert door.context.run.outcome().stopped is acknowledges


def test_invalid_hyperparameters_are_no_failure(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    with door.context as context:
        context.train.report_early_exit(core.EarlyExitReason.INVALID_HP)
    assert isinstance(door.error, InvalidHP)


def test_an_exit_of_the_script_is_its_end(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    with pytest.raises(SystemExit), door.context:
        raise SystemExit(0)
    assert door.error is None
    assert not door.context.run.outcome().stopped


def test_a_loss_that_is_not_a_number_ends_a_trial_of_a_search(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path, config=SEARCH)
    with pytest.raises(DivergedError, match="loss became NaN"), door.context as context:
        context.train.report_training_metrics(1, {"loss": float("nan")})


def test_a_loss_that_is_gathered_with_others_ends_it_too(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path, config=SEARCH)
    losses = [1.0] * 5 + [float("nan")]
    for step, loss in enumerate(losses, 1):
        door.context.train.report_training_metrics(step, {"loss": loss})
    with pytest.raises(DivergedError, match="loss became NaN"):
        door.context.close()
    assert len(door.rows("training")) == len(losses)


def test_a_quick_loop_reports_every_row_in_order(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    with door.context as context:
        for step in range(1, 20_001):
            context.train.report_training_metrics(step, {"loss": float(step)})
            if step % 5_000 == 0:
                context.train.report_validation_metrics(step, {"loss": float(step)})
        context.train.report_training_metrics(7, {"loss": 7.0})
    rows = door.rows("training")
    assert [row["loss"] for row in rows] == [*map(float, range(1, 20_001)), 7.0]
    assert [row["batch"] for row in rows] == list(range(1, 20_002))
    validations = [report["batches"][-1] for report in door.reports.of("metrics") if report["kind"] == "validation"]
    assert validations == [5_000, 10_000, 15_000, 20_000]


def test_rows_that_come_in_parts_are_in_few_reports(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    with door.context as context:
        for step in range(1, 501):
            context.train.report_training_metrics(step, {"loss": float(step)})
            context.train.report_training_metrics(step, {"rate": 0.5} if step % 2 else {"norm": 2.0})
    expected = [
        {"batch": step, "loss": float(step), **({"rate": 0.5} if step % 2 else {"norm": 2.0})} for step in range(1, 501)
    ]
    assert door.rows("training") == expected
    assert len(door.reports.of("metrics")) < 250


def saved(folder: Path) -> Any:
    """Return the checkpoint of a first run."""
    door = WorkerDoor(folder)
    with door.context.checkpoint.store_path({"steps_completed": 5}) as (path, uuid):
        (path / "state").write_text("5")
    door.context.close()
    return CheckpointStorage(str(folder / "checkpoints")).manifest(uuid)


@pytest.mark.parametrize(("reads", "first", "begins"), [(True, 1, 5), (False, 6, 5), (False, 1, 0)])
def test_a_run_begins_where_its_code_has_begun(tmp_path: Path, reads: bool, first: int, begins: int) -> None:
    resume = saved(tmp_path)
    (tmp_path / "spool").rename(tmp_path / "spool of before")
    door = WorkerDoor(tmp_path, resume=resume)
    if reads:
        with door.context.checkpoint.restore_path(resume.uuid) as path:
            assert (path / "state").read_text() == "5"
    door.context.train.report_training_metrics(first, {"loss": 1.0})
    door.context.close()
    assert started(door) == [begins]


def test_the_profiler_measures(tmp_path: Path) -> None:
    door = WorkerDoor(tmp_path)
    door.context.profiler.on(sampling_interval=0.01)
    while not door.reports.of("system"):
        door.context.train.report_training_metrics(1, {"loss": 1.0})
    door.context.profiler.off()
    door.context.close()


def test_what_the_process_knows_of_its_trial() -> None:
    interpreter = Interpreter(python="3.12.1", executable="python")
    bundle = BundleManifest(protocol=1, interpreter=interpreter, program=Program(kind="script", framework="core"))
    gang = Gang(
        rank=1, size=2, local_rank=0, local_size=1, cross_rank=1, cross_size=2, rendezvous="", address="10.0.0.2",
        local_sizes=[1, 1],
    )  # fmt: skip
    job = TrialJob(
        protocol=1,
        directory="/runs/r",
        blobs="",
        bundle=bundle,
        bundle_id="b",
        checkpoints="",
        master_url="http://master",
        token="secret",
        run_id="r",
        experiment_id=3,
        trial_id=4,
        config={"data": {"path": "x"}},
        hparams={"lr": 0.1},
        trial_seed=7,
        gang=gang,
        slots=[1, 1],
        devices=["GPU-1"],
    )
    info = info_of(job)
    assert (info.trial.experiment_id, info.trial.trial_id, info.trial.trial_seed, info.trial.hparams) == (
        3,
        4,
        7,
        {"lr": 0.1},
    )
    assert info.user_data == {"path": "x"}
    assert (info.latest_checkpoint, info.gpu_uuids, info.container_rank) == (None, ["GPU-1"], 1)
    assert info.container_slot_counts == [1, 1]
    assert "secret" not in repr(info)
