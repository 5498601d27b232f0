"""Experiments side by side, their programs, and data frames of them."""

from __future__ import annotations

import builtins
import hashlib
import json
import math
from typing import Any

import pytest
from click.testing import CliRunner, Result
from IPython.lib.pretty import pretty
from master_parts import Master
from put_experiments import put_experiment

import det_native as det
from det_native._version import PROTOCOL
from det_native.client.command import cli
from det_native.client.comparing import Comparison
from det_native.errors import ArgumentError, MissingDependencyError, NotFoundError
from det_native.schema.manifests import (
    BundleManifest,
    CallSite,
    Cell,
    Codec,
    FileEntry,
    Interpreter,
    Program,
    ValueEntry,
)

pytestmark = pytest.mark.slow  # a whole master


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["experiment", *map(str, arguments)])


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
def pair(named_master: Master) -> tuple[int, int]:
    """Put two experiments that differ in everything."""
    for lr, epochs, lines, version in ((1, 1, "lr = 0.1", "2.0"), (2, 3, "lr = 0.2", "2.1")):
        config = {
            "searcher": {"name": "random" if lr > 1 else "single", "epochs": epochs},
            "same": {"a": [1]},
            "hyperparameters": {"lr": {"type": "const", "val": 0.1 * lr}},
        }
        bundle = program("import keras", lines, "fit()", numpy=version, keras="2.15")
        more = {"config": config, "bundle": bundle, "forked_from": 1 if lr == 2 else None}
        put_experiment(named_master, count=lr, name=f"<b>number {lr}</b>", **more)
    return 1, 2


@pytest.fixture
def compared(pair: tuple[int, int]) -> Comparison:
    return det.compare([det.experiment(pair[0]), pair[1]])


def test_two_experiments_are_compared_in_all_that_differs(compared: Comparison) -> None:
    assert compared.ids == [1, 2]
    assert compared.config == {
        "searcher.epochs": {1: 1, 2: 3},
        "searcher.name": {1: "single", 2: "random"},
    }
    assert compared.hyperparameters == {"lr": {1: 0.1, 2: 0.2}}
    assert compared.packages == {"numpy": {1: "2.0", 2: "2.1"}}
    assert compared.cells[2].splitlines()[:2] == ["--- experiment 1", "+++ experiment 2"]
    assert {line for line in compared.cells[2].splitlines() if line[:2] in ("-l", "+l")} == {
        "-lr = 0.1",
        "+lr = 0.2",
    }
    assert set(compared.durations) == {1, 2}
    metrics = compared.metrics.set_index(["experiment", "metric"])
    assert metrics.loc[(2, "val_loss"), "best"] == 0.5
    assert metrics.loc[(2, "loss"), "best"] == 0.5
    assert metrics.loc[(1, "loss"), "last_batch"] == 4


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
    assert labels[:2] == ["experiment 1", "experiment 2"]
    with pytest.raises(ArgumentError, match=r"Experiments 1, 2 have no metric 'nothing'"):
        compared.plot("nothing")


def test_the_command_line_compares(named_master: Master, pair: tuple[int, int], compared: Comparison) -> None:
    assert run("compare", *pair).output == f"{compared!r}\n"
    found = json.loads(run("compare", *pair, "--json").output)
    assert found["config"]["searcher.epochs"] == {"1": 1, "2": 3}
    assert {row["best"] for row in found["metrics"] if row["metric"] == "val_loss"} == {1.0, 0.5}
    for arguments in (pair, (2,)):  # the second was forked from the first
        text = run("diff", *arguments).output
        assert "-  epochs: 1\n" in text
        assert "+  epochs: 3\n" in text
        assert "-lr = 0.1\n+lr = 0.2\n" in text
    put_experiment(named_master)
    for _ in range(2):
        put_experiment(named_master, bundle=program("fit()"))
    assert "The program of experiment 3 cannot be compared" in run("diff", 3, 4).output
    assert "have the same configuration and program" in run("diff", 4, 5).output


def test_the_command_line_prints_the_program(pair: tuple[int, int]) -> None:
    text = run("code", 1).output
    assert [line for line in text.splitlines() if not line.startswith("# %%")] == [
        *("import keras", "", "lr = 0.1", "", "fit()"),
    ]
    assert run("code", 1, "--cell", "2").output == "lr = 0.1\n"
    assert json.loads(run("code", 2, "--json").output)["cells"][1]["source"] == "lr = 0.2"
    assert "has no cell 9; it has: 1, 2, 3." in str(run("code", 1, "--cell", "9").exception)


def test_what_cannot_be_compared_is_one_sentence(pair: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="at least two experiments"):
        det.compare([1])
    with pytest.raises(NotFoundError, match="9") as caught:
        det.compare([1, 9])
    assert str(run("compare", 1, 9).exception) == str(caught.value)
    with pytest.raises(ArgumentError, match="must be the number"):
        det.compare([1, 2.5])  # type: ignore[list-item]
    assert "was not forked from another" in str(run("diff", 1).exception)


def test_experiments_become_a_data_frame(pair: tuple[int, int]) -> None:
    frame = det.to_dataframe()
    assert list(frame["id"]) == [2, 1]
    assert str(frame["created"].dtype).startswith("datetime64[")
    assert str(frame["created"].dtype).endswith("UTC]")
    assert str(frame["duration"].dtype).startswith("timedelta64")
    assert str(frame["trials"].dtype) == "Int64"
    assert list(frame["hp.lr"]) == [0.2, 0.1]
    assert list(frame["metric.val_loss"]) == [0.5, 1.0]
    assert list(frame["metric.loss"]) == [0.5, 0.5]
    assert list(det.to_dataframe("val_loss < 0.6")["id"]) == [2]
    assert list(det.to_dataframe("1")["id"]) == [1]
    assert list(det.to_dataframe(det.experiments(1))["id"]) == [2]
    assert len(det.to_dataframe("val_loss < 0")) == 0


def test_trials_and_metrics_become_data_frames(pair: tuple[int, int]) -> None:
    trials = det.to_dataframe(pair, what="trials")
    assert list(
        zip(trials["experiment"], trials["number"], trials["hp.lr"], trials["metric.val_loss"], strict=True)
    ) == [
        (1, 1, 0.1, 1.0),
        (2, 1, 0.1, 1.0),
        (2, 2, 0.2, 0.5),
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


def test_what_is_missing_for_a_data_frame_is_told(pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingDependencyError, match=r"pip install 'det-native\[tables\]'"):
        det.to_dataframe()


def test_what_has_no_program_is_compared_as_far_as_it_goes(named_master: Master) -> None:
    put_experiment(named_master)
    put_experiment(named_master, last_row={"val_loss": math.nan})
    found = det.compare([1, 2])
    assert found.cells[2].startswith("The program of experiment 1 cannot be compared: ")
    assert "val_loss, last" in repr(found)


def keep(
    master: Master,
    bundle: BundleManifest,
    files: dict[str, bytes],
    values: dict[str, bytes] | None = None,
    codec: Codec = "npy",
) -> int:
    """Put an experiment whose program has files and values; return its number."""
    sent = {name: (hashlib.sha256(content).hexdigest(), content) for name, content in (values or {}).items()}
    entries = {path: (hashlib.sha256(content).hexdigest(), content) for path, content in files.items()}
    whole = bundle.model_copy(
        update={
            "files": tuple(FileEntry(path=path, sha256=key, size=len(text)) for path, (key, text) in entries.items()),
            "values": tuple(
                ValueEntry(name=name, codec=codec, sha256=key, size=len(text)) for name, (key, text) in sent.items()
            ),
        }
    )
    blobs = dict([*entries.values(), *sent.values()])
    return put_experiment(master, bundle=whole, contents=blobs)


def test_a_changed_module_of_the_same_cells_is_a_change_of_the_program(named_master: Master) -> None:
    cells = program("import utils", "fit()")
    first = keep(named_master, cells, {"utils.py": b"rate = 1\n", "data.bin": b"\0\1", "same.py": b"pass\n"})
    second = keep(
        named_master,
        cells,
        {"utils.py": b"rate = 2\n", "data.bin": b"\0\2\3", "same.py": b"pass\n", "new.md": b"# new\n"},
    )
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


def test_only_a_program_that_is_all_the_same_is_said_to_be_the_same(named_master: Master) -> None:
    cells = program("fit()")
    called = cells.model_copy(
        update={
            "program": cells.program.model_copy(
                update={"call": CallSite(kind="fit", cell=0, line=1, column=0, occurrence=2)}
            )
        }
    )
    first, same = (keep(named_master, cells, {"a.py": b"1"}, {"x": b"x"}) for _ in range(2))
    values, again = (
        keep(named_master, cells, {"a.py": b"1"}, {"x": b"y"}),
        keep(named_master, called, {"a.py": b"1"}, {"x": b"x"}),
    )
    found = det.compare([first, same, values, again])
    assert found.cells[same] == ""
    assert f"The program of {same} is that of {first}." in repr(found)
    heading, line = found.cells[values].splitlines()
    assert heading == (
        f"The code of experiment {values} is that of experiment {first}, but what was sent with it differs:"
    )
    assert line.startswith("sent value x: changed (npy, 1 bytes, ")
    assert "time 2" in found.cells[again]
    pickled = [keep(named_master, cells, {}, {"names": content}, "objects") for content in (b"{a, b}", b"{b, a}")]
    assert "sent value names: changed, in its pickled bytes (" in det.compare(pickled).cells[pickled[1]]


def test_files_of_another_kind_of_program_are_not_said_to_be_removed(named_master: Master) -> None:
    script = program().model_copy(
        update={"program": Program(kind="script", framework="keras", command=("train.py", "--lr", "1"))}
    )
    files = {"train.py": b"fit()\n", "big.txt": b"a" * 300_000}
    first = keep(named_master, script, files)
    second = keep(named_master, program("create('train:Model')"), {**files, "big.txt": b"b" * 300_000})
    diff = det.compare([first, second]).cells[second]
    assert "-train.py --lr 1" in diff
    assert "-fit()" not in diff
    assert "big.txt: changed, larger than 256 KiB (300,000 bytes, " in diff


def test_the_command_line_prints_files_of_the_program(named_master: Master) -> None:
    experiment = keep(
        named_master, program("import utils"), {"utils.py": b"rate = 1\n", "data.bin": b"\0\1"}, {"x": b"xy"}
    )
    text = run("code", experiment).output
    assert "import utils\n\n# %% utils.py\nrate = 1\n\n# %% data.bin\n(2 bytes; " in text
    assert "x  npy, 2 bytes" in text
    assert run("code", experiment, "--file", "utils.py").output == "rate = 1\n"
    assert run("code", experiment, "--file", "data.bin").output_bytes == b"\0\1"
    told = json.loads(run("code", experiment, "--json").output)
    assert [(file["path"], file["text"]) for file in told["files"]] == [("utils.py", "rate = 1\n"), ("data.bin", None)]
    assert "has no file 'model.py'; it has: utils.py, data.bin." in str(
        run("code", experiment, "--file", "model.py").exception
    )
    many = keep(named_master, program("fit()"), {f"part{number}.py": b"pass\n" for number in range(40)})
    text = run("code", many).output
    assert f"# %% 40 files; det experiment code {many} --file PATH prints one" in text
    assert "part7.py  5 bytes" in text
    assert "\npass" not in text


def test_numbers_that_differ_look_different(named_master: Master) -> None:
    ids: list[int] = []
    for seed, rate in ((1766020980, 0.12345678), (1766020981, 0.12345679)):
        config: dict[str, Any] = {
            "reproducibility": {"experiment_seed": seed},
            "rate": rate,
            "hyperparameters": {"lr": rate},
        }
        if ids:
            config["hyperparameters"] = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
        ids.append(put_experiment(named_master, config=config))
    found = det.compare(ids)
    rows = {line.split()[0]: line.split()[1:] for line in repr(found).splitlines() if line.strip()}
    assert rows["reproducibility.experiment_seed"] == ["1766020980", "1766020981"]
    assert rows["rate"] == ["0.12345678", "0.12345679"]
    assert "hyperparameters" not in found.config
    assert found.config["hyperparameters.lr.maxval"] == {ids[1]: 1.0}
