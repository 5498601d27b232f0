"""The way to a master behind SSH: one connection and one forwarded socket for all processes of a user.

What stands is noted in a file of the home folder (``remote/``), and made anew by whoever finds that it stands no more.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from det_native.client.addresses import Verb
from det_native.client.remote.asking import MasterThere, ask
from det_native.client.remote.ssh import Line, answers
from det_native.client.remote.target import Target
from det_native.errors import DetError, MasterUnreachableError, NoMasterError
from det_native.schema.home import Home
from det_native.schema.private_files import write_private
from det_native.schema.processes import is_alive, start_mark
from det_native.schema.sockets import url_of

_LOCK_SECONDS = 150.0
_LOCK_POLL_SECONDS = 0.02
# For so long, nobody tries again what has just failed.
_FAILURE_SECONDS = 1.0
_END_SECONDS = 1.0


class Link(BaseModel):
    """A connection that stands, with the master at its other end."""

    model_config = ConfigDict(frozen=True)

    name: str
    pid: int
    start: str
    socket: str
    there: MasterThere
    made: str
    #: Port of 127.0.0.1 over which browsers of this machine reach the master there; 0 until one is asked for.
    page_port: int = 0

    @property
    def url(self) -> str:
        """Where the master is reached on this machine."""
        return url_of(Path(self.socket))

    @property
    def stands(self) -> bool:
        """Whether ``ssh`` holds the connection."""
        return is_alive(self.pid, self.start)


class PageWay(NamedTuple):
    """How browsers of this machine reach the master's page: the way's name, and its port if it stands."""

    name: str
    port: int | None


class Connection:
    """The files of the connection to one machine.

    Parameters
    ----------
    home : Home
        The folder of this user, here.
    """

    def __init__(self, target: Target, home: Home) -> None:
        self.target = target
        key = hashlib.sha256(target.name.encode()).hexdigest()[:16]
        folder = home.path / "remote"
        self._file = folder / f"{key}.json"
        self._last_port = folder / f"{key}.port"  # of the page, tried again: its open tabs go on then
        self._lock = FileLock(
            folder / f"{key}.lock", timeout=_LOCK_SECONDS, mode=0o600, poll_interval=_LOCK_POLL_SECONDS
        )
        self.line = Line(target, f"{home.path} {target.name}", folder / f"{key}.log")

    def standing(self) -> Link | None:
        """Return the connection if it stands; nothing is sent."""
        found = self._noted()
        return found if found is not None and found.stands else None

    def reach(self, verb: Verb, doubted: Link | None = None) -> Link:
        """Return the connection, made if need be.

        Parameters
        ----------
        verb : str
            ``start`` has a master started there if none runs.
        doubted : Link, optional
            One over which no master has answered: it is looked at, unless somebody has done so since.

        Raises
        ------
        DetError
            If there is no way to a master there.
        """
        found = self.standing()
        if found is not None and (doubted is None or found.made != doubted.made):
            return found
        with self._held():
            found = self.standing()
            if found is not None and (doubted is None or found.made != doubted.made):
                return found
            return self._made(verb)

    def stop(self, *, kill: bool) -> bool:
        """Stop the master there; return whether one ran.

        Parameters
        ----------
        kill : bool
            Whether to end its workers, too.
        """
        verb: Verb = "kill" if kill else "stop"
        with self._held():
            stood = self.line.process() is not None
            if not stood:
                self.line.open()
            try:
                return self._stopped(verb)
            except MasterUnreachableError:
                if not (stood and self._is_cut()):
                    raise
                self.line.open()
                return self._stopped(verb)
            finally:
                self._forget()

    def _stopped(self, verb: Verb) -> bool:
        try:
            ask(self.line, verb)
        except NoMasterError:
            return False
        return True

    def _is_cut(self) -> bool:
        """Whether the connection is gone: a command that has failed over it is back a moment before ``ssh`` ends."""
        deadline = time.monotonic() + _END_SECONDS
        while self.line.process() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOCK_POLL_SECONDS)
        return True

    def page_way(self) -> PageWay:
        """Return how browsers of this machine reach the page of the master there; nothing is sent."""
        link = self.standing()
        name = hashlib.sha256(f"{socket.gethostname()} {self._file}".encode()).hexdigest()[:32]
        return PageWay(name, link.page_port if link is not None and link.page_port else None)

    def forward_page(self) -> int:
        """Lead a port of this machine's loopback to the master there, for as long as the connection stands; return it.

        Raises
        ------
        MasterUnreachableError
            If that is not possible.
        """
        with self._held():
            link = self.standing()
            if link is None:
                raise MasterUnreachableError(f"The connection to {self.target.machine} broke off; try again.")
            if not link.page_port:
                before = int(self._last_port.read_text()) if self._last_port.exists() else 0
                link = link.model_copy(update={"page_port": self.line.forward_port(link.there.socket, before)})
                write_private(self._file, link.model_dump_json(indent=1) + "\n")
                write_private(self._last_port, str(link.page_port))
            return link.page_port

    @contextmanager
    def opened(self) -> Iterator[Line]:
        """Have a connection of one's own for the block: what takes long there holds up nobody."""
        name = f"{self._file.stem}-{os.getpid()}-{time.monotonic_ns()}"
        folder = self._file.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = folder / f"{name}.log"
        line = Line(self.target, f"{folder} {name}", log)
        try:
            line.open()
            yield line
        finally:
            line.close()
            log.unlink(missing_ok=True)

    @property
    def forbidden(self) -> bool:
        """Whether the server there does not let a socket be forwarded, though the master there runs.

        It says no more than that opening has failed.
        """
        return "open failed" in self.line.said()

    def close(self) -> bool:
        """End the connection, nothing else; return whether there was one."""
        with self._held():
            stood = self.standing() is not None
            self._forget()
        return stood

    def _made(self, verb: Verb) -> Link:
        known = self._noted()
        if known is not None and known.stands:
            try:
                return self._led(ask(self.line, verb), known)
            except MasterUnreachableError as error:
                if isinstance(error, NoMasterError):
                    self._forget()
                    raise
                if not self._is_cut():
                    raise  # the machine has answered
                self._forget()
        self.line.open()
        try:
            return self._led(ask(self.line, verb), known)
        except BaseException:
            self._forget()  # what stands, leads to a master
            raise

    def _forget(self) -> None:
        self.line.close()
        self._file.unlink(missing_ok=True)

    def _led(self, there: MasterThere, known: Link | None) -> Link:
        """Lead a socket to the master there, and note it."""
        pid = self.line.process()
        mark = None if pid is None else start_mark(pid)
        if pid is None or mark is None:
            raise MasterUnreachableError(f"The connection to {self.target.machine} broke off while it was made.")
        same = known is not None and (known.pid, known.start) == (pid, mark)
        page_port = 0
        if known is None or not same or known.there.runtime != there.runtime or not answers(self.line.forwarded):
            if known is not None and same and known.page_port:
                self.line.forget_port(known.page_port, known.there.socket)
            if known is not None and same:
                self.line.forget(known.there.socket)
            self.line.forward(there.socket)
        elif known is not None and known.page_port:
            page_port = known.page_port
        link = Link(
            name=self.target.name,
            pid=pid,
            start=mark,
            socket=str(self.line.forwarded),
            there=there,
            made=datetime.now(UTC).isoformat(),
            page_port=page_port,
        )
        noted = link.model_copy(update={"there": there.model_copy(update={"fresh": False})})
        write_private(self._file, noted.model_dump_json(indent=1) + "\n")
        return link

    def _noted(self) -> Link | None:
        try:
            return Link.model_validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock."""
        Path(self._lock.lock_file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise MasterUnreachableError(
                f"Another process has been connecting to {self.target.name} for {_LOCK_SECONDS:.0f} s; try again."
            ) from error
        try:
            yield
        finally:
            self._lock.release()


class Route:
    """How one session reaches a master behind SSH; threads may share it.

    Parameters
    ----------
    link : Link
        As it stands now.
    """

    #: Seconds that a client goes on waiting for the machine to be reachable again: a night on the road.
    patience = 86_400.0

    def __init__(self, connection: Connection, link: Link) -> None:
        self._connection = connection
        self._link = link
        self._doubted = False
        self._failure: DetError | None = None
        self._failed = 0.0
        self._since: datetime | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What the master is called."""
        return self._connection.target.name

    @property
    def machine(self) -> str:
        """What its machine is called."""
        return self._connection.target.machine

    def address(self) -> tuple[str, str]:
        """Return the master's address on this machine and its token; the connection is made anew if it is gone.

        Raises
        ------
        DetError
            If that is not possible now.
        """
        if self._doubted or not self._link.stands:
            with self._lock:
                if self._doubted or not self._link.stands:
                    self._renew()
        return self._link.url, self._link.there.token

    def _renew(self) -> None:
        if self._failure is not None and time.monotonic() - self._failed < _FAILURE_SECONDS:
            raise self._failure.with_traceback(None)  # of another thread, a moment ago
        try:
            self._link = self._connection.reach("find", self._link if self._doubted else None)
        except DetError as error:
            self._failure, self._failed = self._dated(error), time.monotonic()
            raise self._failure from error
        self._failure, self._since, self._doubted = None, None, False

    def _dated(self, error: DetError) -> DetError:
        """Return the error with since when the machine cannot be reached."""
        if not isinstance(error, MasterUnreachableError) or isinstance(error, NoMasterError):
            return error
        self._since = self._since or datetime.now(UTC).astimezone()
        return MasterUnreachableError(
            f"Out of touch with {self.name} since {self._since:%H:%M:%S}: what trains there goes on, and this is made "
            f"good by itself once the machine can be reached. {error}"
        )

    def page_way(self) -> PageWay:
        """Return how browsers of this machine reach the master's page."""
        return self._connection.page_way()

    def forward_page(self) -> int:
        """Lead a port of this machine to the master, and return it; raises as :meth:`Connection.forward_page` does."""
        self.address()  # which renews the connection if it is gone
        return self._connection.forward_page()

    def start(self) -> Link:
        """Have a master started there, since none has answered; return the way to it."""
        with self._lock:
            self._link = self._connection.reach("start", self._link)
            self._doubted = False
        return self._link

    def doubt(self) -> None:
        """Have the connection looked at before it is used again: a request has failed."""
        self._doubted = True

    def cut(self, reason: str) -> DetError:
        """Have the connection looked at before it is used again, and return the error that says since when.

        Parameters
        ----------
        reason : str
            Why nothing more came.
        """
        self.doubt()
        return self._dated(MasterUnreachableError(f"The connection broke off ({reason})."))
