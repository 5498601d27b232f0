"""The code of local runs, kept so that another process can load their checkpoints.

Under ``DET_HOME/local``: ``blobs/`` for all runs together, ``<n>/bundle.json`` for each.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from det_native.errors import BundleCorruptError
from det_native.schema.manifests import BundleManifest, Sha256
from det_native.storage.blobs import BlobStore

MANIFEST = "bundle.json"

# Where contents are named, and how.
_OUTPUTS = ("media.jsonl", "artifacts.jsonl")
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def keep_bundle(folder: Path, manifest: BundleManifest, contents: Mapping[Sha256, Path | bytes]) -> None:
    """Keep a bundle for the run in `folder`; what an earlier run kept is not written again."""
    blobs = _blobs(folder.parent)
    with _lock(folder.parent):
        for sha256 in blobs.missing(sorted(manifest.hashes())):
            content = contents[sha256]
            if isinstance(content, bytes):
                blobs.put(sha256, content)
            else:
                blobs.put_file(sha256, content)
        temporary = folder / f".{MANIFEST}"
        temporary.write_text(manifest.model_dump_json())
        temporary.replace(folder / MANIFEST)


def kept_bundle(folder: Path) -> BundleManifest | None:
    """Return what :func:`keep_bundle` kept for the run in `folder`, None if nothing.

    Raises
    ------
    BundleCorruptError
        If the manifest is damaged.
    """
    try:
        return BundleManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise BundleCorruptError(f"{folder / MANIFEST} is damaged.") from error


def read_blob(folder: Path, sha256: Sha256) -> bytes:
    """Return the raw content of a blob of the run in `folder`, verified."""
    return _blobs(folder.parent).read(sha256)


def blobs_of(folder: Path) -> str:
    """Return the address of the blobs of the run in `folder`."""
    return str(folder.parent / "blobs")


def all_hashes(folder: Path) -> set[Sha256]:
    """Return the blobs that the run in `folder` needs."""
    return _hashes_of(folder) | _reported_outputs(folder.parent, folder.name)


def only_hashes(folder: Path) -> set[Sha256]:
    """Return the blobs that the run in `folder` needs and no other one does."""
    mine = all_hashes(folder)
    for other in folder.parent.iterdir():
        if other.name.isdigit() and other != folder and mine:
            mine -= all_hashes(other)
    return mine


def blob_sizes(folder: Path, hashes: set[Sha256]) -> list[int]:
    """Return the bytes that those of `hashes` take that are there."""
    blobs = _blobs(folder.parent)
    return [size for size in map(blobs.size, hashes) if size is not None]


def drop_blobs(root: Path, hashes: set[Sha256]) -> None:
    """Delete those of `hashes` that no run in `root` needs."""
    with _lock(root):
        needed = set(_reported_outputs(root))
        for folder in root.iterdir():
            needed |= _hashes_of(folder) if folder.name.isdigit() else set()
        for sha256 in hashes - needed:
            _blobs(root).delete(sha256)


def _hashes_of(folder: Path) -> set[Sha256]:
    """Return the blobs of a run's program; of a manifest that cannot be read, all that it names."""
    try:
        return set(re.findall(r'"([0-9a-f]{64})"', (folder / MANIFEST).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _reported_outputs(root: Path, run: str = "*") -> set[Sha256]:
    """Return the contents of what the trials of the runs have logged or written."""
    found: set[Sha256] = set()
    for path in itertools.chain.from_iterable(root.glob(f"{run}/trials/*/{each}") for each in _OUTPUTS):
        with suppress(FileNotFoundError):  # another process cleans up too
            found.update(match.decode() for match in _SHA256.findall(path.read_bytes()))
    return found


def _blobs(root: Path) -> BlobStore:
    return BlobStore(str(root / "blobs"))


def _lock(root: Path) -> FileLock:
    return FileLock(root / "blobs.lock")
