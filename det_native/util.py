"""Small functions that code of users has called as ``det.util``; those of Determined's own launchers are refused."""

from __future__ import annotations

import inspect
import json
import numbers
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Never

from det_native.errors import ArgumentError
from det_native.public_names import listed
from det_native.unsupported import UnsupportedNameError

__all__ = [
    "calculate_batch_sizes",
    "filter_duplicates",
    "force_create_symlink",
    "get_member_func",
    "has_param",
    "humanize_float",
    "is_numerical_scalar",
    "is_overridden",
    "json_encode",
    "merge_dicts",
    "rmtree_nfs_safe",
]

_OF_LAUNCHERS = frozenset(
    (
        *("check_sshd", "forward_signals", "legacy_trial_entrypoint_to_script", "match_legacy_trial_class"),
        *("signal_process_tree", "write_user_code"),
    )
)
_OF_REPORTS = frozenset(("make_metrics", "make_timing_log", "validate_batch_metrics"))
_OF_STORAGE = frozenset(("download_gcs_blob_with_backoff", "mask_checkpoint_storage", "mask_config_dict"))


def calculate_batch_sizes(hparams: Mapping[str, Any], slots_per_trial: int, trialname: str) -> tuple[int, int]:
    """Return the records per batch of one slot, and of all slots: a multiple of the slots.

    Raises
    ------
    ArgumentError
        If ``hparams["global_batch_size"]`` is missing, or less than one record for each slot.

    Examples
    --------
    >>> calculate_batch_sizes({"global_batch_size": 33}, 2, "Digits")
    (16, 32)
    """
    given = hparams.get("global_batch_size")
    if not is_numerical_scalar(given):
        raise ArgumentError(f"{trialname}: hyperparameters.global_batch_size is {given!r}; set it to a number.")
    size, slots = int(given or 0), max(1, int(slots_per_trial))
    if size < slots:
        raise ArgumentError(f"{trialname}: global_batch_size {size} is less than one record for each of {slots} slots.")
    return size // slots, size // slots * slots


def filter_duplicates(in_list: Sequence[Any], sorter: Callable[[Sequence[Any]], list[Any]] = sorted) -> set[Any]:
    """Return what is in a list more than once."""
    ordered = sorter(in_list)
    return {value for value, following in pairwise(ordered) if value == following}


def force_create_symlink(src: str, dst: str) -> None:
    """Make `dst` a link to `src`, in place of a file or folder that is there."""
    place = Path(dst)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(src)


def get_member_func(obj: Any, func_name: str) -> Any:
    """Return a method of an object; None if it has none of that name."""
    found = getattr(obj, func_name, None)
    return found if callable(found) else None


def has_param(fn: Callable[..., Any], name: str, pos: int | None = None) -> bool:
    """Whether a function has a parameter of that name, or takes one at that position."""
    parameters = list(inspect.signature(fn).parameters.values())
    if any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters):
        return True
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return pos is not None and (pos < len(positional) or any(each.kind is each.VAR_POSITIONAL for each in parameters))


def humanize_float(n: float) -> float:
    """Return a number rounded to three digits that count.

    Examples
    --------
    >>> humanize_float(1234.5), humanize_float(0.00012345)
    (1230.0, 0.000123)
    """
    return float(f"{n:.3g}")


def is_numerical_scalar(n: Any) -> bool:
    """Whether a value is one number: Python's, or of an array or tensor without dimensions."""
    if isinstance(n, bool):
        return False
    return isinstance(n, numbers.Number) or (getattr(n, "ndim", None) == 0 and hasattr(n, "item"))


def is_overridden(full_method: Any, parent_class: Any) -> bool:
    """Whether a method of an object or class is another one than that of its parent class."""
    function = getattr(full_method, "__func__", full_method)
    return function is not getattr(parent_class, full_method.__name__, None)


def json_encode(obj: Any, indent: str | None = None, sort_keys: bool = False) -> str:
    """Return JSON of values that may have arrays, tensors, paths and sets in them."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        if hasattr(value, "numpy"):
            return value.numpy().tolist()
        if isinstance(value, set | frozenset):
            return sorted(value)
        return str(value)

    return json.dumps(obj, default=plain, indent=indent, sort_keys=sort_keys)


def merge_dicts(base_dict: dict[Any, Any], source_dict: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a dictionary with the values of both, those of `source_dict` first; dictionaries in them are merged."""
    merged = dict(base_dict)
    for key, value in source_dict.items():
        known = merged.get(key)
        both = isinstance(known, dict) and isinstance(value, Mapping)
        merged[key] = merge_dicts(known, value) if both else value  # type: ignore[arg-type]
    return merged


def rmtree_nfs_safe(path: str | os.PathLike[str], ignore_errors: bool = False, onerror: Any = None) -> None:
    """Remove a folder; files that NFS keeps as long as they are open, ``.nfs...``, are left."""

    def failed(function: Any, place: str, information: Any) -> None:
        if ".nfs" in Path(place).name or (Path(place).is_dir() and any(Path(place).glob("**/.nfs*"))):
            return
        if onerror is not None:
            onerror(function, place, information)
        elif not ignore_errors:
            raise information[1]

    shutil.rmtree(path, onerror=failed)


def __getattr__(name: str) -> Never:
    if name in _OF_LAUNCHERS:
        raise UnsupportedNameError(f"det.util.{name} is of Determined's own launchers: here the master starts workers.")
    if name in _OF_REPORTS:
        raise UnsupportedNameError(
            f"det.util.{name} is not needed: context.train.report_training_metrics() takes metrics."
        )
    if name in _OF_STORAGE:
        raise UnsupportedNameError(f"det.util.{name} is not needed: keys of a storage are kept out of configurations.")
    raise AttributeError(f"module 'det_native.util' has no attribute {name!r}; it has: {', '.join(__all__)}")


__dir__ = listed(__all__)
