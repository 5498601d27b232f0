"""Files that the code of a trial writes, reported by real workers that complete, fail, are stopped and are killed."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn.datasets
import torch
from det_harness.trial import written_files
from det_harness.trial.written_files import WrittenFiles
from harness_bundles import cell
from reports_app import ReportsMaster, serving
from worker_program import DATA, TRAIN, TRIAL, Starter, Worker

from det_native.schema.job import TrialJob
from det_native.schema.manifests import Cell
from det_native.schema.outputs import ArtifactsReport, WrittenFile
from det_native.schema.rest import ExitReport
from det_native.schema.states import ExitReason
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.file_states import BASELINE_NAME, Baseline, Limits
from det_native.storage.written_files import limits_of

pytestmark = pytest.mark.slow

# What the first use of these libraries leaves in a process: before any test is watched.
sklearn.datasets.load_digits()
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)

WRITING = """
import pathlib
pathlib.Path("made-before.txt").write_text("before")
print(len(pathlib.Path("data.csv").read_text()))

class Writing(Digits):
    def __init__(self, context):
        super().__init__(context)
        pathlib.Path("in-init.txt").write_text("1")
        self.log = open("log.csv", "w")
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.log.write(f"{batch_idx}\\n")
        pathlib.Path("samples").mkdir(exist_ok=True)
        pathlib.Path(f"samples/{batch_idx // 20}.txt").write_text(str(batch_idx))
        torch.save(self.model.state_dict(), "best.pt")
        act(batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
FILES = {"data.csv": "of the bundle", "log.csv": "stale"}


@pytest.fixture
def master() -> Iterator[ReportsMaster]:
    made = ReportsMaster()
    with serving(made):
        yield made


@pytest.fixture
def worker(tmp_path: Path, master: ReportsMaster, starter: Starter) -> Worker:
    return Worker(tmp_path, master.url, starter)


def cells(act: str) -> list[Cell]:
    body = f"def act(batch):\n    {act}\n"
    return [
        cell(1, TRAIN),
        cell(2, DATA),
        cell(4, TRIAL),
        cell(5, body + WRITING),
        cell(6, "train(Writing)  # <- call"),
    ]


def job_of(worker: Worker, act: str) -> TrialJob:
    return worker.job(worker.bundle(cells=cells(act), files=FILES))


def shown(reports: list[object]) -> dict[str, WrittenFile]:
    files: dict[str, WrittenFile] = {}
    for report in reports:
        if isinstance(report, ArtifactsReport):
            files.update({file.path: file for file in report.files})
            for path in report.removed:
                del files[path]
    return files


def text(worker: Worker, file: WrittenFile) -> str:
    assert file.sha256 is not None
    return worker.blobs.read(file.sha256).decode()


def test_what_the_training_wrote_is_reported_before_the_end(worker: Worker, master: ReportsMaster) -> None:
    job = job_of(worker, "pass")
    assert worker.run(job) == 0, worker.output(job)
    files = shown(list(master.reports))
    assert set(files) == {"in-init.txt", "log.csv", "best.pt", "samples/0.txt", "samples/1.txt", "samples/2.txt"}
    assert isinstance(master.reports[-1], ExitReport)
    assert text(worker, files["samples/2.txt"]) == "59"
    # The file was never closed, and its end lay in a buffer.
    assert text(worker, files["log.csv"]).splitlines() == [str(number) for number in range(60)]
    assert files["log.csv"].batch == 60
    assert not (Path(job.directory) / BASELINE_NAME).exists()


def test_what_a_failed_training_wrote_is_reported(worker: Worker, master: ReportsMaster) -> None:
    job = job_of(worker, "1 / (batch - 30)")
    assert worker.run(job) == 1
    files = shown(list(master.reports))
    assert text(worker, files["log.csv"]).splitlines()[-1] == "30"
    assert worker.exit(job).reason is ExitReason.USER_ERROR


def test_what_a_stopped_training_wrote_is_reported(worker: Worker, master: ReportsMaster) -> None:
    job = job_of(worker, "batch == 12 and os.kill(os.getpid(), signal.SIGTERM)")
    assert worker.run(job) == 0
    assert worker.exit(job).reason is ExitReason.STOPPED
    assert text(worker, shown(list(master.reports))["log.csv"]).splitlines()[-1] in ("12", "13")


def test_a_killed_worker_leaves_what_was_there_when_training_began(worker: Worker) -> None:
    job = job_of(worker, "batch == 12 and os.kill(os.getpid(), signal.SIGKILL)")
    assert worker.run(job) == -signal.SIGKILL
    baseline = Baseline.read(Path(job.directory))
    assert baseline is not None
    assert set(baseline.states) == {"data.csv", "log.csv", "made-before.txt"}
    assert baseline.limits == Limits()


def test_too_much_is_told_and_the_training_goes_on(worker: Worker, master: ReportsMaster) -> None:
    limited = cell(3, "os.environ['DET_ARTIFACTS_MB'] = '0.02'")
    parts = cells("batch == 5 and open('huge.bin', 'wb').write(bytes(40_000))")
    job = worker.job(worker.bundle(cells=[*parts[:2], limited, *parts[2:]], files=FILES))
    assert worker.run(job) == 0, worker.output(job)
    huge = shown(list(master.reports))["huge.bin"]
    assert huge.sha256 is None
    assert "DET_ARTIFACTS_MB" in huge.note
    assert worker.output(job).count("huge.bin, which the training has written, is not kept") == 1
    assert worker.exit(job).reason is ExitReason.COMPLETED


def test_a_run_that_goes_on_has_the_files_of_its_checkpoint_and_reports_them_anew(
    worker: Worker, starter: Starter
) -> None:
    act = "fate('batch', batch + 1)"
    bundle = worker.bundle(cells=cells(act), files=FILES, deaths={("batch", 31)})
    first = worker.job(bundle)
    assert worker.run(first) == -signal.SIGKILL
    saved = max(CheckpointStorage(worker.checkpoints).list(), key=lambda manifest: manifest.batch)
    assert 0 < saved.batch < 31
    master = ReportsMaster()
    with serving(master):
        worker.url = master.url
        second = worker.job(bundle, resume=saved)
        assert worker.run(second) == 0, worker.output(second)
    files = shown(list(master.reports))
    assert {"in-init.txt", "log.csv", "best.pt", "samples/0.txt", "samples/1.txt", "samples/2.txt"} == set(files)
    assert text(worker, files["log.csv"]).splitlines() == [str(number) for number in range(60)]
    assert text(worker, files["samples/0.txt"]) == "19"  # of the first run


class Reported:
    """Keeps what is reported, and tells when there is some."""

    def __init__(self) -> None:
        self.files: dict[str, WrittenFile] = {}
        self._changed = threading.Condition()

    def __call__(self, files: list[WrittenFile], removed: list[str]) -> None:
        with self._changed:
            self.files.update({file.path: file for file in files})
            for path in removed:
                del self.files[path]
            self._changed.notify_all()

    def wait_for(self, path: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: path in self.files, 60.0)


def written(folder: Path, reported: Reported, rank: int = 0, ranks: int = 1) -> WrittenFiles:
    (folder / "work").mkdir(parents=True, exist_ok=True)
    blobs = BlobStore(str(folder / "blobs"))
    return WrittenFiles(folder, rank=rank, ranks=ranks, blobs=lambda: blobs, report=reported, batches=lambda: 3)


def test_files_are_reported_while_the_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "INTERVAL", 0.1)
    reported = Reported()
    files = written(tmp_path, reported)
    files.begin()
    (tmp_path / "work" / "log.csv").write_text("1")
    reported.wait_for("log.csv")
    files.end()


def test_a_checkpoint_has_them_looked_at_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "INTERVAL", 1_000.0)
    monkeypatch.setattr("det_native.storage.written_files.STILL_NS", 0)
    reported = Reported()
    files = written(tmp_path, reported)
    files.begin()
    (tmp_path / "work" / "log.csv").write_text("1")
    files.look_soon()
    reported.wait_for("log.csv")
    files.end()


def test_the_first_process_reports_the_files_of_all(tmp_path: Path) -> None:
    reported = Reported()
    first = written(tmp_path, reported, ranks=2)
    second = written(tmp_path / "rank-1", reported, rank=1, ranks=2)
    (tmp_path / "rank-1" / "work" / "data.csv").write_text("before")
    for process in (second, first):
        process.begin()
    for rank, work in enumerate((tmp_path / "work", tmp_path / "rank-1" / "work")):
        (work / "shared").write_text(f"of {rank}")
        (work / f"of-{rank}").write_text("own")
    second.end()
    assert reported.files == {}
    first.end()
    assert set(reported.files) == {"of-0", "of-1", "shared"}
    sha256 = reported.files["shared"].sha256
    assert sha256 is not None
    assert BlobStore(str(tmp_path / "blobs")).read(sha256) == b"of 0"


def test_nothing_that_goes_wrong_ends_the_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(files: list[WrittenFile], removed: list[str]) -> None:
        raise RuntimeError("no way")

    (tmp_path / "work").mkdir()
    blobs = BlobStore(str(tmp_path / "blobs"))
    files = WrittenFiles(tmp_path, rank=0, ranks=1, blobs=lambda: blobs, report=refuse, batches=lambda: 3)
    files.begin()
    (tmp_path / "work" / "log.csv").write_text("1")
    with caplog.at_level(logging.ERROR):
        files.end()
    assert "cannot be reported" in caplog.text
    assert (tmp_path / BASELINE_NAME).exists()  # the master looks


def test_limits_are_taken_from_the_environment(caplog: pytest.LogCaptureFixture) -> None:
    assert limits_of({}) == Limits(1_000_000_000, 10_000)
    assert limits_of({"DET_ARTIFACTS_MB": "2.5", "DET_ARTIFACTS_FILES": "7"}) == Limits(2_500_000, 7)
    assert limits_of({"DET_ARTIFACTS_MB": "much", "DET_ARTIFACTS_FILES": "-1"}) == Limits()
    assert "DET_ARTIFACTS_MB='much'" in caplog.text
