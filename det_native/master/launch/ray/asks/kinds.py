"""The kinds of asks and their answers. They travel as plain dictionaries of Ray, so that bytes stay bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: Folders of the master's home whose files an agent may read or write, each by a relative path.
Root = Literal["blobs", "data", "checkpoints", "tensorboard", "runs"]


@dataclass(frozen=True)
class Request:
    """A request of a worker to the master, whose answer is a :class:`Response`."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """What the master has answered; 503 where it did not."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Missing:
    """Which of these files the master has not; the answer is a list of paths."""

    root: Root
    paths: list[str]


@dataclass(frozen=True)
class Read:
    """A piece of a file; the answer is a :class:`Piece`."""

    root: Root
    path: str
    offset: int
    length: int


@dataclass(frozen=True)
class Piece:
    """Bytes of a file that has `size` of them; `content` is None where there is no such file."""

    content: bytes | None
    size: int = 0


@dataclass(frozen=True)
class Write:
    """A piece of a file of a run: at most where the file ends now. The answer is how long the file is then.

    Files of ``blobs`` and ``checkpoints`` arrive in a place of their own and appear by a :class:`Publish`. The name of
    a blob may have a suffix, ``<hash>.<sender>``: two senders do not write into one file. With `last` the file ends
    after this piece, whatever it had there before.
    """

    root: Root
    path: str
    offset: int
    content: bytes
    last: bool = False


@dataclass(frozen=True)
class Publish:
    """Have what has arrived appear: a blob once its hash is right, a checkpoint once its manifest and files are."""

    root: Literal["blobs", "checkpoints"]
    path: str


@dataclass(frozen=True)
class Share:
    """A file by which the processes of a run find each other; the other machines of the run get it."""

    run_id: str
    name: str
    content: bytes


@dataclass(frozen=True)
class RankEnded:
    """A process of a run is gone, and everything that it left is at the master; fields of ``Exit``."""

    run_id: str
    rank: int
    code: int | None
    detail: str = ""
    memory: str = ""
    begun: bool = True


@dataclass(frozen=True)
class Problem:
    """An ask that failed: `text` is a sentence, `name` the class of the error."""

    text: str
    name: str = ""


@dataclass(frozen=True)
class Ask:
    """An ask with its number, by which it is answered; the agent repeats it to the next bridge until it is."""

    number: int
    what: Request | Missing | Read | Write | Publish | Share | RankEnded


Reply = Response | Piece | Problem | list[str] | int | None


@dataclass(frozen=True)
class AgentFacts:
    """What a machine is like, as far as Ray does not tell."""

    host: str
    pid: int
    python: str
    version: str
    protocol: int
    folder: str
    cores: int
    packages: dict[str, str] = field(default_factory=dict)
    threads: str = ""  # the user's OMP_NUM_THREADS
