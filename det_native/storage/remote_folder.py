"""A folder in an object store or on another machine, by fsspec."""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import IO, Any, NamedTuple, ParamSpec, TypeVar

from det_native.errors import DetError, MissingDependencyError, StorageError
from det_native.storage.folder import INCOMING
from det_native.storage.frames import Buffer
from det_native.storage.parts import part_size

# Where a put is atomic by itself: the object appears when the upload is complete. Elsewhere a rename follows.
_OBJECT_STORES = frozenset({"memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci"})
# Those that remember listings, though other processes write.
_REMEMBER = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
_S3 = frozenset({"s3", "s3a"})
# Where somebody waits for the answer, an S3 that is silent is given up after some 12 seconds; s3fs alone tries ten
# times, which takes minutes, and is right for what is trained unattended.
_PROMPT: Mapping[str, Any] = {"connect_timeout": 4, "read_timeout": 6, "retries": {"total_max_attempts": 2}}
_EXTRAS = {
    "s3": "'det-native[s3]'",
    "s3a": "'det-native[s3]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hdfs": "pyarrow",
    "oss": "ossfs",
    "oci": "ocifs",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
}

_MARK = "of_object_store"

P = ParamSpec("P")
R = TypeVar("R")


class FoundFile(NamedTuple):
    """A file of a folder: its key, its bytes, and when it was last written, in seconds since 1970."""

    key: str
    size: int
    modified: float


def is_remote(error: BaseException) -> bool:
    """Return whether an error is what an object store has said, or the way to it: nothing of a disk here."""
    return getattr(error, _MARK, False)


def as_os_error(method: Callable[P, R]) -> Callable[P, R]:
    """Have what the libraries of object stores raise be an OSError, as everything is that a file system refuses."""

    @wraps(method)
    def called(*arguments: P.args, **more: P.kwargs) -> R:
        try:
            return method(*arguments, **more)
        except OSError as error:
            setattr(error, _MARK, True)
            raise
        except (DetError, NotImplementedError):
            raise
        except Exception as error:
            meant = OSError(f"{type(error).__name__}: {str(error).rstrip('.')}")
            setattr(meant, _MARK, True)
            raise meant from error

    return called


class _Reading(io.RawIOBase):
    """A stream of an object store, whose errors are those of a file system."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._stream.read(len(buffer))
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class RemoteFolder:
    """A folder of anything that fsspec reaches.

    Parameters
    ----------
    uri : str
        Such as ``s3://bucket/folder``.
    options : mapping, optional
        What fsspec's file system takes: keys, an endpoint. They are shown nowhere.
    prompt : bool
        Whether somebody waits: a storage that does not answer is given up soon. What `options` say of time limits
        (``config_kwargs`` of S3) counts.

    Raises
    ------
    MissingDependencyError
        If the package for that kind of storage is not installed.
    StorageError
        If the address or the options mean nothing to it.
    """

    local = False

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, *, prompt: bool = False) -> None:
        from fsspec.core import url_to_fs

        scheme = uri.partition("://")[0]
        given = dict(options or {})
        if scheme in _REMEMBER:
            given.setdefault("use_listings_cache", False)
        config = given.get("config_kwargs") or {}
        limited = prompt and scheme in _S3 and isinstance(config, Mapping)
        if limited:
            given["config_kwargs"] = {**_PROMPT, **config}
        try:
            self._fs, root = url_to_fs(uri, **given)
        except ImportError as error:
            package = _EXTRAS.get(scheme, "the fsspec package for it")
            raise MissingDependencyError(
                f"Storage at {scheme}:// needs another package where it is used: pip install {package}"
            ) from error
        except (ValueError, TypeError) as error:
            # Its text may repeat an option, and so a secret.
            told = f": {error}" if not options else f" ({type(error).__name__}); look at the names of its options"
            raise StorageError(f"The storage address {uri!r} cannot be used{told}.") from None
        if limited and "retries" not in config:
            self._fs.retries = 1  # its own, on top of those of the connection
        self.uri = uri.rstrip("/")
        self._root = root.rstrip("/")
        self._atomic = scheme in _OBJECT_STORES
        #: Whether it is in S3, where large files arrive in parts (see :mod:`det_native.storage.multipart`).
        self.in_s3 = scheme in _S3

    @property
    def file_system(self) -> Any:
        """What fsspec calls a file system."""
        return self._fs

    def path(self, key: str) -> str:
        """Return the name of `key` in the file system."""
        return f"{self._root}/{key}"

    @as_os_error
    def exists(self, key: str) -> bool:
        """Return whether a file lies under `key`; an error if the storage does not say."""
        try:
            return bool(self._fs.info(self.path(key))["type"] == "file")
        except (FileNotFoundError, NotADirectoryError):
            return False

    @as_os_error
    def size(self, key: str) -> int:
        """Return the bytes under `key`."""
        return int(self._fs.size(self.path(key)))

    @as_os_error
    def modified(self, key: str) -> float:
        """Return when the file under `key` was last written, in seconds since 1970; now where nobody knows."""
        return _written(self._fs.info(self.path(key)))

    def files(self, key: str = "") -> Iterator[FoundFile]:
        """Yield all files below the folder `key`, the empty one for all."""
        start = len(self._root) + 1
        for name, facts in self._listed(key).items():
            yield FoundFile(name[start:], int(facts["size"]), _written(facts))

    @as_os_error
    def _listed(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self._fs.find(self.path(key).rstrip("/"), detail=True)
        return found

    @as_os_error
    def read(self, key: str, offset: int, length: int) -> bytes:
        """Return a piece of the file under `key`, shorter only at its end."""
        content: bytes = self._fs.cat_file(self.path(key), start=offset, end=offset + length)
        return content

    @as_os_error
    def open(self, key: str) -> IO[bytes]:
        """Open for reading."""
        opened: IO[bytes] = _Reading(self._fs.open(self.path(key), "rb"))  # type: ignore[assignment]
        return opened

    @as_os_error
    def publish(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Put the whole content at once: a stream that breaks off could leave half an object."""
        content = b"".join(pieces)
        self._put(key, lambda name: self._fs.pipe_file(name, content))

    @as_os_error
    def publish_file(self, key: str, source: Path) -> None:
        """Upload `source`; a large one in parts, which S3 drops if something fails, unless this process is killed."""
        how = {"chunksize": part_size(source.stat().st_size)} if self.in_s3 else {}
        self._put(key, lambda name: self._fs.put_file(str(source), name, **how))

    @as_os_error
    def copy(self, source: str, key: str) -> bool:
        """Have the file system copy it."""
        try:
            self._put(key, lambda name: self._fs.cp_file(self.path(source), name))
        except (FileNotFoundError, NotImplementedError):  # removed meanwhile, or it cannot
            return False
        return True

    def _put(self, key: str, put: Any) -> None:
        target = self.path(key)
        if self._atomic and self._fs.protocol != "memory":  # folders of object stores are names
            put(target)
            return
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        if self._atomic:
            put(target)
            return
        incoming = self.path(INCOMING)
        self._fs.makedirs(incoming, exist_ok=True)
        temporary = f"{incoming}/{secrets.token_hex(16)}"
        put(temporary)
        self._fs.mv(temporary, target)

    @as_os_error
    def delete(self, key: str) -> None:
        """Remove the file under `key`, if there is one."""
        try:
            self._fs.rm_file(self.path(key))
        except FileNotFoundError:
            return

    @as_os_error
    def delete_tree(self, key: str) -> None:
        """Remove everything under the folder `key`, if there is anything."""
        try:
            self._fs.rm(self.path(key), recursive=True)
        except FileNotFoundError:
            return
        finally:
            self._fs.invalidate_cache()

    @as_os_error
    def children(self) -> list[str]:
        """Return the names of the first-level folders."""
        self._fs.invalidate_cache()
        try:
            entries = self._fs.ls(self._root, detail=True)
        except FileNotFoundError:
            return []
        return [str(entry["name"]).rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory"]


def _written(facts: Mapping[str, Any]) -> float:
    for name in ("LastModified", "mtime", "last_modified", "updated", "created"):
        found = facts.get(name)
        if isinstance(found, int | float):
            return float(found)
        if isinstance(found, datetime):
            return found.timestamp()
    return time.time()
