"""The token in the client's memory, and how it gets onto a request."""

from __future__ import annotations

import requests
from requests.auth import AuthBase


class Secret(str):
    """A token that no representation shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


class Bearer(AuthBase):
    """Puts the token on a request; not as a header of the session, which ``requests`` lets a ``.netrc`` replace."""

    def __init__(self, token: str) -> None:
        self._token = Secret(token)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Nobody(AuthBase):
    """Leaves a request as it is, where ``requests`` would look for a password in a ``.netrc``."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request
