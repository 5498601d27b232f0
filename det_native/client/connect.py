"""Finding the master: the one that is named, the one that runs on this machine, or a new one."""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from det_native._version import PROTOCOL, __version__
from det_native.client.addresses import Verb, is_loopback, named_master, normal_url
from det_native.client.home import find_master, read_token
from det_native.client.remote.target import Target, is_ssh, parse_target
from det_native.client.session import Find, Session
from det_native.errors import (
    AuthenticationError,
    DetError,
    MasterUnreachableError,
    NoMasterError,
    ProtocolMismatchError,
)
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.rest import Health
from det_native.schema.sockets import is_socket

if TYPE_CHECKING:
    from det_native.client.remote.link import Link


# Workers have it in their environment (``master.launch.tree.MARKER_VARIABLE``), and so has what they start.
_WORKER_VARIABLE = "DET_WORKER"

# One session for each process, master and start of it: a child of fork must not share its parent's connections.
_sessions: dict[tuple[int, str, str], Session] = {}
_lock = threading.RLock()
# Tokens that this process was given for masters, by address; nothing stores them.
_tokens: dict[str, str] = {}


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A thread of the parent's, which records a run, may hold it.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


@dataclass(frozen=True)
class Address:
    """Where a master is, and what opens it.

    Attributes
    ----------
    token : str
        Never shown.
    incarnation : str
        Start of its process, of the master of a home folder or behind SSH; empty for one that is named by its address.
    named : str
        What the user calls it, where that is not its address.
    """

    url: str
    token: str = field(repr=False)
    incarnation: str = ""
    named: str = ""

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return self.named or self.url


def locate(master_url: str | None = None) -> Address | None:
    """Return the address of the master that is named, else of the one that runs on this machine, else None.

    Nothing is sent; a machine that is named by ``ssh://`` and not connected now gives None, too.

    Raises
    ------
    ArgumentError
        If the named address is none, or would carry the token in the clear.
    AuthenticationError
        If there is no token for it.
    """
    home = Home.default()
    named = named_master(master_url)
    if named and is_ssh(named):
        return address_of(named)
    if named:
        return _named(normal_url(named), home)
    runtime = read_runtime(home)
    return None if runtime is None else _local(runtime, home)


def connect(master_url: str | None = None, *, start: bool = True, framework: str | None = None) -> Session:
    """Return a session with the master, which is looked for in this order.

    1. `master_url`, then the environment variables ``DET_MASTER`` and ``DET_MASTER_ADDR``. Their token is
       ``DET_TOKEN``, or for an address on this machine the token of the home folder. ``unix:`` alone names none.
    2. The master that runs in the home folder (``DET_HOME``).
    3. A new one there, in the background; it outlives this process.

    Of a machine that is named as ``ssh://user@host:port``, it is the master of the user there, started if none runs.

    In a worker, which trains a copy of the program, there is none to look for.

    Parameters
    ----------
    master_url : str, optional
        ``https://host:port``, ``ssh://user@host:port``, or for one on this machine ``unix:/path/of/master.sock`` or, if
        it was started with a port, ``http://127.0.0.1:port``.
    start : bool
        Whether to start one where none runs.
    framework : str, optional
        What will be trained: a master that is started here has it imported by the time it is needed.

    Raises
    ------
    MasterUnreachableError
        If the named master does not answer, or none runs and `start` is False, or this process is a worker.
    MasterStartError
        If a master was started but did not get ready.
    AuthenticationError
        If there is no token for the named master, or it is refused later.
    ProtocolMismatchError
        If the master is too old or too new for this client.
    """
    if _WORKER_VARIABLE in os.environ:
        raise MasterUnreachableError(
            "This code runs in a worker, which can reach no master: bring what it needs of earlier results along from "
            "the notebook, by `values=` of the call that trains or as the files that `checkpoint.download()` gives."
        )
    home = Home.default()
    named = named_master(master_url)
    with _lock:
        if named:
            try:
                return _over_ssh(named, home, start) if is_ssh(named) else _session(_named(normal_url(named), home))
            except (MasterUnreachableError, AuthenticationError) as error:
                raise _saying_who_names_it(error, named) from error
        runtime = read_runtime(home)
        if runtime is None:
            if not start:
                raise NoMasterError(f"No master runs in {home.path}. Start one with `det up`.")
            runtime = _start(home, framework)
        return _session(_local(runtime, home), partial(find_master, home))


def _saying_who_names_it(error: DetError, named: str) -> DetError:
    """Return the error with what named the master: a variable is easily forgotten."""
    variable = next((name for name in ("DET_MASTER", "DET_MASTER_ADDR") if os.environ.get(name) == named), None)
    source = f"The environment variable {variable} points there" if variable else "The call names it (master_url, -m)"
    return type(error)(f"{error} {source}; without it, the master of this machine is used.")


def remember_token(master_url: str | None, token: str) -> None:
    """Have this process open a master with a token; that of this machine, and one behind SSH, need none."""
    named = named_master(master_url)
    if named and not is_ssh(named):
        _tokens[normal_url(named)] = token


def forget_token(master_url: str | None) -> None:
    """Forget the token that this process was given for a master."""
    named = named_master(master_url)
    if named and not is_ssh(named):
        _tokens.pop(normal_url(named), None)


def _named(url: str, home: Home) -> Address:
    token = _tokens.get(url) or os.environ.get("DET_TOKEN") or (read_token(home) if is_loopback(url) else None)
    if not token:
        hint = "" if is_loopback(url) else f" If the machine is reached by SSH, write ssh://{urlsplit(url).hostname}."
        raise AuthenticationError(f"There is no token for the master at {url}: set DET_TOKEN.{hint}")
    return Address(url, token)


def address_of(named: str, verb: Verb | None = None, doubted: bool = False) -> Address | None:
    """Return where the master behind SSH is reached on this machine.

    Parameters
    ----------
    named : str
        ``ssh://user@host:port``.
    verb : str, optional
        ``find`` connects if need be, ``start`` has a master started there, too. Default: nothing is done, and the
        answer is None where no connection stands.
    doubted : bool
        Whether no answer came from the address that stands.
    """
    from det_native.client.remote.link import Connection

    target = parse_target(named)
    connection = Connection(target, Home.default())
    link = connection.standing()
    if verb is not None:
        link = connection.reach(verb, link if doubted else None)
    return None if link is None else Address(link.url, link.there.token, link.there.runtime.start, target.name)


def _over_ssh(named: str, home: Home, start: bool) -> Session:
    from det_native.client.remote.link import Connection, Route

    target = parse_target(named)
    key = (os.getpid(), target.name, str(home.path))
    connection = Connection(target, home)
    session = _sessions.get(key)
    if session is None:
        link = connection.reach("start" if start else "find")
        _say_started(target, link)
        session = Session(link.url, link.there.token, route=Route(connection, link))
    try:
        health = session.health()
    except NoMasterError:
        if not start or not isinstance(session.route, Route):
            raise
        _say_started(target, session.route.start())
        health = session.health()
    except MasterUnreachableError as error:
        if not connection.forbidden:
            raise
        raise MasterUnreachableError(
            f"The SSH server of {target.machine} lets no socket be forwarded: its sshd_config needs "
            "`AllowStreamLocalForwarding local` (or yes)."
        ) from error
    check_version(health, target.name)
    _sessions[key] = session
    return session


def _say_started(target: Target, link: Link) -> None:
    if link.there.fresh:
        print(
            f"Started a master on {target.machine}. It keeps running; `det -m {target.name} down` stops it, "
            f"`det -m {target.name} status` tells of it."
        )


def _local(runtime: RuntimeFile, home: Home) -> Address:
    if not is_socket(runtime.url):
        raise ProtocolMismatchError(
            f"The master of {home.path} is version {runtime.version}, from before this client ({__version__}), and "
            "listens at a port, where others may listen too: it is told nothing. Restart it: `det down` and `det up`; "
            "running trials go on."
        )
    token = read_token(home)
    if token is None:
        raise AuthenticationError(
            f"The token of the running master, {home.token}, is gone. Restart it: `det down` and `det up`."
        )
    return Address(runtime.url, token, runtime.start)


def _start(home: Home, framework: str | None) -> RuntimeFile:
    from det_native.client.starting import ensure_master

    started = ensure_master(home, ("--warm", framework) if framework else ())
    if started.fresh:
        print("Started a master on this machine. It keeps running; `det down` stops it, `det status` tells of it.")
    return started.runtime


def revive(session: Session) -> bool:
    """Start the master of this machine again if it was killed; one that was stopped on purpose stays so.

    Parameters
    ----------
    session : Session
        With that master.

    Returns
    -------
    bool
        Whether it runs.
    """
    from det_native.client.starting import ensure_master

    home = Home.default()
    # A master removes the file when it is stopped.
    if session.find is None or not home.runtime.exists() or read_runtime(home) is not None:
        return False
    ensure_master(home)
    return True


def _session(address: Address, find: Find | None = None) -> Session:
    key = (os.getpid(), address.url, f"{address.incarnation} {address.token}")
    known = _sessions.get(key)
    if known is not None:
        return known
    session = Session(address.url, address.token, find=find)
    check_version(session.health(), address.url)
    for other in [other for other in _sessions if other[:2] == key[:2]]:
        _sessions.pop(other).close()  # of an earlier master at this address
    _sessions[key] = session
    return session


def check_version(health: Health, url: str) -> None:
    """Compare versions with the master.

    Raises
    ------
    ProtocolMismatchError
        If the two cannot talk; the message says which side to renew, and how.
    """
    if health.protocol != PROTOCOL:
        master_is_older = health.protocol < PROTOCOL
        remedy = (
            _renewal_there(url, health, master_is_older)
            if is_ssh(url)
            else "Restart it: `det down` and `det up`; running trials go on."
            if master_is_older and is_loopback(url)
            else "Have it upgraded."
            if master_is_older
            else f"Upgrade here: pip install det-native=={health.version}"
        )
        raise ProtocolMismatchError(
            f"The master at {url} is version {health.version} (protocol {health.protocol}), this client is "
            f"{__version__} (protocol {PROTOCOL}). {remedy}"
        )
    if health.version != __version__ and _number(health.version) < _number(__version__):
        warnings.warn(
            f"The master at {url} is version {health.version}, older than this client ({__version__}); "
            f"{_renewal_there(url, health, True) if is_ssh(url) else '`det down` and `det up` renew it.'}",
            stacklevel=2,
        )


def _renewal_there(name: str, health: Health, master_is_older: bool) -> str:
    """Return how to make the versions here and behind SSH the same."""
    if not master_is_older:
        return f"Upgrade here: pip install det-native=={health.version}"
    return (
        f"`det remote setup {name}` brings this version there; `det -m {name} down` ends the older master, running "
        "trials go on, and the next submit starts the new one."
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
