"""Reports from a worker to a master, through a spool on disk and a real server."""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool, read_spool
from det_harness.worker.connection import MasterConnection, session_of_run
from hypothesis import given
from hypothesis import strategies as st
from reports_app import ReportsMaster, serving

from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import MetricsReport, ReportsAccepted
from det_native.schema.states import ExitReason, MetricKind

MANIFEST = CheckpointManifest(
    uuid="u",
    framework="torch",
    framework_version="1",
    det_version="1",
    batch=2,
    experiment_id=1,
    trial_id=1,
    run_id="r",
    bundle_id=None,
    hparams={},
    created="now",
)


def reporter_for(master: ReportsMaster, spool: Path, **options: Any) -> SpoolReporter:
    return SpoolReporter(
        MasterConnection(session_of_run(master.url, "token"), "r"), Spool(spool), metric="loss", **options
    )


def training_rows(master: ReportsMaster) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"batch": []}
    for report in master.reports:
        if isinstance(report, MetricsReport) and report.kind is MetricKind.TRAINING:
            columns["batch"] += report.batches
            for name, values in report.metrics.items():
                columns.setdefault(name, []).extend(values)
    return columns


def test_everything_arrives_once_and_in_order(tmp_path: Path) -> None:
    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.started(0)
        for batch in range(1, 501):
            reporter.training([batch], {"loss": [1.0 / batch], "odd": [float("nan") if batch % 2 else None]})
        reporter.validation(500, {"loss": 0.5})
        reporter.checkpoint("here", MANIFEST)
        reporter.exit(ExitReason.COMPLETED, 500)
        assert reporter.close(10)
    kinds = [report.type for report in master.reports]
    assert kinds[0] == "started"
    assert kinds[-3:] == ["metrics", "checkpoint", "exit"]
    rows = training_rows(master)
    assert rows["batch"] == list(range(1, 501))
    assert rows["loss"] == [1.0 / batch for batch in range(1, 501)]
    assert rows["odd"][1] is None
    assert rows["odd"][0] != rows["odd"][0]
    assert master.requests < 60, "rows are gathered into few requests"
    assert list(tmp_path.iterdir()) == [], "what the master has stored is gone from the spool"


def test_a_validation_reports_what_is_no_number_too(tmp_path: Path) -> None:
    master = ReportsMaster()
    metrics = {"loss": 0.5, "f1": math.inf, "note": "cat", "nested": {"a": [math.nan, [1.0, None]]}}
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.started(0)
        reporter.validation(4, metrics)
        assert reporter.close(10)
    [report] = [report for report in master.reports if isinstance(report, MetricsReport)]
    assert report.row(0) == metrics | {"nested": {"a": ["NaN", [1.0, None]]}}
    assert MetricsReport.model_validate_json(report.model_dump_json()) == report


def test_the_first_metrics_do_not_wait(tmp_path: Path) -> None:
    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path, interval=600.0)
        reporter.started(0)
        master.wait_for(lambda: len(master.reports) == 1)
        reporter.training([1], {"loss": [1.0]})
        master.wait_for(lambda: len(master.reports) == 2, timeout=60)
        reporter.training([2], {"loss": [1.0]})
        reporter.validation(2, {"loss": 1.0})
        master.wait_for(lambda: len(master.reports) == 4, timeout=60)
        reporter.close()


def test_rows_are_gathered_for_as_long_as_the_master_asks(tmp_path: Path) -> None:
    master = ReportsMaster(interval=1.0)
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.started(0)
        master.wait_for(lambda: len(master.reports) == 1)
        begun = time.monotonic()
        reporter.training([1], {"loss": [1.0]})
        master.wait_for(lambda: len(master.reports) == 2, timeout=60)
        reporter.training([2], {"loss": [1.0]})
        master.wait_for(lambda: len(master.reports) == 3, timeout=60)
        assert time.monotonic() - begun >= 1.0
        reporter.close()


def test_a_master_that_is_away_loses_nothing_and_never_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send, senders = MasterConnection.send, set()

    def noted(connection: MasterConnection, reports: list[str], progress: int | None = None) -> ReportsAccepted:
        senders.add(threading.current_thread().name)
        return send(connection, reports, progress)

    monkeypatch.setattr(MasterConnection, "send", noted)
    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.started(0)
        master.wait_for(lambda: len(master.reports) == 1)
    for batch in range(1, 101):
        reporter.training([batch], {"loss": [float(batch)]})
        if batch % 10 == 0:
            reporter.validation(batch, {"loss": float(batch)})
    assert len(master.reports) == 1, "the others wait on disk: the master comes back only now"
    assert reporter.best_metric() == 10.0
    with serving(master):
        assert reporter.close(20)
    assert senders == {"det-reports"}, "whoever reports does not wait for what is sent"
    assert training_rows(master)["batch"] == list(range(1, 101))
    assert [report.seq for report in master.reports] == list(range(1, len(master.reports) + 1))


def test_lost_replies_bring_no_duplicates(tmp_path: Path) -> None:
    master = ReportsMaster(lose_replies=3)
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        for batch in range(1, 6):
            reporter.validation(batch, {"loss": 1.0})
        assert reporter.close(20)
    assert [report.seq for report in master.reports] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("status", [409, 401, 404])
def test_a_run_that_is_no_longer_wanted_is_told_to_end(tmp_path: Path, status: int) -> None:
    master = ReportsMaster(refuse=status)
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.validation(1, {"loss": 1.0})
        master.wait_for(lambda: master.requests > 0)
        assert not reporter.close(5)
    assert reporter.stop_requested
    assert len(list(read_spool(tmp_path))) == 1


def test_the_reply_can_ask_for_an_end_even_when_nothing_is_reported(tmp_path: Path) -> None:
    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        reporter.started(0)
        master.wait_for(lambda: len(master.reports) == 1)
        assert not reporter.stop_requested
        master.stop = True
        requests = master.requests
        master.wait_for(lambda: master.requests > requests)
        reporter.close(5)
    assert reporter.stop_requested


def test_what_was_not_sent_stays_for_the_master_to_read(tmp_path: Path) -> None:
    master = ReportsMaster()
    with serving(master):
        pass
    reporter = reporter_for(master, tmp_path)
    reporter.training([1, 2], {"loss": [1.0, float("inf")]})
    reporter.exit(ExitReason.COMPLETED, 2)
    assert not reporter.close(0.3)
    left = [json.loads(line) for line in read_spool(tmp_path)]
    assert [report["seq"] for report in left] == [1, 2]
    assert left[0]["metrics"]["loss"] == [1.0, "Infinity"]
    assert left[1]["type"] == "exit"


def test_the_best_metric_is_that_of_master_and_run_before_the_last_validation(tmp_path: Path) -> None:
    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        assert reporter.best_metric() is None
        reporter.validation(1, {"loss": 3.0})
        assert reporter.best_metric() is None
        reporter.validation(2, {"loss": 2.0})
        assert reporter.best_metric() == 3.0
        reporter.validation(3, {"loss": -math.inf})
        reporter.validation(4, {"loss": 2.5})
        assert reporter.best_metric() == 2.0, "an infinite value is no result"
        master.best = 1.5
        assert reporter.best_metric() == 1.5
        reporter.close()


def test_a_master_that_does_not_tell_the_best_metric_is_named_once_for_each_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> int:
        return sum("best metric is not known" in record.message for record in caplog.records)

    master = ReportsMaster()
    with serving(master):
        reporter = reporter_for(master, tmp_path)
        assert reporter.best_metric() is None
        assert warnings() == 0
    for loss in (1, 2):
        assert [reporter.best_metric() for _ in range(3)] == [None, None, None]
        assert warnings() == loss
        with serving(master):
            master.best = 1.5
            assert reporter.best_metric() == 1.5
            master.best = None
    with serving(master):
        assert reporter.close(20)


@given(st.lists(st.one_of(st.integers(1, 60), st.just("read"), st.just("confirm")), max_size=60))
def test_a_spool_gives_back_what_it_was_given(operations: list[Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder), segment_bytes=100)
        written = confirmed = 0
        batch = None
        for operation in operations:
            if operation == "read":
                batch = spool.read()
                expected = list(range(confirmed + 1, written + 1))
                got = [json.loads(report)["seq"] for report in batch.reports] if batch else []
                assert got == expected[: len(got)]
                assert bool(got) == bool(expected)
            elif operation == "confirm":
                if batch is not None:
                    spool.confirm(batch)
                    confirmed += len(batch.reports)
                    batch = None
            else:
                written += 1
                spool.append(written, json.dumps({"seq": written, "text": "x" * operation}))
        left = [json.loads(line)["seq"] for line in read_spool(Path(folder))]
        assert left[len(left) - (written - confirmed) :] == list(range(confirmed + 1, written + 1))
        assert spool.empty() == (written == confirmed)
        spool.close()
        if written == confirmed:
            assert list(Path(folder).iterdir()) == []


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(1, '{"seq": 1}')
    spool.close()
    with next(tmp_path.glob("*.jsonl")).open("a") as stream:
        stream.write('{"seq": 2, "ba')
    assert list(read_spool(tmp_path)) == ['{"seq": 1}']
