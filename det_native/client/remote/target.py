"""The address of a machine that is reached by SSH."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from det_native.errors import ArgumentError

_SCHEME = "ssh://"
_FORM = "ssh://user@host:port"
# None of them may begin with a dash: ssh would take it for an option.
_ADDRESS = re.compile(
    r"(?:(?P<user>[^@/?#]*)@)?(?P<host>\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[A-Za-z0-9_][A-Za-z0-9_.-]*)(?::(?P<port>\d{1,5}))?/?"
)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\+$-]*")
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Target:
    """Where to, as ``ssh`` is told.

    Attributes
    ----------
    host : str
        Name, number, or a name of the user's ``~/.ssh/config``.
    user : str or None
        None: the one of that file, else the name of the user here.
    port : int or None
        None: the one of that file, else 22.
    python : str or None
        Interpreter there that has det_native; None: the first one that is found.
    """

    host: str
    user: str | None = None
    port: int | None = None
    python: str | None = None

    @property
    def name(self) -> str:
        """The address as a user writes it."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        python = f"?python={quote(self.python)}" if self.python else ""
        return f"{_SCHEME}{user}{host}{port}{python}"

    @property
    def machine(self) -> str:
        """What the machine is called in a sentence."""
        return f"{self.user}@{self.host}" if self.user else self.host

    @property
    def arguments(self) -> list[str]:
        """The last arguments of ``ssh``."""
        user = ["-l", self.user] if self.user else []
        port = ["-p", str(self.port)] if self.port else []
        return [*user, *port, "--", self.host]

    @property
    def typed(self) -> str:
        """The command by which a user reaches the machine in a terminal."""
        return f"ssh {f'-p {self.port} ' if self.port else ''}{self.machine}"

    @property
    def known_as(self) -> str:
        """How ``known_hosts`` names the machine."""
        return f"[{self.host}]:{self.port}" if self.port and self.port != 22 else self.host


def is_ssh(address: str) -> bool:
    """Return whether an address is meant to be reached by SSH."""
    return address.strip().lower().startswith(_SCHEME)


def parse_target(address: str) -> Target:
    """Return the target that an address names.

    Parameters
    ----------
    address : str
        ``ssh://[user@]host[:port][?python=/path/there]``.

    Raises
    ------
    ArgumentError
        If it is not of that form, or holds a password.
    """
    text, _, query = address.strip()[len(_SCHEME) :].partition("?")
    match = _ADDRESS.fullmatch(text)
    user = unquote(match["user"]) if match is not None and match["user"] is not None else None
    if user is not None and ":" in user:
        raise ArgumentError("An ssh:// address must not hold a password: ssh uses your keys, agent and ~/.ssh/config.")
    port = int(match["port"]) if match is not None and match["port"] else None
    complete = match is not None and (user is None or _USER.fullmatch(user)) and port != 0
    if match is None or not complete or (port or 0) > _HIGHEST_PORT:
        given = "" if "@" in text and ":" in text.partition("@")[0] else f' "{address}"'  # no password gets into a log
        raise ArgumentError(f'The master\'s address{given} is not of the form "{_FORM}".')
    options = dict(parse_qsl(query, keep_blank_values=True))
    python = options.pop("python", None)
    if options or (query and not python):
        raise ArgumentError(
            f'The master\'s address "{address}" has "?{query}", of which nothing is known: "?python=/path/there" may '
            "follow the host."
        )
    if python is not None and not python.startswith(("/", "~/")):
        raise ArgumentError(f'"?python={python}" in the master\'s address is to be an absolute path there.')
    return Target(match["host"].strip("[]"), user or None, port, python)
