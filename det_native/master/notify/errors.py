"""Why a message has not left."""

from __future__ import annotations


class SendError(Exception):
    """A message was not taken; `lasting` says that to try again is of no use. Its text names no secret."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
