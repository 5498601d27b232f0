"""The master's side of what agents ask: each ask is performed on the master's home, or by the master itself."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from det_native.errors import DetError, StorageError
from det_native.master.launch.ray.asks.home_files import HomeFiles
from det_native.master.launch.ray.asks.kinds import (
    Missing,
    Problem,
    Publish,
    RankEnded,
    Read,
    Reply,
    Request,
    Share,
    Write,
)
from det_native.master.launch.ray.asks.master_line import MasterLine
from det_native.master.launch.ray.asks.publishing import publish_blob, publish_checkpoint
from det_native.storage.paths import check_relative, check_uuid
from det_native.storage.room import storage_error

logger = logging.getLogger(__name__)

_THREADS = 16

What = Request | Missing | Read | Write | Publish | Share | RankEnded


class AskServer:
    """Performs what agents ask of a master.

    Any number of asks may be performed at the same time, and each more than once.

    Parameters
    ----------
    home : Path
        The master's.
    master_url : str
        Where the master listens: ``unix:/path``, or ``https://host:port``.
    """

    def __init__(self, home: Path, master_url: str) -> None:
        self._files = HomeFiles(home)
        self._line = MasterLine(master_url)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="det-asks")

    async def perform(self, what: What) -> Reply:
        """Return the answer to an ask; a `Problem` where it cannot be done.

        A share and the end of a process are not for the master: whoever passes asks on takes care of them.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._performed, what)

    def close(self) -> None:
        """Wait for what is being performed, and close the connections to the master."""
        self._threads.shutdown(wait=True)
        self._line.close()

    def _performed(self, what: What) -> Reply:
        try:
            return self._answer(what)
        except DetError as error:
            return Problem(str(error), type(error).__name__)
        except OSError as error:
            failed = storage_error(f"The master's files cannot be used: {error}.", error)
            return Problem(str(failed), type(failed).__name__)
        except Exception as error:  # an agent waits for an answer, whatever it is
            logger.exception("An ask cannot be performed: %r", type(what).__name__)
            return Problem(f"{type(error).__name__}: {error}", type(error).__name__)

    def _answer(self, what: What) -> Reply:
        match what:
            case Request():
                return self._line.send(what)
            case Missing():
                return self._files.missing(what.root, what.paths)
            case Read():
                return self._files.read(what.root, what.path, what.offset, what.length)
            case Write():
                return self._files.write(what.root, what.path, what.offset, what.content, last=what.last)
            case Publish(root="blobs"):
                arrived = self._files.arriving("blobs", what.path)
                publish_blob(self._files.root("blobs"), arrived, arrived.name.partition(".")[0])
            case Publish(root="checkpoints"):
                uuid = check_uuid("/".join(check_relative(what.path)))
                publish_checkpoint(self._files.root("checkpoints"), self._files.arriving("checkpoints", uuid), uuid)
            case _:
                raise StorageError(f"The master does not perform an ask of the kind {type(what).__name__}.")
        return None
