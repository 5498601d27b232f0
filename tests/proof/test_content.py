"""Fingerprints of what a call is given: equal for equal content in every process, others for other content."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from det_harness.program.inputs import InputCheck
from hypothesis import given
from hypothesis import strategies as st

from det_native.experimental.proof import proof_of
from det_native.proof.call import Severity, differences, facts_of
from det_native.proof.content import content_of
from det_native.proof.own_values import relative_to
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Program
from det_native.schema.proof import CallProof

pytestmark = pytest.mark.hypothesis

MADE = """
import numpy as np, pandas as pd, torch
from torch.utils.data import TensorDataset, Subset
rows = np.arange(6000, dtype="float32").reshape(2000, 3)
names = {f"name {number}" for number in range(50)}
values = {
    "array": rows, "column": rows[:, 1], "integers": rows.astype(int), "texts": np.array(["a", "b"], object),
    "table": pd.DataFrame({"a": rows[:, 0], "b": ["x", "y"] * 1000}),
    "tensor": torch.tensor(rows), "half": torch.tensor(rows).bfloat16(), "scalar": torch.tensor(1.5),
    "dataset": Subset(TensorDataset(torch.tensor(rows)), [5, 3, 1]),
    "model": torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.3)).apply(lambda m: [
        torch.nn.init.ones_(p) for p in m.parameters()] and None),
    "set": names, "mapping": {name: len(name) for name in names}, "function": lambda x: x in {"a", "b", "c"},
    "nested": [1, 2.5, (None, "text", b"bytes"), {"k": True}],
}
"""

_namespace: dict[str, Any] = {"__name__": "__main__"}
exec(MADE, _namespace)  # noqa: S102
VALUES: dict[str, Any] = _namespace["values"]


def test_another_process_has_the_same() -> None:
    script = f"{MADE}\nimport json\nfrom det_native.proof.content import content_of\n" + (
        "print(json.dumps({name: [content_of(one).exact, content_of(one).loose] for name, one in values.items()}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env={**os.environ, "PYTHONHASHSEED": "7"}, check=True
    )
    here = {name: [content_of(one).exact, content_of(one).loose] for name, one in VALUES.items()}
    assert json.loads(told.stdout) == here


def test_a_large_set_is_the_same_in_whatever_order_it_gives_its_elements() -> None:
    names = [f"name {number}" for number in range(6_000)]
    backwards = set[str]()
    for name in reversed(names):
        backwards.add(name)
    assert content_of(set(names)).exact == content_of(backwards).exact
    assert content_of(set(names)).exact != content_of(set(names[1:])).exact


TODAY = time.strftime("%Y-%m-%d")


@dataclass
class Records:
    """A user's own dataset, with what changes when it is used."""

    rows: Any
    cache: dict[int, int] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    loaded: Any = None
    reads: int = 0
    scale: float = 1.0
    names: dict[str, int] = field(default_factory=dict)
    folder: str = "/data/of/one"
    made: str = f"run {TODAY} 07:30"

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        self.cache[index] = self.names.get("a", 0)
        self.seen.append(index)
        self._load()
        return self.rows[index] * self.scale

    def _load(self) -> None:
        self.loaded = self.loaded or [1]


CHANGES = [
    pytest.param(np.arange(6.0), np.arange(6.0) * -1, id="sign"),
    pytest.param(np.arange(6.0), np.arange(6.0)[::-1], id="order"),
    pytest.param(np.arange(6.0), np.arange(6.0).reshape(2, 3), id="shape"),
    pytest.param(np.arange(6.0), np.arange(6.0, dtype="float32"), id="type"),
    pytest.param(np.arange(6), np.array([0, 1, 2, 3, 4, 6]), id="one integer"),
    pytest.param(np.array(["a", "b"], object), np.array(["a", "c"], object), id="one text"),
    pytest.param(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [2, 1]}), id="rows of a table"),
    pytest.param(pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["x", "z"]}), id="texts of a table"),
    pytest.param(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), id="name of a column"),
    pytest.param(torch.ones(3), torch.zeros(3), id="tensor"),
    pytest.param(VALUES["dataset"], torch.utils.data.Subset(VALUES["dataset"].dataset, [5, 1, 3]), id="a random split"),
    pytest.param(VALUES["model"], torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)), id="a model"),
    pytest.param(Records([1, 2]), Records([1, 3]), id="a user's dataset"),
    pytest.param(Records([1]), Records([1], names={"a": 1}), id="a dictionary of a dataset"),
    pytest.param([1, 2], (1, 2), id="kind of a sequence"),
    pytest.param({"lr": 0.1}, {"lr": 0.2}, id="a setting"),
    pytest.param(lambda x: x + 1, lambda x: x + 2, id="a function"),
]


@pytest.mark.parametrize(("one", "other"), CHANGES)
def test_other_content_is_another(one: Any, other: Any) -> None:
    assert content_of(one).exact != content_of(other).exact


def test_mere_use_is_no_change() -> None:
    records = Records(np.arange(4))
    proof = _proof({"x": records})
    assert records[1] == 1
    records.folder, records.made = "/elsewhere/one", f"run {TODAY} 08:30"
    assert _severities(proof, {"x": records}) == {}
    assert _severities(proof, {"x": Records(np.arange(4), scale=2.0)}) == {".scale": Severity.PLAIN}
    assert _severities(proof, {"x": Records(np.arange(4), names={"a": 1})}) == {".names keys": Severity.DECISIVE}
    assert content_of("/data/of/one/a.csv").exact == content_of("/data/of/another/a.csv").exact


def test_large_arrays_are_seen_in_their_whole_length() -> None:
    large = np.zeros(5_000_000)
    before = content_of(large)
    large[-3:] = 1
    assert content_of(large).exact != before.exact
    slow = np.zeros((5_000, 1_000)).T
    assert content_of(slow).exact == content_of(slow.copy(order="K")).exact


def test_looking_draws_nothing_and_iterates_nothing() -> None:
    class Watched:
        def __iter__(self) -> Any:
            raise AssertionError("it was iterated")

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("a record was read")

        def __len__(self) -> int:
            return 3

    state = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    content_of(Watched())
    content_of(torch.utils.data.DataLoader(Watched(), batch_size=2, shuffle=True))
    content_of(iter([1, 2]))
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == state


def _proof(parts: dict[str, Any]) -> CallProof:
    sent = CallProof(facts=facts_of(parts), seed=1).model_dump_json()
    return CallProof.model_validate_json(sent)


def _severities(proof: CallProof, parts: dict[str, Any]) -> dict[str, Severity]:
    return {difference.path: difference.severity for difference in differences(proof, parts)}


def _are_rounding(one: Any, other: Any) -> bool:
    severities = set(_severities(_proof({"x": one}), {"x": other}).values())
    assert severities
    return severities == {Severity.ROUNDING}


@pytest.mark.filterwarnings("error")
def test_infinities_of_both_signs_give_no_warning() -> None:
    both = np.array([np.inf, -np.inf])
    [difference] = differences(_proof({"x": both}), {"x": -both})
    assert difference.severity is Severity.DECISIVE


def test_last_digits_are_told_apart_from_other_data() -> None:
    rows = np.random.default_rng(3).normal(size=(200, 4))
    proof = _proof({"x": rows, "y": np.arange(200), "empty": np.array([np.nan, np.inf])})
    assert not differences(proof, {"x": rows.copy(), "y": np.arange(200), "empty": np.array([np.nan, np.inf])})
    proof = _proof({"x": rows, "y": np.arange(200)})
    [difference] = differences(proof, {"x": rows * (1 + 1e-12), "y": np.arange(200)})
    assert difference.severity is Severity.ROUNDING
    [difference] = differences(proof, {"x": rows[np.random.default_rng(4).permutation(200)], "y": np.arange(200)})
    assert difference.severity is Severity.DECISIVE
    assert difference.there is not None
    assert difference.there.text == f"(200, 4) float64, mean {rows.mean():.6g}"
    [difference] = differences(proof, {"x": rows, "y": np.arange(200)[::-1]})
    assert (difference.fact.part, difference.severity) == ("y", Severity.DECISIVE)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(_plain, _plain)
def test_equal_plain_values_and_only_they_are_equal(one: Any, other: Any) -> None:
    equal = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    same = content_of(one).exact == content_of(other).exact
    assert same or not equal
    absolute = '"/' in json.dumps([one, other])  # of which the folders do not count
    assert equal or not same or absolute


@pytest.mark.parametrize("size", [2_000, 200_000, pytest.param(4_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("place", [0.0, 0.31, 0.777_777])
def test_one_number_that_is_far_off_is_no_rounding(size: int, place: float) -> None:
    rows = np.linspace(0, 1, size, dtype="float32")
    other = rows.copy()
    other[int(place * size)] = 30
    assert not _are_rounding(rows, other)
    assert _are_rounding(rows, rows * np.float32(1 + 1e-6))


def test_some_numbers_that_are_swapped_with_others_are_no_rounding() -> None:
    rows = np.random.default_rng(3).normal(size=(5_000, 8)).astype("float32")
    other = rows.copy()
    other[1000:1500] = rows[2000:2500]
    assert not _are_rounding(rows, other)


class Broken(dict[str, Any]):
    """Raises when it is read."""

    def __iter__(self) -> Any:
        raise ValueError("nobody reads this.\nNor this.")


def test_what_cannot_be_read_is_said_and_is_no_difference() -> None:
    sent = _proof({"x": Broken(), "y": [1, 2]})
    assert sent.sentences == ["x is not compared with the notebook's: ValueError: nobody reads this."]
    assert [difference.fact.part for difference in differences(sent, {"x": Broken(), "y": [1, 3]})] == ["y"]
    [difference] = differences(_proof({"x": {"a": 1}}), {"x": Broken()})
    assert difference.severity is Severity.NOT_COMPARED


def _streams(first: float, text: str) -> dict[str, Any]:
    numbers = [first, 2.0, 3.0]
    listed, counted = iter(numbers), enumerate(itertools.chain(numbers, [4.0]))
    next(counted)
    return {"list": listed, "chain": counted, "map": map(math.sqrt, numbers), "file": io.StringIO(text)}


def test_iterators_and_files_in_memory_are_compared_where_they_are() -> None:
    streams = _streams(1.0, "ok")
    assert differences(_proof(streams), _streams(1.0, "ok")) == []
    others = _streams(5.0, "no")
    assert {difference.fact.part for difference in differences(_proof(streams), others)} == {*streams}
    assert [next(others[name]) for name in ("list", "chain", "map")] == [5.0, (1, 2.0), math.sqrt(5.0)]
    next(streams["list"])
    [moved] = differences(_proof(streams), _streams(1.0, "ok"))
    assert moved.fact.part == "list"


@pytest.mark.parametrize("value", [csv.reader([]), threading.Lock()], ids=["iterator", "lock"])
def test_an_input_that_is_not_compared_is_named(value: Any) -> None:
    [sentence] = _proof({"x": value}).sentences
    assert sentence == f"x is not compared on the worker: {type(value).__name__} cannot be read."


class _Default:
    """Its class says all."""


@dataclass
class _Settings:
    sizes: list[int] = field(default_factory=list)


class _Abstract(ABC):
    @abstractmethod
    def body(self) -> float: ...

    def scale(self) -> float:
        return float(len(__class__.__mro__))  # type: ignore[name-defined]


@pytest.mark.parametrize(
    "value",
    [_Default(), _Settings.__init__, _Abstract.scale, type(iter([]))],
    ids=["object", "dataclass", "abstract", "class"],
)
def test_what_its_class_says_all_of_is_compared(value: Any) -> None:
    sent = _proof({"x": value})
    assert sent.sentences == []
    assert differences(sent, {"x": value}) == []


class _Call:
    """A call whose inputs are read by code that fails."""

    models: tuple[Any, ...] = ()

    def inputs(self) -> dict[str, Any]:
        raise AttributeError("'Handler' has no attribute 'shape'")


def test_no_failure_while_comparing_keeps_a_training_from_beginning(caplog: pytest.LogCaptureFixture) -> None:
    noted = proof_of(_Call(), TrialEnvironment(config={}, hparams={}))
    assert noted is not None
    assert noted.proof.sentences == [
        "What reaches the training is not compared: AttributeError: 'Handler' has no attribute 'shape'."
    ]
    check = InputCheck(_proof({"x": 1}), Program(kind="cells", framework="torch"), "error", str)
    check.compare(_Call())
    assert "is not compared with the notebook's: AttributeError" in caplog.text


_RANDOM = np.random.default_rng(0)
_ROWS = _RANDOM.random((2_000, 64), dtype="float32")
_LAYERS = [_RANDOM.random((256, 256), dtype="float32") for _ in range(12)]


def _with(array: Any, where: Any, value: Any) -> Any:
    other = array.copy()
    other[where] = value
    return other


OTHER_DATA = [
    pytest.param(_ROWS, _with(_ROWS, slice(300, 302), 100.0), id="two rows far off"),
    pytest.param(_ROWS, _with(_ROWS, 77, _ROWS[78]), id="a row that is another row"),
    pytest.param(_ROWS[:, 0], _with(_ROWS[:, 0], [0, 1999], _ROWS[[1999, 0], 0]), id="two numbers that changed places"),
    pytest.param(_ROWS[:, 0], _with(_ROWS[:, 0], slice(7, None, 50), -1.0), id="some targets that are missing"),
    pytest.param(_LAYERS, [*_LAYERS[:-1], _LAYERS[-1] * 0], id="the last of many layers"),
    pytest.param([np.ones(3)] * 6_000, [np.ones(3)] * 5_100 + [np.zeros(3)] * 900, id="the end of a long list"),
    pytest.param([0.5] * 3_000, [0.5] * 2_999 + [0.6], id="the last of a list of floats"),
    pytest.param(np.arange(2000.0, 2024), np.arange(2001.0, 2025), id="numbers with a large offset"),
    pytest.param({"lr": 0.1, "seed": [1.0]}, {"lr": 0.1001, "seed": [1.0]}, id="a setting"),
    pytest.param(np.c_[_ROWS[:, 0] * 1e6, _ROWS[:, 1] > 0.5], np.c_[_ROWS[:, 0] * 1e6, _ROWS[:, 1] > 0.4], id="flags"),
    pytest.param(_with(_ROWS, (3, 4), np.nan), _with(_ROWS, ([3, 5], [4, 5]), np.nan), id="one more that is missing"),
]


@pytest.mark.parametrize(("one", "other"), OTHER_DATA)
def test_other_data_are_no_rounding(one: Any, other: Any) -> None:
    assert not _are_rounding(one, other)


_OFFSET = _ROWS * 3 + 50
LAST_DIGITS = [
    pytest.param(_ROWS, _ROWS * (1 + 3e-4 * _RANDOM.normal(size=_ROWS.shape)).astype("float32"), id="short products"),
    pytest.param(
        (_OFFSET - _OFFSET.mean(0)) / _OFFSET.std(0),
        ((_OFFSET - _OFFSET.mean(0, dtype=float)) / _OFFSET.std(0, dtype=float)).astype("float32"),
        id="means added up in another order",
    ),
    pytest.param(_with(_ROWS * 1.0, (3, 4), np.inf), _with(_ROWS * (1 + 1e-6), (3, 4), np.inf), id="some not finite"),
    pytest.param([0.1, [2.5]], [0.1 + 1e-12, [2.5]], id="single numbers"),
    pytest.param(_LAYERS, [layer * np.float32(1 + 1e-6) for layer in _LAYERS], id="weights"),
    pytest.param(torch.tensor(_ROWS).half(), torch.tensor(_ROWS * 1.0005).half(), id="half precision"),
    pytest.param(np.c_[_ROWS, _ROWS[:, :1] * 0], np.c_[_ROWS * 1.000001, _ROWS[:, :1] * 0 + 1e-17], id="nothing"),
]


@pytest.mark.parametrize(("one", "other"), LAST_DIGITS)
def test_last_digits_are_rounding(one: Any, other: Any) -> None:
    assert _are_rounding(one, other)
    assert _are_rounding(other, one)


def test_what_is_known_of_an_input_is_bounded_and_what_is_left_out_is_said() -> None:
    [fact] = facts_of({"x": [np.ones((9, 9)), *_LAYERS, *(torch.ones(3) for _ in range(5_000))]})
    assert sum(len(leaf.blocks) for leaf in fact.leaves) < 100_000
    assert not any(leaf.partly for leaf in fact.leaves)
    long = {number: [number] for number in range(30_000)}
    assert _proof({"x": long}).sentences == [
        "Of x, only its first 50,000 parts are compared with what reaches the training."
    ]


def test_what_an_older_version_has_noted_is_not_compared() -> None:
    older = {"facts": [{"part": "x", "text": "", "exact": "", "loose": "", "samples": [1.0], "means": []}], "seed": 3}
    proof = CallProof.model_validate(older)
    assert (proof.facts, proof.seed) == ((), 3)
    assert "another version" in proof.not_compared
    assert CallProof.model_validate_json(_proof({"x": 1}).model_dump_json()).facts


def test_arguments_that_appear_or_vanish_are_differences() -> None:
    both = {"x": np.ones(3), "class_weight": {0: 1.0}}
    [difference] = differences(_proof(both), {"x": np.ones(3)})
    assert (difference.fact.part, difference.severity) == ("class_weight", Severity.DECISIVE)
    [difference] = differences(_proof({"x": np.ones(3)}), both)
    assert (difference.fact.part, difference.severity) == ("class_weight", Severity.DECISIVE)


def test_a_generator_is_compared_by_its_code_and_arguments() -> None:
    def rows(count: int) -> Any:
        yield from range(count)

    begun = rows(3)
    next(begun)
    assert differences(_proof({"x": begun}), {"x": rows(3)}) == []
    assert differences(_proof({"x": rows(4)}), {"x": rows(3)})


def test_paths_are_those_of_the_users_folder_wherever_the_code_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook, work = tmp_path / "notebook", tmp_path / "worker"
    (notebook / "data").mkdir(parents=True)
    work.mkdir()
    monkeypatch.chdir(notebook / "data")
    with relative_to(notebook):
        here = [content_of(str(notebook / name)).exact for name in ("out/best.pt", "data/x.csv", ".")]
    monkeypatch.chdir(work)
    with relative_to(work):
        assert [content_of(str(work / name)).exact for name in ("out/best.pt", "data/x.csv", ".")] == here
        assert content_of(str(work / "best.pt")).exact not in here


def test_a_class_that_imports_a_module_in_its_body_is_compared() -> None:
    class Stopping:
        import numpy as np

    [fact] = facts_of({"stopping": Stopping()})
    assert fact.not_compared == ""
    assert {leaf.path for leaf in fact.leaves} >= {"class.np"}
