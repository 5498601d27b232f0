"""Uploads to S3 in parts: begun, continued part by part by whoever has their id, completed or aborted.

The parts of an upload that nobody completes are no file and in no list of files, but they take room until they are
aborted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from det_native.storage.folder import Folder
from det_native.storage.remote_folder import RemoteFolder, as_os_error

logger = logging.getLogger("det_native")


class Part(NamedTuple):
    """A part that has arrived: its number, from 1 on, its bytes, and what S3 calls its content."""

    number: int
    size: int
    tag: str


class Unfinished(NamedTuple):
    """An upload that is neither completed nor aborted; when it was begun, in seconds since 1970."""

    key: str
    id: str
    begun: float


class Multipart:
    """The uploads below a folder in S3.

    Parameters
    ----------
    folder : RemoteFolder
        One that is ``in_s3``.
    """

    def __init__(self, folder: RemoteFolder) -> None:
        self._folder = folder
        self._bucket, _, self._prefix = folder.path("").strip("/").partition("/")

    def _of(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}/{key}" if self._prefix else key}

    @as_os_error
    def begin(self, key: str) -> str:
        """Begin an upload; return its id."""
        return str(self._call("create_multipart_upload", **self._of(key))["UploadId"])

    @as_os_error
    def put(self, key: str, id: str, number: int, content: bytes) -> None:
        """Send a part; FileNotFoundError if there is no such upload any more."""
        self._call("upload_part", **self._of(key), UploadId=id, PartNumber=number, Body=content)

    @as_os_error
    def parts(self, key: str, id: str) -> list[Part]:
        """Return the parts that have arrived, in order; FileNotFoundError if there is no such upload any more."""
        found: list[Part] = []
        more: dict[str, Any] = {}
        while True:
            answer = self._call("list_parts", **self._of(key), UploadId=id, **more)
            found += [Part(one["PartNumber"], one["Size"], one["ETag"]) for one in answer.get("Parts", [])]
            if not answer.get("IsTruncated"):
                return sorted(found)
            more = {"PartNumberMarker": answer["NextPartNumberMarker"]}

    @as_os_error
    def complete(self, key: str, id: str, parts: Sequence[Part]) -> None:
        """Make a file of the parts."""
        made = {"Parts": [{"PartNumber": part.number, "ETag": part.tag} for part in parts]}
        self._call("complete_multipart_upload", **self._of(key), UploadId=id, MultipartUpload=made)

    @as_os_error
    def abort(self, key: str, id: str) -> None:
        """Give an upload up, and its parts; one that is not there any more is none."""
        try:
            self._call("abort_multipart_upload", **self._of(key), UploadId=id)
        except FileNotFoundError:
            return

    def unfinished(self, key: str = "") -> Iterator[Unfinished]:
        """Yield the uploads of the files below the folder `key`, the empty one for all."""
        prefix = self._of(f"{key}/" if key else "")["Key"]
        start = len(self._prefix) + 1 if self._prefix else 0
        more: dict[str, str] = {}
        while True:
            answer = self._list(prefix, more)
            for one in answer.get("Uploads") or []:
                yield Unfinished(one["Key"][start:], one["UploadId"], one["Initiated"].timestamp())
            if not answer.get("IsTruncated"):
                return
            more = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    @as_os_error
    def _list(self, prefix: str, more: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = self._call("list_multipart_uploads", Bucket=self._bucket, Prefix=prefix, **more)
        return found

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._folder.file_system.call_s3(method, **arguments)


def abort_left(
    folder: Folder, before: float | None = None, key: str = "", of: Callable[[str], bool] = lambda key: True
) -> int:
    """Abort uploads that nobody completes; return how many. Of a folder that is not in S3 there are none.

    Where S3 does not let them be listed they stay; a rule of the bucket is to remove them then.

    Parameters
    ----------
    before : float, optional
        Only those that were begun before this time, in seconds since 1970.
    key : str
        Only those of files below this folder.
    of : callable
        Returns of which files, by their keys.
    """
    if not isinstance(folder, RemoteFolder) or not folder.in_s3:
        return 0
    uploads = Multipart(folder)
    try:
        left = [one for one in uploads.unfinished(key) if (before is None or one.begun < before) and of(one.key)]
        for one in left:
            uploads.abort(one.key, one.id)
    except OSError as error:
        logger.warning("Parts that were left of uploads to %s are not removed now: %s", folder.uri, error)
        return 0
    return len(left)
