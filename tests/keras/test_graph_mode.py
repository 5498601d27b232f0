"""Graph mode: trained batch by batch, continued bit-equal, and never switched to in the user's process."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import graph_program
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.definition import call_to_load, call_to_train
from det_harness.frameworks.keras.harness import KerasHarness
from det_harness.frameworks.keras.switches import needing_own_process
from det_harness.trial.schedule import Periods, Schedule
from det_harness.trial.services import OwnProcessNeededError, Services
from forked_programs import ForkedPrograms
from tensorflow.compat.v1 import disable_eager_execution, disable_v2_behavior

from det_native.keras.switches import suppressed
from det_native.schema.environment import TrialEnvironment

pytestmark = pytest.mark.slow

HARNESS = Path(__file__).parents[1] / "harness"
ENVIRONMENT = TrialEnvironment(graph_program.CONFIG, {"global_batch_size": 8}, trial_seed=7, managed=False)


FEW = ["Graph"]


def trained(folder: Path, kinds: list[str], programs: ForkedPrograms) -> Path:
    """Return the folder, in which the program has trained trials of these kinds."""
    variables = {"PYTHONPATH": str(HARNESS), "DET_HOME": str(folder / "home")}
    [code], [output] = programs.run(folder, [[graph_program.__file__, str(folder), *kinds]], variables, within=folder)
    assert code == 0, output
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Path:
    """What the program wrote: its checkpoints, by kind and batch, and what it found."""
    return trained(tmp_path_factory.mktemp("graph"), FEW, tensorflow_programs)


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def folder_of_others(tmp_path_factory: pytest.TempPathFactory, tensorflow_programs: ForkedPrograms) -> Path:
    """What the program wrote of all other kinds."""
    others = [kind for kind in graph_program.KINDS if kind not in FEW]
    return trained(tmp_path_factory.mktemp("others"), others, tensorflow_programs)


@pytest.fixture(scope="module")
def others(folder_of_others: Path) -> Any:
    return json.loads((folder_of_others / "found.json").read_text())


def assert_continued_bit_equal(found: Any) -> None:
    whole = found["whole"]
    assert not whole["eager"]
    assert whole["controller"] == "GraphController"
    assert whole["threads"] == 3, "what session_config() says"
    assert whole["optimizer"].startswith("keras.src.optimizers.legacy")
    assert whole["batches"] == 18
    assert {4, 12} < set(whole["saved"])
    assert [int(batch) for batch in whole["rows"]] == list(range(1, 19))
    assert [batch for batch, _ in whole["validations"]] == [6, 12, 18]
    losses = whole["history"]["loss"]
    assert losses[-1] < losses[0]
    assert whole["history"]["val_loss"][-1] == whole["validations"][-1][1]["val_loss"]
    for batch, resumed in found["resumed"].items():
        assert resumed["weights"] == whole["weights"]
        assert resumed["rows"] == {n: row for n, row in whole["rows"].items() if int(n) > int(batch)}
        assert resumed["validations"] == [each for each in whole["validations"] if each[0] > int(batch)]
        assert resumed["history"] == whole["history"]


def test_arrays_train_and_continue_bit_equal(found: Any) -> None:
    assert_continued_bit_equal(found["Graph"])


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in graph_program.KINDS if kind not in FEW])
def test_each_kind_of_data_trains_and_continues_bit_equal(kind: str, others: Any) -> None:
    assert_continued_bit_equal(others[kind])


def test_it_ends_as_plain_keras_does(found: Any) -> None:
    ours, plain = found["plain"]
    assert ours == plain


def test_a_row_has_the_mean_over_the_epoch_and_what_its_batch_gave(found: Any) -> None:
    rows = found["Graph"]["whole"]["rows"]
    sizes = [8, 8, 8, 8, 8, 2]
    own = [rows[str(batch)]["batch_loss"] for batch in range(1, 7)]
    mean = sum(size * value for size, value in zip(sizes, own, strict=True)) / 42
    assert rows["6"]["loss"] == pytest.approx(mean, rel=1e-5)
    assert rows["7"]["loss"] == pytest.approx(rows["7"]["batch_loss"], rel=1e-5)
    assert "batch_accuracy" in rows["3"]


@pytest.mark.long
def test_several_outputs_report_each_loss(others: Any) -> None:
    validation = others["Several"]["whole"]["validations"][0][1]
    assert set(validation) == {"val_loss", "val_kind_loss", "val_sum_loss", "val_kind_accuracy"}


def test_a_stop_inside_an_epoch_leaves_a_checkpoint_there(found: Any) -> None:
    stopped = found["stopped"]
    assert stopped["batches"] == 9
    assert stopped["saved"][-1] == 9
    assert len(stopped["history"]["loss"]) == 1


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("steps", r"UnsupportedFeatureError: Own.train_step() is not called in graph mode: leave eager execution"),
        ("sparse", "UnsupportedFeatureError: Graph mode does not train on sparse or ragged tensors"),
        ("slots", "UnsupportedFeatureError: Graph mode has no resources.slots_per_trial: 2: leave eager execution"),
        ("mixed", "UnsupportedFeatureError: Graph mode has no optimizations.mixed_precision: O1: leave eager"),
        ("aggregation", "UnsupportedFeatureError: Graph mode has no optimizations.aggregation_frequency: 4: leave"),
        ("layers", "CheckpointError: The checkpoint does not fit the model"),
    ],
)
def test_what_graph_mode_does_not_do_is_told(what: str, told: str, found: Any) -> None:
    assert found["refusals"][what].startswith(told)


def test_what_a_restart_does_not_continue_is_told(found: Any) -> None:
    assert any(text.startswith("In graph mode the position of dropout") for text in found["said"])


@pytest.mark.long
def test_a_restart_tells_what_it_reads_again(others: Any) -> None:
    assert "Reading the first 12 batches of a tf.data.Dataset again, to continue after them." in others["said"]


def test_a_checkpoint_of_graph_mode_is_loaded_eagerly(folder: Path, found: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "det_native")
    graph = KerasHarness().load(call_to_load(graph_program.Graph, ENVIRONMENT), folder / "Graph" / "12", ENVIRONMENT)
    assert tf.executing_eagerly()
    assert int(graph.optimizer.iterations) == 12
    assert "Graph: tf.compat.v1.disable_eager_execution() is passed over" in caplog.text
    rows = found["Graph"]["whole"]["validations"]
    loss = graph.evaluate(graph_program.X, graph_program.Y, verbose=0)[0]
    assert loss == pytest.approx(rows[1][1]["val_loss"], rel=1e-5)


@pytest.mark.long
def test_a_learning_rate_that_decays_is_loaded_eagerly(folder_of_others: Path, others: Any) -> None:
    model = KerasHarness().load(
        call_to_load(graph_program.Weighted, ENVIRONMENT), folder_of_others / "Weighted" / "16", ENVIRONMENT
    )
    assert int(model.optimizer.iterations) == 16
    assert 16 in {int(batch) for batch in others["Weighted"]["whole"]["saved"]}


def test_a_trial_in_the_users_process_asks_for_one_of_its_own_and_changes_nothing() -> None:
    environment = TrialEnvironment(graph_program.CONFIG, {"global_batch_size": 8})
    schedule = Schedule(Periods(length=1))
    services: Any = Services(environment, schedule, None, None, lambda: False, users_process=True)  # type: ignore[arg-type]

    class Trial(graph_program.Graph):
        def __init__(self, context: Any) -> None:
            try:
                super().__init__(context)
            except Exception:  # noqa: BLE001 (what user code may do)
                raise AssertionError("the switch was an exception that user code catches") from None

    with pytest.raises(OwnProcessNeededError, match=r"Trial calls tf\.compat\.v1\.disable_eager_execution\(\), which"):
        call_to_train(Trial, services)
    assert tf.executing_eagerly()


@pytest.mark.parametrize(
    "switch",
    [
        lambda: tf.compat.v1.disable_eager_execution(),
        lambda: tf.compat.v1.disable_v2_behavior(),
        disable_eager_execution,  # imported before anything was intercepted
        disable_v2_behavior,
    ],
)
def test_a_switch_is_intercepted_however_it_is_named(switch: Any) -> None:
    code = disable_eager_execution.__code__
    with suppressed("Trial"):
        switch()
        assert tf.executing_eagerly()
        with suppressed("Inner"):
            switch()
        switch()
    with needing_own_process("Trial"), pytest.raises(OwnProcessNeededError):
        switch()
    assert tf.executing_eagerly()
    assert disable_eager_execution.__code__ is code
