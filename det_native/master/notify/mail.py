"""Sends e-mail by the SMTP server of the master."""

from __future__ import annotations

import ipaddress
import os
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import parse_qs, unquote, urlsplit

from det_native.errors import ArgumentError
from det_native.master.notify.errors import SendError

VARIABLE = "DET_SMTP_URL"
MISSING = (
    f"the master knows no SMTP server: set {VARIABLE}=smtp://user:password@host:587?from=address and start it anew"
)
_FORM = f"{VARIABLE} must be of the form smtp://user:password@host:587?from=address (or smtps://)"
_SECONDS = 20.0


@dataclass(frozen=True)
class SmtpServer:
    """An SMTP server and who sends by it."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> SmtpServer | None:
        """Return the server that ``DET_SMTP_URL`` names, None without it.

        Raises
        ------
        ArgumentError
            If it is of another form; the sentence does not repeat it, since it holds a password.
        """
        text = environment.get(VARIABLE)
        if not text:
            return None
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ArgumentError(f"{_FORM}.") from None
        sender = parse_qs(parts.query).get("from", [""])[0]
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname or "@" not in sender:
            raise ArgumentError(f"{_FORM}.")
        tls = parts.scheme == "smtps"
        return cls(
            host=parts.hostname,
            port=port or (465 if tls else 587),
            sender=sender,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            tls=tls,
        )

    @property
    def local(self) -> bool:
        """Whether it is on this machine: what is said to it, nobody else reads."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def send(server: SmtpServer, address: str, subject: str, text: str, *, delivery: str) -> None:
    """Send a mail.

    Raises
    ------
    SendError
        If it is not taken.
    """
    message = EmailMessage()
    message["From"] = server.sender
    message["To"] = address
    message["Subject"] = subject
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(f"det-{delivery}", domain="det-native.invalid")
    message.set_content(text)
    context = ssl.create_default_context()
    try:
        with _connected(server, context) as smtp:
            if not server.tls and smtp.has_extn("starttls"):
                smtp.starttls(context=context)
                smtp.ehlo()
            elif server.user and not server.tls and not server.local:
                raise SendError(f"{server.host} offers no encryption, and gets no password in the clear", lasting=True)
            if server.user:
                smtp.login(server.user, server.password)
            smtp.send_message(message)
    except smtplib.SMTPAuthenticationError as error:
        raise SendError(f"{server.host} refuses the user or password of {VARIABLE}", lasting=True) from error
    except smtplib.SMTPRecipientsRefused as error:
        code = next(iter(error.recipients.values()))[0]
        raise SendError(f"{server.host} refuses the recipient ({code})", lasting=code >= 500) from error
    except smtplib.SMTPResponseException as error:
        raise SendError(f"{server.host} answers {error.smtp_code}", lasting=error.smtp_code >= 500) from error
    except (OSError, smtplib.SMTPException) as error:
        raise SendError(f"{server.host} does not answer: {error}") from error


def _connected(server: SmtpServer, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.tls:
        return smtplib.SMTP_SSL(server.host, server.port, timeout=_SECONDS, context=context)
    smtp = smtplib.SMTP(server.host, server.port, timeout=_SECONDS)
    smtp.ehlo()
    return smtp
