"""The refusal of a bundle whose contents are not all here."""

from __future__ import annotations

from det_native.errors import DetError


class MissingBlobsError(DetError):
    """A bundle names blobs that are not here yet."""

    def __init__(self, missing: list[str]) -> None:
        self.missing = missing
        super().__init__(f"{len(missing)} blobs of the bundle are missing; send them first.")
