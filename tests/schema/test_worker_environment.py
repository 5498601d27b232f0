"""What differs between the notebook's packages and the workers'."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_wheels import make_wheel, unpack_wheel

from det_native.schema import packages
from det_native.schema.resources import Environment
from det_native.schema.worker_environment import PackageUse, differences

NAMES = st.sampled_from(["a", "b", "c"])
SIDES = st.dictionaries(NAMES, st.dictionaries(NAMES, st.sampled_from(["1.0", "1.0+cpu", "2.0"]), max_size=2))


@given(st.lists(NAMES, unique=True), SIDES, SIDES)
def test_every_difference_is_one_and_none_is_passed_over(names: list[str], here: dict, there: dict) -> None:
    found = {one.use.module: one for one in differences([PackageUse(name) for name in names], here, there)}
    for name in names:
        ours, theirs = here.get(name), there.get(name)
        if not ours:
            assert name not in found
        elif theirs is None:
            assert found[name].missing
        elif len(ours) == len(theirs) == 1:
            same = {v.split("+")[0] for v in ours.values()} == {v.split("+")[0] for v in theirs.values()}
            assert (name in found) == (not same)
        else:
            assert name not in found


def test_one_built_for_processors_asks_for_the_one_with_gpus() -> None:
    [one] = differences([PackageUse("tensorflow")], {"tensorflow": {"tensorflow-cpu": "2.15.1"}}, {})
    assert one.requirement == "tensorflow==2.15.1"
    [one] = differences([PackageUse("torch")], {"torch": {"torch": "2.5.0+cpu"}}, {"torch": {"torch": "2.4.0+cu121"}})
    assert (one.requirement, one.there) == ("torch==2.5.0", "2.4.0+cu121")


def test_what_an_interpreter_has_is_read_from_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    unpack_wheel(make_wheel(tmp_path / "wheels", "tiny_one", "1.0"), second)
    unpack_wheel(make_wheel(tmp_path / "wheels", "tiny_one", "2.0"), first)
    monkeypatch.setattr("sys.path", [str(first), str(second)])
    before = packages.stamp([str(first)])
    assert packages.read_installed().modules == {"tiny_one": {"tiny-one": "2.0"}}
    unpack_wheel(make_wheel(tmp_path / "wheels", "tiny_two", "1.0"), first)
    assert packages.stamp([str(first)]) != before
    assert packages.modules_here(packages.read_installed(), ["tiny_two", "nothing_of_that_name"]) == {
        "tiny_two": {"tiny-two": "1.0"}
    }


@pytest.mark.parametrize(
    "written", ["numpy", "numpy==1.26.4", "scikit-learn[x] >= 1.0, <2 ; python_version > '3.10'", "a @ https://b/c.whl"]
)
def test_a_list_of_packages(written: str) -> None:
    assert Environment(packages=[written]).packages == [written]


@pytest.mark.parametrize("written", ["numpy", ["--index-url=x"], ["-e ."], [""], [3], {"a": 1}, ["a\n--pre"], ["./a"]])
def test_what_is_no_list_of_packages(written: object) -> None:
    with pytest.raises(ValueError, match="packages"):
        Environment(packages=written)
