"""``det.util``: what code of users has called, and sentences for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from det_native import util
from det_native.errors import ArgumentError
from det_native.unsupported import UnsupportedNameError


class Parent:
    def method(self) -> None: ...

    def other(self) -> None: ...


class Child(Parent):
    def method(self) -> None: ...


def takes(first: int, second: int, *, named: int = 0) -> None: ...


CALLS: list[tuple[Any, Any]] = [
    (util.calculate_batch_sizes({"global_batch_size": 33}, 2, "Digits"), (16, 32)),
    (util.filter_duplicates([3, 1, 3, 2, 1, 3]), {1, 3}),
    (util.get_member_func(Child(), "missing"), None),
    (util.has_param(takes, "named"), True),
    (util.has_param(takes, "x", pos=1), True),
    (util.has_param(takes, "x", pos=2), False),
    (util.humanize_float(1234.5), 1230.0),
    ([util.is_numerical_scalar(value) for value in (1, 1.5, np.float32(1), np.array(2), [1], "1", True)],
     [True, True, True, True, False, False, False]),
    ([util.is_overridden(method, Parent) for method in (Child().method, Child().other)], [True, False]),
    (util.json_encode({"a": np.arange(2), "b": {2, 1}, "c": Path("x")}, sort_keys=True),
     '{"a": [0, 1], "b": [1, 2], "c": "x"}'),
    (util.merge_dicts({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}, "d": 4}), {"a": {"b": 3, "c": 2}, "d": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), CALLS)
def test_functions(found: Any, expected: Any) -> None:
    assert found == expected


def test_files(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    util.force_create_symlink("target", str(tmp_path / "place"))
    util.force_create_symlink("other", str(tmp_path / "place"))
    assert (tmp_path / "place").readlink() == Path("other")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    util.rmtree_nfs_safe(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    with pytest.raises(FileNotFoundError):
        util.rmtree_nfs_safe(tmp_path / "folder")


def test_too_small_batches_are_refused() -> None:
    with pytest.raises(ArgumentError, match="less than one record for each of 4 slots"):
        util.calculate_batch_sizes({"global_batch_size": 3}, 4, "Digits")


@pytest.mark.parametrize("name", ["check_sshd", "make_metrics", "mask_config_dict"])
def test_names_without_a_meaning_here_are_one_sentence(name: str) -> None:
    with pytest.raises(UnsupportedNameError, match=rf"det\.util\.{name} is"):
        getattr(util, name)
