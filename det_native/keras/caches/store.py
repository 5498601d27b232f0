"""The files of one cached dataset: written once, by one process, and found whole or not at all.

A folder has, for each dataset and version, ``current.json`` and the build that it names::

    <dataset>/<version>/<train or validation>/current.json    which build counts, its structure and its checks
                                              lock            held by the process that writes
                                              <build>/records.tfrecord, offsets.npy

A build that ``current.json`` does not name was given up half-way, or found damaged: the next process that writes
removes it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import tensorflow as tf

from det_native.errors import DiskFullError, InvalidDataError, StorageError
from det_native.keras.caches.records import spec_of, structure_of, to_record
from det_native.keras.values import elements_of, number_of

logger = logging.getLogger("det_native")

_FORMAT = 1
_RECORDS, _OFFSETS, _CURRENT, _LOCK, _DAMAGED = "records.tfrecord", "offsets.npy", "current.json", "lock", "damaged"
# Length and two checksums, around each record of a TFRecord file.
_FRAME = 16
_SAID_EVERY = 30.0


@dataclass(frozen=True)
class Records:
    """A cached dataset that was found whole.

    Attributes
    ----------
    name : str
        What to call it in messages.
    folder : Path
        Its build.
    offsets : numpy.ndarray
        Where each record starts in the file.
    spec
        The ``element_spec``.
    batched : bool
        Whether its elements were batches already.
    size : int
        Bytes of the file of records.
    """

    name: str
    folder: Path
    offsets: Any
    spec: Any
    batched: bool
    size: int

    @property
    def path(self) -> Path:
        """The file of records."""
        return self.folder / _RECORDS

    def __len__(self) -> int:
        return len(self.offsets)

    def problem(self) -> str | None:
        """Return what is wrong with the file of records, after reading all of it; None if nothing is."""
        if not self.path.is_file():
            return f"{self.path} is gone"
        if self.path.stat().st_size != self.size:
            return f"{self.path} has {self.path.stat().st_size} bytes instead of {self.size}"
        read = 0
        try:
            for _ in tf.compat.v1.io.tf_record_iterator(str(self.path)):  # reads where graphs are built, too
                read += 1
        except tf.errors.OpError:
            return f"record {read} in {self.path} does not match its checksum"
        return None if read == len(self) else f"{self.path} has {read} records instead of {len(self)}"

    def give_up(self) -> None:
        """Have the next process that asks for the dataset write it anew."""
        if self.folder.is_dir():
            (self.folder / _DAMAGED).touch()


class CacheFolder:
    """Where one version of one dataset lies.

    Parameters
    ----------
    root : Path
        The folder of all cached datasets.
    kind : str
        ``"train"`` or ``"validation"``: they may have the same id and version.
    """

    def __init__(self, root: Path, dataset_id: str, dataset_version: str, kind: str) -> None:
        self._folder = root / _as_folder(dataset_id) / _as_folder(dataset_version) / kind
        self._name = f"cached dataset {dataset_id!r}, version {dataset_version!r} ({kind})"

    def get(self, make: Callable[[], Any], is_batched: Callable[[Any], bool]) -> Records:
        """Return the records, which `make` and this process write first where there are none.

        Parameters
        ----------
        make : callable
            Returns the user's Dataset. Called only if it is to be written.
        is_batched : callable
            Whether that is one of batches.

        Raises
        ------
        InvalidDataError
            If what `make` returns cannot be written.
        DiskFullError, StorageError
            If the folder cannot be written to.
        """
        found = self._find()
        if found is None:
            with self._alone():
                found = self._find() or self._write(make, is_batched)
        return found

    def _find(self) -> Records | None:
        current = self._folder / _CURRENT
        try:
            written = json.loads(current.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            found: Records | str = f"{current} cannot be read ({error})"
        else:
            found = self._checked_build(written)
        if isinstance(found, Records):
            return found
        logger.warning("Writing the %s again: %s.", self._name, found)
        return None

    def _checked_build(self, written: Any) -> Records | str:
        """Return the build that is written of, or what is wrong with it."""
        if not isinstance(written, dict) or written.get("format") != _FORMAT:
            return f"{self._folder / _CURRENT} is of another version of det_native"
        try:
            folder = self._folder / written["build"]
            if (folder / _DAMAGED).exists():
                return "a record did not match its checksum"
            size, offsets = (folder / _RECORDS).stat().st_size, folder / _OFFSETS
            if size != written["size"]:
                return f"{folder / _RECORDS} has {size} bytes instead of {written['size']}"
            if hashlib.sha256(offsets.read_bytes()).hexdigest() != written["offsets_sha256"]:
                return f"{offsets} has changed since it was written"
            spec = spec_of(written["structure"])
            starts = np.load(offsets, allow_pickle=False)
            return Records(self._name, folder, starts, spec, bool(written["batched"]), size)
        except (KeyError, TypeError, OSError) as error:
            return f"{type(error).__name__}: {error}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self._folder} cannot be made for the {self._name}: {error.strerror}. data_layer.host_storage_path "
                "says where cached datasets lie."
            ) from error
        lock = filelock.FileLock(self._folder / _LOCK)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            logger.info("Another process writes the %s: waiting for it.", self._name)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _write(self, make: Callable[[], Any], is_batched: Callable[[Any], bool]) -> Records:
        for left in self._folder.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
        dataset = make()
        structure = self._checked(dataset)
        build = uuid.uuid4().hex
        folder = self._folder / build
        folder.mkdir()
        try:
            offsets, size = self._write_records(dataset, folder / _RECORDS)
            np.save(folder / _OFFSETS, offsets)
            written = {
                "format": _FORMAT,
                "dataset": self._name,
                "build": build,
                "structure": structure,
                "batched": is_batched(dataset),
                "size": size,
                "offsets_sha256": hashlib.sha256((folder / _OFFSETS).read_bytes()).hexdigest(),
            }
            (folder / _CURRENT).write_text(json.dumps(written, indent=1))
            for name in (_RECORDS, _OFFSETS, _CURRENT):
                _to_disk(folder / name)
            os.replace(folder / _CURRENT, self._folder / _CURRENT)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if _says_full(error):
                raise DiskFullError(f"There is no room for the {self._name} in {self._folder}: {error}") from error
            raise
        logger.info("Wrote the %s: %d records, %.1f MB in %s.", self._name, len(offsets), size / 1e6, folder)
        return Records(self._name, folder, offsets, dataset.element_spec, bool(written["batched"]), size)

    def _checked(self, dataset: Any) -> dict[str, Any]:
        if not isinstance(dataset, tf.data.Dataset):
            raise InvalidDataError(
                f"The {self._name}: the decorated function returned {type(dataset).__name__}; return a "
                "tf.data.Dataset of single records."
            )
        if number_of(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
            raise InvalidDataError(
                f"The {self._name}: the decorated function returned a Dataset without end, which cannot be "
                "written. Leave dataset.repeat() out: training repeats it by itself."
            )
        return structure_of(dataset.element_spec, f"The {self._name}")

    def _write_records(self, dataset: Any, path: Path) -> tuple[Any, int]:
        offsets: list[int] = []
        position, say_at = 0, time.monotonic() + _SAID_EVERY
        logger.info("Writing the %s: this trial and the next ones read it from there.", self._name)
        serialized = dataset.map(tf.autograph.experimental.do_not_convert(to_record), tf.data.AUTOTUNE)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for tensor in elements_of(serialized.prefetch(tf.data.AUTOTUNE)):
                record = tensor.numpy() if tf.is_tensor(tensor) else tensor
                writer.write(record)
                offsets.append(position)
                position += len(record) + _FRAME
                if time.monotonic() >= say_at:
                    say_at += _SAID_EVERY
                    logger.info("Writing the %s: %d records so far.", self._name, len(offsets))
        if not offsets:
            raise InvalidDataError(f"The {self._name}: the decorated function returned a Dataset of no records.")
        return np.array(offsets, np.int64), position


def _as_folder(name: str) -> str:
    """Return a name for a folder: readable, and another one for every text."""
    readable = urllib.parse.quote(name, safe="").replace(".", "%2E")[:60]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _says_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, tf.errors.ResourceExhaustedError) and os.strerror(errno.ENOSPC) in error.message


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
