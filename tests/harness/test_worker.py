"""Whole runs in real worker processes: killed at many moments, failing, stopped, checked, loaded back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import sklearn.datasets
import torch
from det_harness.program.earlier import files_on_worker
from det_harness.program.load import load_checkpoint
from det_harness.trial.spool import read_spool
from harness_bundles import call_in, cell
from pydantic import TypeAdapter
from reports_app import ReportsMaster, serving
from worker_program import TRAIN, Starter, Worker, program

from det_native import PROTOCOL
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.manifests import Cell, CheckpointManifest
from det_native.schema.rest import BundleChecked, CheckpointReport, MetricsReport, Report, StartedReport
from det_native.schema.states import ExitReason
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

# What the first use of these libraries leaves in a process: before any test is watched.
sklearn.datasets.load_digits()
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)


@pytest.fixture
def master() -> Iterator[ReportsMaster]:
    made = ReportsMaster()
    with serving(made):
        yield made


@pytest.fixture
def worker(tmp_path: Path, master: ReportsMaster, starter: Starter) -> Worker:
    return Worker(tmp_path, master.url, starter)


_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def latest(worker: Worker) -> CheckpointManifest | None:
    found = CheckpointStorage(worker.checkpoints).list()
    return max(found, key=lambda manifest: manifest.batch, default=None)


def state(worker: Worker, manifest: CheckpointManifest) -> dict[str, Any]:
    with CheckpointStorage(worker.checkpoints).open(manifest.uuid, "state_dict.pth") as stream:
        loaded: dict[str, Any] = torch.load(stream, weights_only=True)
    return loaded


def rows(master: ReportsMaster) -> dict[int, float | None]:
    """Return the loss by batch, later runs owning the batches after their start."""
    found: dict[int, float | None] = {}
    for report in master.reports:
        if isinstance(report, StartedReport):
            found = {batch: value for batch, value in found.items() if batch <= report.batch}
        elif isinstance(report, MetricsReport) and "loss" in report.metrics:
            found.update(zip(report.batches, report.metrics["loss"], strict=True))
    return found


def test_a_worker_killed_again_and_again_ends_with_the_same_weights(tmp_path: Path, starter: Starter) -> None:
    deaths = {("batch", 5), ("batch", 21), ("checkpoint", 28)}
    ends = []
    for name, planned in (("whole", set()), ("killed", deaths)):
        worker = Worker(tmp_path / name, "", starter)
        codes: list[int] = []
        losses: dict[int, float | None] = {}
        resume: CheckpointManifest | None = None
        while not codes or codes[-1] == -signal.SIGKILL:
            master = ReportsMaster()
            with serving(master):
                worker.url = master.url
                job = worker.job(worker.bundle(deaths=planned), resume=resume)
                codes.append(worker.run(job))
                assert codes[-1] in (0, -signal.SIGKILL), worker.output(job)
            take_what_was_left(master, job)
            start, length = next((one.batch, one.length) for one in master.reports if isinstance(one, StartedReport))
            assert length == 60
            losses = {batch: loss for batch, loss in losses.items() if batch <= start} | rows(master)
            saved = [report.manifest for report in master.reports if isinstance(report, CheckpointReport)]
            resume = saved[-1] if saved else resume
        final = latest(worker)
        assert final is not None
        assert final.batch == 60
        assert worker.exit(job).reason is ExitReason.COMPLETED
        ends.append((len(codes), state(worker, final), losses))
    assert [count for count, _, _ in ends] == [1, 4]
    assert_same(ends[0][1], ends[1][1])
    assert ends[0][2] == ends[1][2]
    assert sorted(ends[0][2]) == list(range(1, 61))
    incoming = tmp_path / "killed" / "checkpoints"
    complete = {manifest.uuid for manifest in CheckpointStorage(str(incoming)).list()}
    assert {path.name for path in incoming.iterdir() if not path.name.startswith(".")} == complete


def between(moment: str) -> list[Cell]:
    """Return the program, made to die where the worker has published its second checkpoint, or has noted its report."""
    hooks = {
        "published": """
from det_native.storage.checkpoints import CheckpointStorage
publish = CheckpointStorage.publish
def deadly(storage, folder, manifest, *further):
    found = publish(storage, folder, manifest, *further)
    fate("published", manifest.batch)
    return found
CheckpointStorage.publish = deadly
""",
        "reported": """
from det_harness.trial.spool import Spool
append = Spool.append
def deadly(spool, seq, report, **options):
    append(spool, seq, report, **options)
    if '"type":"checkpoint"' in report and '"batch":16,' in report:
        fate("reported", 16)
Spool.append = deadly
""",
    }
    first, data, *others = program("train(Digits)  # <- call")
    return [first, data, cell(3, hooks[moment]), *others]


@pytest.mark.long
@pytest.mark.parametrize("moment", ["published", "reported"])
def test_a_checkpoint_whose_worker_was_killed_stays_only_if_it_was_reported(
    moment: str, tmp_path: Path, starter: Starter
) -> None:
    worker = Worker(tmp_path, "", starter)
    bundle = worker.bundle(deaths={(moment, 16)}, cells=between(moment))
    reported: list[CheckpointManifest] = []
    on_disk: list[set[str]] = []
    for code in (-signal.SIGKILL, 0):
        master = ReportsMaster()
        with serving(master):
            worker.url = master.url
            job = worker.job(bundle, resume=reported[-1] if reported else None)
            assert worker.run(job) == code, worker.output(job)
        take_what_was_left(master, job)
        reported += [report.manifest for report in master.reports if isinstance(report, CheckpointReport)]
        on_disk.append({manifest.uuid for manifest in CheckpointStorage(worker.checkpoints).list()})
    known = {manifest.uuid for manifest in reported}
    assert len(on_disk[0]) == 2
    assert len(on_disk[0] - known) == (1 if moment == "published" else 0)
    assert on_disk[1] == known
    assert not any((tmp_path / "runs" / ".publishing").iterdir())


def take_what_was_left(master: ReportsMaster, job: TrialJob) -> None:
    """Take the reports that a dead worker left in its spool, as the master does."""
    for line in read_spool(Path(job.directory) / "spool"):
        report = _REPORT.validate_json(line)
        if report.seq == len(master.reports) + 1:
            master.reports.append(report)


def assert_same(first: Any, second: Any) -> None:
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_a_run_reports_from_start_to_end(worker: Worker, master: ReportsMaster) -> None:
    job = worker.job(worker.bundle())
    assert worker.run(job) == 0, worker.output(job)
    kinds = [report.type for report in master.reports]
    assert kinds[0] == "started"
    assert kinds[-1] == "exit"
    assert rows(master).keys() == set(range(1, 61))
    checkpoints = [report for report in master.reports if isinstance(report, CheckpointReport)]
    assert checkpoints[-1].manifest.batch == 60
    assert checkpoints[-1].manifest.bundle_id == job.bundle_id
    assert worker.exit(job).batch == 60
    assert not any(Path(job.directory, "spool").iterdir())


def test_the_program_knows_which_trial_it_runs_for(worker: Worker) -> None:
    asks = "import det_native as det\ninfo = det.get_cluster_info()\nprint(info.trial.hparams, info.latest_checkpoint)"
    made = program(asks, "train(Digits)  # <- call")
    job = worker.job(worker.bundle(cells=made), config={"searcher": {"max_length": {"batches": 1}}})
    assert worker.run(job) == 0, worker.output(job)
    assert "{'global_batch_size': 64} None" in worker.output(job)


@pytest.mark.long
def test_a_warning_of_tensorflow_stands_once_in_the_output() -> None:
    code = (
        "import tensorflow as tf\nfrom det_harness.worker.job import log_to_output\nlog_to_output()\n"
        "tf.get_logger().warning('take care')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert [line for line in done.stderr.splitlines() if "take care" in line] == ["WARNING: take care"]


def test_sigterm_checkpoints_and_ends(worker: Worker, master: ReportsMaster) -> None:
    config = {"searcher": {"metric": "accuracy", "max_length": {"batches": 1_000_000}}}
    job = worker.job(worker.bundle(), config=config)
    process = worker.start(job)
    master.wait_for(lambda: bool(rows(master)), timeout=60)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == 0, worker.output(job)
    end = worker.exit(job)
    assert end.reason is ExitReason.STOPPED
    saved = latest(worker)
    assert saved is not None
    assert saved.batch == end.batch > 0


@pytest.mark.long
def test_sigterm_to_the_loader_workers_too_ends_as_well(worker: Worker, master: ReportsMaster) -> None:
    loading = """
class Loads(Digits):
    def build_training_data_loader(self):
        return DataLoader(data, batch_size=64, shuffle=True, num_workers=2)
"""
    config = {"searcher": {"metric": "accuracy", "max_length": {"batches": 1_000_000}}}
    job = worker.job(worker.bundle(cells=program(loading, "train(Loads)  # <- call")), config=config)
    process = worker.start(job)
    master.wait_for(lambda: bool(rows(master)), timeout=60)
    trained = psutil.Process(process.pid)
    loaders = trained.children(recursive=True)
    assert len(loaders) >= 2
    for one in (*loaders, trained):
        one.send_signal(signal.SIGTERM)
    assert process.wait() == 0, worker.output(job)
    assert worker.exit(job).reason is ExitReason.STOPPED
    assert psutil.wait_procs(loaders, timeout=60)[1] == []


def test_the_master_can_ask_for_the_end(worker: Worker, master: ReportsMaster) -> None:
    config = {"searcher": {"metric": "accuracy", "max_length": {"batches": 1_000_000}}}
    job = worker.job(worker.bundle(), config=config)
    process = worker.start(job)
    master.wait_for(lambda: bool(rows(master)), timeout=60)
    master.stop = True
    assert process.wait() == 0, worker.output(job)
    assert worker.exit(job).reason is ExitReason.STOPPED


def test_an_error_in_a_cell_comes_back_with_cell_line_and_batch(worker: Worker) -> None:
    failing = """
class Fails(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 12:
            raise ValueError("no such luck")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
    job = worker.job(worker.bundle(cells=program(failing, "train(Fails)  # <- call")))
    assert worker.run(job) == 1
    end = worker.exit(job)
    assert end.reason is ExitReason.USER_ERROR
    assert end.batch == 12
    error = end.error
    assert error is not None
    assert (error.type, error.message, error.cell, error.line, error.batch) == ("ValueError", "no such luck", 5, 5, 13)
    assert 'Cell [5], line 5, in train_batch\n    raise ValueError("no such luck")' in error.traceback
    assert "Cell [6], line 1" in error.traceback
    assert "controllers" not in error.traceback
    assert "no such luck" in worker.output(job)


def test_an_error_before_training_and_one_of_the_worker(worker: Worker) -> None:
    early = worker.job(worker.bundle(cells=program("1 / 0\ntrain(Digits)  # <- call")))
    assert worker.run(early) == 1
    error = worker.exit(early).error
    assert error is not None
    assert (error.type, error.cell, error.line, error.batch) == ("ZeroDivisionError", 5, 1, 0)

    ours = "from det_native.errors import MasterUnreachableError\nraise MasterUnreachableError('none here')"
    asked = worker.job(worker.bundle(cells=program(ours, "train(Digits)  # <- call")))
    assert worker.run(asked) == 1
    assert worker.exit(asked).reason is ExitReason.USER_ERROR
    error = worker.exit(asked).error
    assert error is not None
    assert (error.type, error.cell, error.line) == ("MasterUnreachableError", 5, 2)

    old = worker.job(worker.bundle(python="3.1.4"))
    assert worker.run(old) == 3
    assert worker.exit(old).reason is ExitReason.HARNESS_ERROR
    assert "Python 3.1" in worker.output(old)


@pytest.mark.long
@pytest.mark.parametrize(
    "broken",
    [
        'shutil.rmtree(checkpoints, ignore_errors=True); pathlib.Path(checkpoints).write_text("no folder")',
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, resource.RLIM_INFINITY))",
    ],
    ids=["the storage is gone", "the disk takes no more"],
)
def test_what_fails_in_the_worker_under_the_users_call_is_not_the_users_error(worker: Worker, broken: str) -> None:
    breaking = f"""
import pathlib, resource, shutil
checkpoints = {worker.checkpoints!r}
class Breaks(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 7:  # the checkpoint that is due after this batch cannot be written
            {broken}
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
    job = worker.job(worker.bundle(cells=program(breaking, "train(Breaks)  # <- call")))
    assert worker.run(job) == 3
    end = worker.exit(job)
    assert end.reason is ExitReason.HARNESS_ERROR
    assert end.batch == 8
    error = end.error
    assert error is not None
    assert (error.type, error.cell, error.line, error.traceback) == ("StorageError", None, None, "")
    assert worker.checkpoints in error.message
    assert "The worker failed." in worker.output(job)
    assert "train(Breaks)" in worker.output(job)


@pytest.mark.long
def test_the_same_kind_of_error_raised_by_the_users_own_code_is_the_users(worker: Worker) -> None:
    raising = """
from det_native.errors import StorageError
class Raises(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        raise StorageError("my own bucket is full")
"""
    job = worker.job(worker.bundle(cells=program(raising, "train(Raises)  # <- call")))
    assert worker.run(job) == 1
    end = worker.exit(job)
    assert end.reason is ExitReason.USER_ERROR
    error = end.error
    assert error is not None
    assert (error.type, error.cell, error.line) == ("StorageError", 5, 5)


def check(worker: Worker, name: str, **made: Any) -> BundleChecked:
    directory = worker.folder / name
    job = CheckJob(protocol=PROTOCOL, directory=str(directory), blobs=worker.blobs.uri, bundle=worker.bundle(**made))
    assert worker.run(job) == 0, worker.output(job)
    return BundleChecked.model_validate_json((directory / "result.json").read_bytes())


def test_a_bundle_is_checked_without_running_its_cells(worker: Worker) -> None:
    good = [cell(1, f"{TRAIN}\nimport helper\nraise SystemExit('cells are not run')\ntrain(deaths)  # <- call")]
    assert check(worker, "good", cells=good, files={"helper.py": "X = 1"}) == BundleChecked(ok=True)

    bad = [cell(1, f"{TRAIN}\nimport helper\ntrain(deaths)  # <- call")]
    result = check(worker, "bad", cells=bad, files={"helper.py": "1 / 0"})
    assert not result.ok
    assert any("helper" in one.where and "File helper.py, line 1" in one.what for one in result.problems)

    broken = [cell(3, "def f(:\n  pass"), cell(4, f"{TRAIN}\ntrain(1)  # <- call")]
    result = check(worker, "broken", cells=broken)
    assert [one.where for one in result.problems] == ["cell [3], line 1"]


@pytest.mark.long
def test_a_checkpoint_loads_back_in_this_process(worker: Worker, tmp_path: Path, monkeypatch: Any) -> None:
    job = worker.job(worker.bundle())
    assert worker.run(job) == 0, worker.output(job)
    manifest = latest(worker)
    assert manifest is not None
    folder = tmp_path / "download"
    CheckpointStorage(worker.checkpoints).fetch(manifest.uuid, folder)
    monkeypatch.syspath_prepend(str(worker.folder / "api"))
    environment = TrialEnvironment(config=job.config, hparams=job.hparams, trial_seed=job.trial_seed)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    trial = load_checkpoint(job.bundle, worker.blobs.read, folder, manifest, environment, files_on_worker({}))
    assert torch.equal(torch.rand(2), expected)
    assert type(trial).__name__ == "Digits"
    assert_same(trial.model.state_dict(), state(worker, manifest)["models_state_dict"][0])
    images, labels = trial.build_validation_data_loader().dataset.tensors
    with torch.no_grad():
        assert (trial.model(images).argmax(1) == labels).float().mean() > 0.8
    assert call_in(list(job.bundle.program.cells)) == job.bundle.program.call
