"""What is known of libraries: one file and one line add one, and what is not known is said to be so."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import StandardScaler

from det_native.capture.carry import CannotSendError, encode
from det_native.capture.observation.looks import look
from det_native.capture.value_formats import size_of
from det_native.inspection import registry
from det_native.inspection.registry import adapter_of
from det_native.inspection.streams import current_streams, decoded, encoded, put_back


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what JAX and polars set in the environment when they are imported."""
    for name in ("TF_CPP_MIN_LOG_LEVEL", "_RJEM_MALLOC_CONF"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


def _opaque(name: str) -> type:
    """Return a class that shows nothing of what it holds, as one of C does: no attributes, no pickle."""
    held: dict[int, Any] = {}

    def begin(self: Any, *values: Any) -> None:
        held[id(self)] = list(values)

    body = {
        "__module__": "toy.inner",
        "__slots__": (),
        "__init__": begin,
        "held": lambda self: held[id(self)],
        "__reduce_ex__": lambda self, protocol: (_ for _ in ()).throw(TypeError("it cannot be pickled")),
    }
    return type(name, (), body)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Return a library that is loaded, and is not known yet."""
    library: Any = types.ModuleType("toy")
    library.Grid, library.Dice, library.Other = map(_opaque, ("Grid", "Dice", "Other"))
    library.Grid.unit = "m"
    library.Grid.read = lambda grid: grid.held()[0]
    library.Dice.rolls = lambda dice: len(dice.held())
    library.rolled = 7
    monkeypatch.setitem(sys.modules, "toy", library)
    return library


@pytest.fixture
def known(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the same library; its adapter is one file, and this is the one line."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(registry.LIBRARIES, "toy", "toy_adapter")
    return toy


def test_a_library_is_one_file_and_one_line(known: Any) -> None:
    grid = known.Grid(np.arange(4))
    before = look(grid, {})
    assert before.exact
    grid.read()[2] = 9
    assert look(grid, {}).fingerprint != before.fingerprint
    assert size_of(grid) == grid.read().nbytes
    assert encode("grid", {"grid": grid}, declared=True).encoded.description == "a grid"
    with pytest.raises(CannotSendError):
        encode("dice", {"dice": known.Dice()}, declared=True)
    states = decoded(encoded(current_streams()))
    known.rolled = 8
    put_back(states, ["toy"])
    assert known.rolled == states["toy"] == 7


def test_a_class_that_is_derived_from_a_known_one_is_known(known: Any) -> None:
    derived = type("Derived", (known.Grid,), {"__slots__": ()})
    assert adapter_of(derived) is adapter_of(known.Grid)
    assert adapter_of(known.Other) is None


def test_a_class_that_is_not_known_is_said_to_be_so(toy: Any) -> None:
    other = toy.Other(np.arange(4))
    assert adapter_of(toy.Other) is None
    assert size_of(other) is None
    with pytest.raises(CannotSendError):
        encode("other", {"other": other}, declared=True)


def test_a_class_without_a_hash_is_asked_for_as_any_other() -> None:
    kind = type("Kind", (type,), {"__hash__": None, "__eq__": lambda some, other: some is other})
    assert adapter_of(kind("Data", (np.ndarray,), {})) is adapter_of(np.ndarray)
    assert adapter_of(kind("Other", (), {})) is None


def test_no_library_is_imported_by_asking() -> None:
    script = (
        "import sys\n"
        "from det_native.inspection.registry import LIBRARIES, library_of\n"
        "print(all(library_of(package) for package in LIBRARIES))\n"
        "print({'numpy', 'pandas', 'torch', 'tensorflow', 'keras', 'jax', 'PIL', 'scipy'} & set(sys.modules))\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:2] == ["True", "set()"]


def _sparse(*numbers: float) -> Any:
    return pytest.importorskip("scipy.sparse").csr_matrix([numbers])


def _image(*numbers: int) -> Any:
    return pytest.importorskip("PIL.Image").fromarray(np.array([numbers], "uint8"))


def _scaler(*numbers: float) -> Any:
    return StandardScaler().fit(np.array(numbers).reshape(-1, 1))


def _jax(*numbers: float) -> Any:
    return pytest.importorskip("jax.numpy").array(numbers)


def _polars(*numbers: float) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"n": list(numbers), "text": [str(number) for number in numbers]})


MAKERS = [
    *(np.array, pd.Series, pa.array, lambda *n: pa.table({"n": n, "text": [*map(str, n)]}), _sparse, _image, _scaler),
    *(_jax, _polars, lambda *n: pd.DataFrame({"n": n, "text": [*map(str, n)]})),
]
NAMES = ["numpy", "column", "arrow", "arrow table", "sparse", "image", "estimator", "jax", "polars", "table"]


def _made(make: Callable[..., Any], *numbers: float) -> Any:
    return make(numbers) if make in (np.array, pd.Series, pa.array) else make(*numbers)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_looking_changes_nothing_and_sees_all(make: Callable[..., Any]) -> None:
    value = _made(make, 1, 2)
    first = look(value, {})
    assert first.fingerprint == look(value, {}).fingerprint
    assert first.exact


class Noted(pd.DataFrame):  # type: ignore[misc]
    """A table with an attribute of the user's."""


def _noted() -> Any:
    table = Noted({"n": [1, 2]})
    object.__setattr__(table, "note", ["first"])
    return table


@pytest.mark.parametrize("change", [lambda table: table.note.append("second"), lambda table: table.insert(0, "m", 3)])
def test_what_a_class_of_the_users_adds_to_a_known_one_is_seen(change: Callable[[Any], object]) -> None:
    table = _noted()
    before = look(table, {})
    change(table)
    assert look(table, {}).fingerprint != before.fingerprint


CHANGES: list[tuple[Any, Callable[[Any], object]]] = [
    (lambda: pd.DataFrame({"text": ["a", "b"]}), lambda table: table.__setitem__("text", table["text"].str.upper())),
    (lambda: pd.DataFrame({"text": ["a", "b"]}), lambda table: table.loc.__setitem__((0, "text"), "c")),
    (lambda: pd.Series(["a", None]), lambda column: column.__setitem__(1, "c")),
    (lambda: _image(1, 2), lambda image: image.putpixel((0, 0), 9)),
    (lambda: _sparse(1.0, 2.0), lambda matrix: matrix.data.__setitem__(0, 5.0)),
    (lambda: _polars(1, 2), lambda table: table.__setitem__((0, "text"), "c")),
    (lambda: _polars(1, 2), lambda table: table.__setitem__((0, "n"), 5)),
]


@pytest.mark.parametrize(("make", "change"), CHANGES)
def test_a_change_in_place_is_seen(make: Callable[[], Any], change: Callable[[Any], object]) -> None:
    value = make()
    before = look(value, {})
    change(value)
    assert look(value, {}).fingerprint != before.fingerprint
