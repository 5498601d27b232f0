"""The section ``notify``: who is told of what happens to an experiment, and how."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from det_native.schema.section import Positive, Secret, Section

EventName = Literal["end", "failure", "nan", "plateau", "best"]
EVENTS: tuple[EventName, ...] = ("end", "failure", "nan", "plateau", "best")
#: How a secret is named in a configuration that is stored and shown; a webhook keeps its host.
REFERENCE = re.compile(r"secret:[0-9a-f]{16}(?:@[^@/\s]+)?")
_ADDRESS = re.compile(r"[^@\s,;<>\"]+@[^@\s,;<>\"]+")
# Where clouds answer every process of a machine with its credentials.
_METADATA = ("169.254.169.254", "100.100.100.200", "fd00:ec2::254", "192.0.0.192")
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})


# Below these, the last 32 bits are an address of IPv4 that a translator (NAT64) or the system itself sends to.
_TRANSLATED = tuple(ipaddress.IPv6Network(prefix) for prefix in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96"))


def _meant(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address of IPv4 that one of IPv6 stands for, where it does: mapped, translated, tunnelled."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if any(address in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


def why_not(address: str) -> str:
    """Return why nothing is sent to an IP address, empty if it may be; loopback and private ones may be."""
    try:
        found = _meant(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return "it is no address"
    if found in {ipaddress.ip_address(one) for one in _METADATA}:
        return "there the machine's cloud gives out credentials"
    if found.is_link_local:
        return "it is a link-local address"
    if found.is_multicast or found.is_unspecified:
        return "no single machine has it"
    return ""


def check_webhook(url: str) -> str:
    """Return the URL of a webhook.

    Raises
    ------
    ValueError
        If nothing can be sent there, or is.
    """
    if REFERENCE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("must be an address such as https://example.org/hook") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must be an address of http or https, such as https://example.org/hook")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise ValueError("must be an address without spaces")
    refused = "there the machine's cloud gives out credentials" if host.lower() in _METADATA_NAMES else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        refused = why_not(host)
    if refused:
        raise ValueError(f"must not be {host}: {refused}")
    return url


def _email(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"must be an e-mail address, not {address!r}")
    return address


class Plateau(Section):
    """When a metric counts as no better any more.

    Attributes
    ----------
    metric : str or None
        The searcher's by default.
    batches, epochs, validations : int or None
        For so long it has not become better; one of them.
    min_delta : float
        By so much at least it has to be better.
    """

    metric: str | None = None
    batches: Positive | None = None
    epochs: Positive | None = None
    validations: Positive | None = None
    min_delta: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @field_validator("min_delta", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if sum(length is not None for length in (self.batches, self.epochs, self.validations)) != 1:
            raise ValueError("needs one of batches, epochs and validations: for how long the metric is no better")
        return self


class Notify(Section):
    """One entry: on what, and to whom.

    Attributes
    ----------
    name : str
        What it is called in lists and messages.
    on : list of str
        ``end`` (in whatever way), ``failure``, ``nan`` (a metric is not a number), ``plateau`` and ``best`` (a new best
        value of the searcher's metric, once a minute at most).
    webhook : str or None
        Where JSON is posted.
    format : str
        ``json``, or ``slack`` for ``{"text": ...}``.
    secret : str or None
        Signs what is posted.
    email : str or None
        Who gets an e-mail, by the SMTP server of the master.
    desktop : bool
        Whether JupyterLab shows it.
    plateau : Plateau or None
        When a plateau is one; needed for that event.
    """

    name: Annotated[str, Field(max_length=100)] = ""
    on: list[EventName] = Field(default=["end", "failure"], min_length=1)
    webhook: Annotated[Secret, AfterValidator(lambda url: None if url is None else check_webhook(url))] = None
    format: Literal["json", "slack"] = "json"
    secret: Secret = None
    email: Annotated[str, AfterValidator(_email)] | None = None
    desktop: bool = False
    plateau: Plateau | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.webhook is None and self.email is None and not self.desktop:
            raise ValueError("needs one of webhook, email and desktop: where the message goes")
        if self.webhook is None and self.secret is not None:
            raise ValueError("has a secret and no webhook, which it would sign")
        if "plateau" in self.on and self.plateau is None:
            raise ValueError("is told of a plateau and lacks plateau: for example {validations: 5}")
        return self
