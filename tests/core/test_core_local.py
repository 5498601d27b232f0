"""``det.core`` outside of any experiment, and what it says of wrong arguments."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import det_native as det
from det_native import core
from det_native.core import Context
from det_native.errors import MasterError
from det_native.experimental import core_v2
from det_native.unsupported import UnsupportedNameError


def test_numbers_of_numpy_may_stand_in_metadata(context: Context, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.txt").write_text("1")
    uuid = context.checkpoint.upload(
        tmp_path / "weights", {"steps_completed": numpy.int64(6), "loss": numpy.float32(0.5)}
    )
    assert context.checkpoint.get_metadata(uuid) == {"steps_completed": 6, "loss": 0.5}


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A context that nobody records."""
    return core.init(checkpoint_storage=str(tmp_path / "checkpoints"))


def test_a_script_runs_as_in_an_experiment(context: Context, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert det.get_cluster_info() is None
    with context:
        for operation in context.searcher.operations():
            for step in range(1, operation.length + 1):
                context.train.report_training_metrics(step, {"loss": 0.5})
                assert not context.preempt.should_preempt()
            context.train.report_validation_metrics(step, {"accuracy": 0.75})
            operation.report_completed(0.75)
        with context.checkpoint.store_path() as (path, uuid):
            (path / "state").write_text("1")
        with context.checkpoint.restore_path(uuid) as path:
            assert (path / "state").read_text() == "1"
    assert "training metrics after step 1: {'loss': 0.5}" in caplog.text
    assert "validation metrics after step 1: {'accuracy': 0.75}" in caplog.text


def test_checkpoints_stay_for_the_next_process(context: Context, tmp_path: Path) -> None:
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, uuid):
        (path / "state").write_text("3")
    context.close()
    program = (
        "import sys, det_native as det\n"
        "with det.core.init(checkpoint_storage=sys.argv[1]) as context:\n"
        "    with context.checkpoint.restore_path(sys.argv[2]) as path:\n"
        "        print((path / 'state').read_text())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "checkpoints"), uuid]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "3\n"


WRONG: list[tuple[Callable[[Context], Any], str]] = [
    (lambda c: c.train.report_training_metrics("3", {}), r"report_training_metrics\(\): steps_completed='3'"),
    (lambda c: c.train.report_training_metrics(-1, {}), "whole number from 0"),
    (lambda c: c.train.report_training_metrics(10**30, {}), "whole number from 0 to"),
    (
        lambda c: c.checkpoint.upload(".", {"steps_completed": 10**30}),
        "whole number from 0 to",
    ),  # and nothing is copied
    (lambda c: c.train.report_training_metrics(1, {1: 2.0}), "names of metrics are text"),
    (lambda c: c.train.report_training_metrics(1, [1.0]), "a dictionary of numbers by name"),
    (lambda c: c.train.report_validation_metrics(1.5, {}), "steps_completed=1.5"),
    (lambda c: c.train.report_validation_metrics(1, {3: 1.0}), "names of metrics are text"),
    (lambda c: c.train.report_metrics("", 1, {}), "a group is a name"),
    (lambda c: c.train.report_progress(1.5), "from 0 to 1"),
    (lambda c: c.train.report_early_exit("INVALID_HP"), "EarlyExitReason.INVALID_HP"),
    (lambda c: c.train.set_metadata({"a": object()}), "what JSON can have"),
    (lambda c: c.train.upload_tensorboard_files(), "TensorboardMode.MANUAL"),
    (lambda c: c.checkpoint.upload("no such folder"), "no such folder"),
    (lambda c: c.checkpoint.upload(None), "give the folder"),
    (lambda c: c.checkpoint.download(None, "x"), "latest_checkpoint is None"),
    (lambda c: c.checkpoint.download("a" * 8, "x", "all"), "DownloadMode.LocalWorkersShareDownload"),
    (lambda c: c.checkpoint.get_metadata("00000000-0000-4000-8000-000000000000"), "There is no checkpoint"),
    (lambda c: c.checkpoint.store_path("x").__enter__() and c.checkpoint.upload(".", ["x"]), "give a dictionary"),
    (lambda c: c.checkpoint.upload(".", {"steps_completed": "5"}), r"steps_completed'\] is '5'"),
    (lambda c: c.checkpoint.upload(".", {"printed": 5}), "det_native's own"),
    (lambda c: next(c.searcher.operations("all")), "SearcherMode.WorkersAskChief"),
    (lambda c: next(iter(c.searcher.operations())).report_completed("low"), "return one number"),
    (lambda c: c.profiler.on(sampling_interval=0), "above 0"),
    (lambda c: c.alert("title", level="loud"), "info, warn, debug, error"),
    (lambda c: core.init(distributed="two"), "give a det.core.DistributedContext"),
    (lambda c: core.init(checkpoint_storage=3), "give a folder"),
    (lambda c: core.init(preempt_mode="chief"), "PreemptMode.WorkersAskChief"),
    (lambda c: core.init(tensorboard_mode="auto"), "TensorboardMode.AUTO"),
    (lambda c: core.DistributedContext.from_torch_distributed(), "init_process_group"),
    (lambda c: core.DistributedContext.from_horovod(object()), "allgather_object"),
    (lambda c: core.DistributedContext.from_tf_config(), "TF_CONFIG"),
    (
        lambda c: core.DistributedContext(rank=2, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=1),
        "rank counts from 0",
    ),
    (lambda c: core_v2.init(), "DefaultConfig"),
    (lambda c: core_v2.train, r"after core_v2\.init"),
    (lambda c: core_v2.DefaultConfig(title="x"), "it takes name"),
    (lambda c: core_v2.init(defaults={"name": "x"}), "DefaultConfig"),
    (lambda c: core_v2.init(defaults=core_v2.DefaultConfig(external_trial_id="1")), "external_experiment_id="),
    (lambda c: core_v2.init(defaults=core_v2.DefaultConfig(searcher={"name": "random"})), "is one trial"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_arguments_are_one_sentence(context: Context, call: Callable[[Context], Any], said: str) -> None:
    with pytest.raises(Exception, match=said) as raised:
        call(context)
    assert "\n" not in str(raised.value)


def test_a_script_whose_master_is_not_there_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DET_RECORD")
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    with pytest.raises(MasterError, match=r"127\.0\.0\.1:1"):
        core_v2.init(defaults=core_v2.DefaultConfig(name="x"))
    assert list((Path(os.environ["DET_HOME"]) / "runs").iterdir()) == []
    assert det.get_cluster_info() is None


def test_scripts_of_determined_find_their_names() -> None:
    program = (
        "import det_native.compat, logging\n"
        "import determined as det\n"
        "from determined import core, util\n"
        "from determined.experimental import core_v2\n"
        "logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)\n"
        "def main(core_context: det.core.Context) -> None:\n"
        "    core_context.train.report_training_metrics(steps_completed=1, metrics={'loss': 0.5})\n"
        "if __name__ == '__main__':\n"
        "    with det.core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:\n"
        "        main(context)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "det_native.core: training metrics after step 1: {'loss': 0.5}" in done.stderr


@pytest.mark.parametrize("name", ["DummyTrainContext", "SearcherContextMissing"])
def test_classes_that_are_not_needed_are_one_sentence(name: str) -> None:
    with pytest.raises(UnsupportedNameError, match=rf"det\.core\.{name} is not there"):
        getattr(core, name)


def test_every_name_of_the_package_is_there() -> None:
    for name in core.__all__:
        assert getattr(core, name).__doc__
    assert det.core.init is core.init
    assert callable(det.get_cluster_info)
    logging.Formatter(det.LOG_FORMAT)
