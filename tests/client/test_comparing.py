"""Experiments side by side, their programs, and data frames of them: runs of this machine's own."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from det_harness.local.bundle import keep_bundle
from IPython.lib.pretty import pretty
from local_experiments import write_experiment

import det_native as det
from det_native._version import PROTOCOL
from det_native.client.command import cli
from det_native.client.comparing import Comparison
from det_native.errors import ArgumentError, MissingDependencyError, NotFoundError
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest, Cell, Interpreter, Program


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["experiment", *arguments])


def program(*cells: str, **packages: str) -> BundleManifest:
    return BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.7", executable="", packages=packages),
        program=Program(
            kind="cells",
            framework="keras",
            cells=tuple(Cell(number=number, cell_id=None, source=text) for number, text in enumerate(cells, 1)),
        ),
    )


@pytest.fixture
def pair() -> tuple[str, str]:
    """Write two runs that differ in everything."""
    for lr, epochs, lines, version in ((1, 1, "lr = 0.1", "2.0"), (2, 3, "lr = 0.2", "2.1")):
        experiment = write_experiment(trials=lr, name=f"<b>number {lr}</b>")
        store = LocalStore.find(str(experiment.id))
        detail = store.experiment()
        config = {**detail.config, "searcher": {**detail.config["searcher"], "epochs": epochs}, "same": {"a": [1]}}
        config["hyperparameters"] = {"lr": {"type": "const", "val": 0.1 * lr}}
        store.write_experiment(detail.model_copy(update={"config": config, "forked_from": 1 if lr == 2 else None}))
        keep_bundle(store.folder, program("import keras", lines, "fit()", numpy=version, keras="2.15"), {})
    return "local-1", "local-2"


@pytest.fixture
def compared(pair: tuple[str, str]) -> Comparison:
    return det.compare([det.experiment(pair[0]), pair[1]])


def test_two_experiments_are_compared_in_all_that_differs(compared: Comparison) -> None:
    assert compared.ids == ["local-1", "local-2"]
    assert compared.config == {
        "searcher.epochs": {"local-1": 1, "local-2": 3},
        "searcher.name": {"local-1": "single", "local-2": "random"},
    }
    assert compared.hyperparameters == {"lr": {"local-1": 0.1, "local-2": 0.2}}
    assert compared.packages == {"numpy": {"local-1": "2.0", "local-2": "2.1"}}
    assert compared.cells["local-2"].splitlines()[:2] == ["--- experiment local-1", "+++ experiment local-2"]
    assert {line for line in compared.cells["local-2"].splitlines() if line[:2] in ("-l", "+l")} == {
        "-lr = 0.1",
        "+lr = 0.2",
    }
    assert set(compared.durations) == {"local-1", "local-2"}
    metrics = compared.metrics.set_index(["experiment", "metric"])
    assert metrics.loc[("local-2", "val_loss"), "best"] == 0.5
    assert metrics.loc[("local-2", "loss"), "best"] == 0.5
    assert metrics.loc[("local-1", "loss"), "last_batch"] == 4


def test_a_comparison_is_shown_as_a_table(compared: Comparison) -> None:
    text = pretty(compared)
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["searcher.epochs"] == ["searcher.epochs", "1", "3"]
    assert rows["lr"] == ["lr", "0.1", "0.2"]
    assert rows["val_loss, best"][-2:] == ["1", "0.5"]
    assert "+lr = 0.2" in text
    assert "same" not in text
    html = compared._repr_html_()
    assert "&lt;b&gt;number 1&lt;/b&gt;" in html
    assert "<b>number" not in html


def test_curves_are_overlaid_in_one_figure(compared: Comparison) -> None:
    figure = compared.plot("loss")
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    assert axis.get_title() == "loss"
    training = [line for line in axis.lines if len(line.get_xdata()) == 4]
    assert [list(line.get_ydata()) for line in training] == [[2.0, 1.0, 2 / 3, 0.5]] * 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["experiment local-1", "experiment local-2"]
    with pytest.raises(ArgumentError, match=r"Experiments local-1, local-2 have no metric 'nothing'"):
        compared.plot("nothing")


def test_the_command_line_compares(pair: tuple[str, str], compared: Comparison) -> None:
    assert run("compare", *pair).output == f"{compared!r}\n"
    found = json.loads(run("compare", *pair, "--json").output)
    assert found["config"]["searcher.epochs"] == {"local-1": 1, "local-2": 3}
    assert {row["best"] for row in found["metrics"] if row["metric"] == "val_loss"} == {1.0, 0.5}
    for arguments in (pair, ("local-2",)):  # the second was forked from the first
        text = run("diff", *arguments).output
        assert "-  epochs: 1\n" in text
        assert "+  epochs: 3\n" in text
        assert "-lr = 0.1\n+lr = 0.2\n" in text
    write_experiment(name="again")
    write_experiment(name="once more")
    assert "have the same configuration and program" in run("diff", "local-3", "local-4").output


def test_the_command_line_prints_the_program(pair: tuple[str, str]) -> None:
    text = run("code", "local-1").output
    assert [line for line in text.splitlines() if not line.startswith("# %%")] == [
        *("import keras", "", "lr = 0.1", "", "fit()"),
    ]
    assert run("code", "local-1", "--cell", "2").output == "lr = 0.1\n"
    assert json.loads(run("code", "local-2", "--json").output)[1]["source"] == "lr = 0.2"
    assert "has no cell 9; it has: 1, 2, 3." in str(run("code", "local-1", "--cell", "9").exception)


def test_what_cannot_be_compared_is_one_sentence(pair: tuple[str, str]) -> None:
    with pytest.raises(ArgumentError, match="at least two experiments"):
        det.compare(["local-1"])
    with pytest.raises(NotFoundError, match="local-9") as caught:
        det.compare(["local-1", "local-9"])
    assert str(run("compare", "local-1", "local-9").exception) == str(caught.value)
    with pytest.raises(ArgumentError, match="must be the number"):
        det.compare(["local-1", 2.5])  # type: ignore[list-item]
    assert "was not forked from another" in str(run("diff", "local-1").exception)


def test_experiments_become_a_data_frame(pair: tuple[str, str]) -> None:
    frame = det.to_dataframe()
    assert list(frame["id"]) == ["local-2", "local-1"]
    assert str(frame["created"].dtype).startswith("datetime64[")
    assert str(frame["created"].dtype).endswith("UTC]")
    assert str(frame["duration"].dtype).startswith("timedelta64")
    assert str(frame["trials"].dtype) == "Int64"
    assert list(frame["hp.lr"]) == [0.2, 0.1]
    assert list(frame["metric.val_loss"]) == [0.5, 1.0]
    assert list(frame["metric.loss"]) == [0.5, 0.5]
    assert list(det.to_dataframe("val_loss < 0.6")["id"]) == ["local-2"]
    assert list(det.to_dataframe("local-1")["id"]) == ["local-1"]
    assert list(det.to_dataframe(det.experiments(1))["id"]) == ["local-2"]
    assert len(det.to_dataframe("val_loss < 0")) == 0


def test_trials_and_metrics_become_data_frames(pair: tuple[str, str]) -> None:
    trials = det.to_dataframe(pair, what="trials")
    assert list(
        zip(trials["experiment"], trials["number"], trials["hp.lr"], trials["metric.val_loss"], strict=True)
    ) == [
        ("local-1", 1, 0.1, 1.0),
        ("local-2", 1, 0.1, 1.0),
        ("local-2", 2, 0.2, 0.5),
    ]
    metrics = det.to_dataframe(pair[1], what="metrics", kind="training")
    assert list(metrics.columns) == ["experiment", "trial", "kind", "batch", "metric.loss"]
    assert list(metrics[metrics["trial"] == 2]["metric.loss"]) == [2.0, 1.0, 2 / 3, 0.5]
    assert list(det.to_dataframe(pair[0], what="metrics")["metric.val_loss"]) == [1.0]
    with pytest.raises(ArgumentError, match='what must be "experiments", "trials" or "metrics"'):
        det.to_dataframe(what="runs")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="kind must be"):
        det.to_dataframe(what="metrics", kind="other")
    with pytest.raises(ArgumentError, match='goes with what="metrics" only'):
        det.to_dataframe(kind="training")


def test_what_is_missing_for_a_data_frame_is_told(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingDependencyError, match=r"pip install 'det-native\[tables\]'"):
        det.to_dataframe()


def test_a_damaged_run_is_compared_as_far_as_it_goes() -> None:
    for _ in range(2):
        write_experiment()
    store = LocalStore.find("local-2")
    store.write_rows(1, "validation", [rest.MetricRow(batch=4, metrics={"val_loss": "NaN", "text": "x"})])
    found = det.compare(["local-1", "local-2"])
    assert found.cells == {"local-2": ""}
    assert "val_loss, last" in repr(found)
