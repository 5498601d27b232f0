"""Checkpoints of which every process has a part: whose file is whose, and how all come to the first process."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from det_harness.ranks.brought_files import bring
from det_native.errors import ArgumentError
from det_native.trial import DistributedContext

Selector = Callable[[str], bool]

_NAMES_SHOWN = 3


def files_of(folder: Path | None, selector: Selector | None) -> dict[str, Path]:
    """Return the files of a folder that belong to a checkpoint, by their paths in it.

    Raises
    ------
    ArgumentError
        If there is no such folder, or nothing to select from.
    """
    if folder is None:
        if selector is not None:
            raise ArgumentError("context.checkpoint.upload(None, selector=...): give ckpt_dir= with selector=.")
        return {}
    if not folder.is_dir():
        raise ArgumentError(f"context.checkpoint.upload({str(folder)!r}): there is no such folder.")
    paths = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    named = {path.relative_to(folder).as_posix(): path for path in sorted(paths)}
    return {name: path for name, path in named.items() if selector is None or selector(name)}


def copy(files: Mapping[str, Path], target: Path, *, link: bool = False) -> None:
    """Copy files into a folder, by their paths in it; or link them there, to be read only."""
    for name, path in files.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if link:
            place.symlink_to(path.resolve())
        else:
            shutil.copyfile(path, place)


def own_part(files: Mapping[str, Path], distributed: DistributedContext) -> dict[str, Path]:
    """Return the files of this process that no process before it has; a collective call.

    Raises
    ------
    ArgumentError
        On all processes, if a file of two is not the same.
    """
    owners: dict[str, list[int]] = {}
    for rank, names in enumerate(distributed.allgather(list(files))):
        for name in names:
            owners.setdefault(name, []).append(rank)
    twice = [name for name, ranks in owners.items() if len(ranks) > 1]
    hashes = distributed.allgather({name: _hash(files[name]) for name in twice if name in files})
    different = [name for name in twice if len({known[name] for known in hashes if name in known}) > 1]
    if different:
        shown = ", ".join(repr(name) for name in sorted(different)[:_NAMES_SHOWN])
        more = "" if len(different) <= _NAMES_SHOWN else f" and {len(different) - _NAMES_SHOWN} more"
        ranks = owners[sorted(different)[0]]
        raise ArgumentError(
            f"A sharded checkpoint has files of the same path with different contents: {shown}{more} (of the processes "
            f"{', '.join(map(str, ranks))}). Give each process paths of its own, or leave files out by selector=."
        )
    return {name: path for name, path in files.items() if owners[name][0] == distributed.rank}


def gathered(files: Mapping[str, Path], target: Path | None, distributed: Any) -> None:
    """Bring the files of all processes into a folder of the first one; a collective call.

    Parameters
    ----------
    target : Path or None
        That folder, on the machine of the first process; None on the others.
    """
    if target is not None:
        copy(files, target)
    if distributed.cross_size == 1:
        distributed.allgather(None)
        return
    with tempfile.TemporaryDirectory(prefix="det-shard-") as temporary:
        sent = None
        if target is None:
            sent = Path(temporary)
            copy(files, sent, link=True)
        bring(distributed.exchange, sent, target or Path(temporary))


def joined_metadata(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all processes give as metadata, dictionaries in it joined.

    Raises
    ------
    ArgumentError
        If two give different values for one name.
    """
    joined: dict[str, Any] = {}
    for one in given:
        conflict = next(_joined(joined, one), None)
        if conflict is not None:
            raise ArgumentError(
                f"The metadata of a sharded checkpoint differ between its processes: {conflict!r} has more than one "
                "value. Give it in one process, or the same in all."
            )
    return joined


def _joined(into: dict[str, Any], other: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in other.items():
        known = into.get(name)
        if name not in into:
            into[name] = {**value} if isinstance(value, Mapping) else value
        elif isinstance(known, dict) and isinstance(value, Mapping):
            yield from _joined(known, value, f"{before}{name}.")
        elif known != value:
            yield f"{before}{name}"


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
