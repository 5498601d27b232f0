"""Experiments side by side, their programs, and data frames of them: runs of this machine's own."""

from __future__ import annotations

import builtins
import hashlib
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from det_harness.local.bundle import keep_bundle
from det_native.local.store import LocalStore
from IPython.lib.pretty import pretty
from local_experiments import write_experiment

import det_native as det
from det_native._version import PROTOCOL
from det_native.client.command import cli
from det_native.client.comparing import Comparison
from det_native.errors import ArgumentError, MissingDependencyError, NotFoundError
from det_native.schema import rest
from det_native.schema.manifests import (
    BundleManifest,
    CallSite,
    Cell,
    FileEntry,
    Interpreter,
    Program,
    ValueEntry,
)


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
    assert "The program of experiment local-3 cannot be compared" in run("diff", "local-3", "local-4").output
    for number in (3, 4):
        keep_bundle(LocalStore.find(f"local-{number}").folder, program("fit()"), {})
    assert "have the same configuration and program" in run("diff", "local-3", "local-4").output


def test_the_command_line_prints_the_program(pair: tuple[str, str]) -> None:
    text = run("code", "local-1").output
    assert [line for line in text.splitlines() if not line.startswith("# %%")] == [
        *("import keras", "", "lr = 0.1", "", "fit()"),
    ]
    assert run("code", "local-1", "--cell", "2").output == "lr = 0.1\n"
    assert json.loads(run("code", "local-2", "--json").output)["cells"][1]["source"] == "lr = 0.2"
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
    assert found.cells["local-2"].startswith("The program of experiment local-1 cannot be compared: ")
    assert "val_loss, last" in repr(found)


def keep(bundle: BundleManifest, files: dict[str, bytes], values: dict[str, bytes] | None = None) -> str:
    """Write a run whose program has files and values; return its id."""
    experiment = write_experiment()
    sent = {name: (hashlib.sha256(content).hexdigest(), content) for name, content in (values or {}).items()}
    entries = {path: (hashlib.sha256(content).hexdigest(), content) for path, content in files.items()}
    whole = bundle.model_copy(
        update={
            "files": tuple(FileEntry(path=path, sha256=key, size=len(text)) for path, (key, text) in entries.items()),
            "values": tuple(ValueEntry(name=name, sha256=key, size=len(text)) for name, (key, text) in sent.items()),
        }
    )
    blobs = dict([*entries.values(), *sent.values()])
    keep_bundle(LocalStore.find(str(experiment.id)).folder, whole, blobs)
    return str(experiment.id)


def test_a_changed_module_of_the_same_cells_is_a_change_of_the_program() -> None:
    cells = program("import utils", "fit()")
    first = keep(cells, {"utils.py": b"rate = 1\n", "data.bin": b"\0\1", "same.py": b"pass\n"})
    second = keep(cells, {"utils.py": b"rate = 2\n", "data.bin": b"\0\2\3", "same.py": b"pass\n", "new.md": b"# new\n"})
    found = det.compare([first, second])
    lines = found.cells[second].splitlines()
    assert lines[:2] == [f"--- experiment {first}: utils.py", f"+++ experiment {second}: utils.py"]
    assert [line for line in lines if line[:2] in ("-r", "+r", "+#")] == ["-rate = 1", "+rate = 2", "+# new"]
    [binary] = [line for line in lines if "data.bin" in line]
    assert binary.startswith("data.bin: changed, binary (2 bytes, ")
    assert "same.py" not in found.cells[second]
    assert "is that of" not in repr(found)
    assert "+rate = 2" in run("diff", first, second).output
    assert "+rate = 2" in found._repr_html_()


def test_only_a_program_that_is_all_the_same_is_said_to_be_the_same() -> None:
    cells = program("fit()")
    called = cells.model_copy(
        update={
            "program": cells.program.model_copy(
                update={"call": CallSite(kind="fit", cell=0, line=1, column=0, occurrence=2)}
            )
        }
    )
    first, same = (keep(cells, {"a.py": b"1"}, {"x": b"x"}) for _ in range(2))
    values, again = keep(cells, {"a.py": b"1"}, {"x": b"y"}), keep(called, {"a.py": b"1"}, {"x": b"x"})
    found = det.compare([first, same, values, again])
    assert found.cells[same] == ""
    assert f"The program of {same} is that of {first}." in repr(found)
    heading, line = found.cells[values].splitlines()
    assert heading == (
        f"The code of experiment {values} is that of experiment {first}, but what was sent with it differs:"
    )
    assert line.startswith("sent value x: changed, in its pickled bytes (1 bytes, ")
    assert "time 2" in found.cells[again]


def test_files_of_another_kind_of_program_are_not_said_to_be_removed() -> None:
    script = program().model_copy(
        update={"program": Program(kind="script", framework="keras", command=("train.py", "--lr", "1"))}
    )
    files = {"train.py": b"fit()\n", "big.txt": b"a" * 300_000}
    first = keep(script, files)
    second = keep(program("create('train:Model')"), {**files, "big.txt": b"b" * 300_000})
    diff = det.compare([first, second]).cells[second]
    assert "-train.py --lr 1" in diff
    assert "-fit()" not in diff
    assert "big.txt: changed, larger than 256 KiB (300,000 bytes, " in diff


def test_the_command_line_prints_files_of_the_program() -> None:
    experiment = keep(program("import utils"), {"utils.py": b"rate = 1\n", "data.bin": b"\0\1"}, {"x": b"xy"})
    text = run("code", experiment).output
    assert "import utils\n\n# %% utils.py\nrate = 1\n\n# %% data.bin\n(2 bytes; " in text
    assert "x  2 bytes" in text
    assert run("code", experiment, "--file", "utils.py").output == "rate = 1\n"
    assert run("code", experiment, "--file", "data.bin").output_bytes == b"\0\1"
    told = json.loads(run("code", experiment, "--json").output)
    assert [(file["path"], file["text"]) for file in told["files"]] == [("utils.py", "rate = 1\n"), ("data.bin", None)]
    assert "has no file 'model.py'; it has: utils.py, data.bin." in str(
        run("code", experiment, "--file", "model.py").exception
    )
    many = keep(program("fit()"), {f"part{number}.py": b"pass\n" for number in range(40)})
    text = run("code", many).output
    assert f"# %% 40 files; det experiment code {many} --file PATH prints one" in text
    assert "part7.py  5 bytes" in text
    assert "\npass" not in text


def test_numbers_that_differ_look_different() -> None:
    ids: list[str] = []
    for seed, rate in ((1766020980, 0.12345678), (1766020981, 0.12345679)):
        experiment = write_experiment()
        store = LocalStore.find(str(experiment.id))
        config = {"reproducibility": {"experiment_seed": seed}, "rate": rate, "hyperparameters": {"lr": rate}}
        if ids:
            config["hyperparameters"] = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
        store.write_experiment(store.experiment().model_copy(update={"config": config}))
        ids.append(str(experiment.id))
    found = det.compare(ids)
    rows = {line.split()[0]: line.split()[1:] for line in repr(found).splitlines() if line.strip()}
    assert rows["reproducibility.experiment_seed"] == ["1766020980", "1766020981"]
    assert rows["rate"] == ["0.12345678", "0.12345679"]
    assert "hyperparameters" not in found.config
    assert found.config["hyperparameters.lr.maxval"] == {ids[1]: 1.0}
