"""Bodies and answers about the page that a master serves, and about who is signed in there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from det_native.schema.bodies import API, Answer, Sent

#: Header in which the page sends the key that it got when it signed in.
KEY_HEADER = "X-Det-Session"
#: Parameter of an address with which a file is downloaded.
TICKET_PARAMETER = "ticket"

Secret = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PageAsk(Sent):
    """A client asks for a code with which its browser signs in.

    Attributes
    ----------
    forward : str
        Names the forwarded port over which the browser comes to the master's socket; empty where it comes by TCP.
    anew : bool
        Whether that port is about to be made: sessions of an earlier one are ended before.
    """

    forward: str = Field(default="", max_length=64, pattern="^[0-9a-z-]*$")
    anew: bool = False


class PageCode(Answer):
    """What opens the page once.

    Attributes
    ----------
    url : str
        Where this machine's browsers reach the master; empty for one that comes over a forwarded port.
    seconds : float
        How long the code may be used.
    """

    code: str
    url: str
    seconds: float


class SignIn(Sent):
    """The code of a link, given by the page."""

    code: Secret


class SignedIn(Answer):
    """A session has begun; its other half is a cookie.

    Attributes
    ----------
    key : str
        Sent with each request, in the header ``X-Det-Session``.
    idle_seconds, seconds : float
        The session ends after so long without a request, and after so long in all.
    """

    key: str
    idle_seconds: float
    seconds: float


class SessionInfo(Answer):
    """How long the session of the request goes on, if nothing is asked any more."""

    seconds: float


class TicketAsk(Sent):
    """A file that a link is to download, which can send no header."""

    address: str = Field(min_length=1, max_length=4096, pattern=f"^{API}/[^#]*$", description="Path and query.")


class Ticket(Answer):
    """The address that downloads the file, once and soon."""

    address: str
