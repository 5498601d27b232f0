"""What a training call asks of capture, and what capture finds, before it becomes a bundle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import PrivateAttr

from det_native.capture.log import CallRecord
from det_native.capture.nesting import HEADLINE as HEADLINE
from det_native.capture.submitted import CapturedAnswers, CapturedTraining
from det_native.schema.manifests import BundleManifest, CallKind, Framework, Program, ReadEntry, SettledEntry, Sha256
from det_native.schema.proof import CallProof
from det_native.schema.reports import CaptureRow
from det_native.schema.worker_environment import PackageUse

#: Why a file is sent that the user named.
INCLUDED = "named in include="

#: Returns the execution that makes a file where the program runs, None of a file that is to be sent.
Maker = Callable[[Path], int | None]


@dataclass(frozen=True)
class SourceFile:
    """A file to send: where it lies, where it goes (relative to the working directory, forward slashes), and why."""

    path: Path
    target: str
    why: str
    cell: str = ""


@dataclass(frozen=True)
class OutsidePath:
    """A file or folder outside of what is sent that the program names: by which text, its path, and where."""

    text: str
    path: Path
    cell: str
    where: str


@dataclass(frozen=True)
class OwnPath:
    """An absolute path in the folder of the user's files: as it is written, how that calls the folder, and its use."""

    text: str
    folder: str
    is_written: bool


@dataclass(frozen=True)
class CapturedValue:
    """A value to send, encoded. It is bound just before cell number `before_cell` of the program runs.

    `in_place`: the program has made the object of which it is the later state.
    """

    name: str
    content: bytes
    before_cell: int
    description: str
    cell: str = ""
    in_place: bool = False


@dataclass(frozen=True)
class CapturedStreams:
    """States of the streams of random numbers, encoded, as they stood before cell number `before_cell` ran.

    `in_every_trial` is False for those that follow from the seed of a trial: of cells after its ``init()``.
    """

    content: bytes
    before_cell: int
    in_every_trial: bool


@dataclass
class Notes:
    """What there is to say of a program: lines of the report on what is *not* sent, and sentences."""

    rows: list[CaptureRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class CapturedPaths:
    """The paths of a program.

    Attributes
    ----------
    root : Path or None
        The folder of the user's files.
    reads : list of ReadEntry
        What it reads where it runs.
    outside : list of OutsidePath
        What it names by a path that leads out of what is sent.
    own : list of OwnPath
        What it names by an absolute path in `root`.
    folders : list of str
        Folders that have to be there, by their places.
    made : callable, optional
        Knows the files that the program makes where it runs.
    makes : callable
        Whether a cell makes a folder.
    settled : callable
        Gives the paths that are put right on the worker, of a program with these files.
    """

    root: Path | None = None
    reads: list[ReadEntry] = field(default_factory=list)
    outside: list[OutsidePath] = field(default_factory=list)
    own: list[OwnPath] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    made: Maker | None = None
    makes: Callable[[Path], bool] = lambda folder: False
    settled: Callable[[Collection[str]], list[SettledEntry]] = lambda files: []


@dataclass
class CapturedHistory:
    """What the notebook did until the call, and what it came to: the worker does the same, and compares.

    Attributes
    ----------
    init_streams : bytes
        States of the streams of random numbers as ``init()`` left them, encoded; empty where they are not known.
    earlier : list of CapturedTraining
        Trainings whose weights the program's calls give.
    answers : list of CapturedAnswers
        What the program asks of the experiments of its calls, where nothing compares what the recorded one is given.
    proof_values : dict
        Values of inputs that travel with the proof, by hash.
    """

    streams: list[CapturedStreams] = field(default_factory=list)
    init_streams: bytes = b""
    earlier: list[CapturedTraining] = field(default_factory=list)
    answers: list[CapturedAnswers] = field(default_factory=list)
    proof: CallProof | None = None
    proof_values: dict[Sha256, bytes] = field(default_factory=dict)


@dataclass
class Capture:
    """A program and what it needs.

    Attributes
    ----------
    packages : list of PackageUse
        The installed ones that it imports.
    requirements : list of str
        What its cells install.
    notes : Notes
        What there is to say of it.
    """

    program: Program
    values: list[CapturedValue] = field(default_factory=list)
    files: list[SourceFile] = field(default_factory=list)
    paths: CapturedPaths = field(default_factory=CapturedPaths)
    history: CapturedHistory = field(default_factory=CapturedHistory)
    packages: list[PackageUse] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)


class BundleRow(CaptureRow):
    """A row of the report about things that are sent: it knows by which blobs. Elsewhere it is a plain row."""

    _hashes: frozenset[Sha256] = PrivateAttr(default=frozenset())

    @property
    def hashes(self) -> frozenset[Sha256]:
        """Blobs that carry what the row is about."""
        return self._hashes

    @classmethod
    def about(
        cls, hashes: Iterable[Sha256], *, what: str, how: str, size: int, cell: str = "", note: str = ""
    ) -> BundleRow:
        """Make a row about `hashes`."""
        row = cls(what=what, how=how, size=size, cell=cell, note=note)
        row._hashes = frozenset(hashes)
        return row


@dataclass(frozen=True)
class Bundle:
    """A manifest, where the content of each blob is to be had (a file or bytes), and the report so far.

    `states` are (size, mtime_ns, ctime_ns, inode) of the files when they were hashed, of those that can be trusted to
    be unchanged as long as these are. `places` says where the files of the manifest lie, by their path there.
    """

    manifest: BundleManifest
    contents: dict[Sha256, Path | bytes]
    report: list[CaptureRow]
    warnings: list[str] = field(default_factory=list)
    states: dict[Sha256, tuple[int, int, int, int]] = field(default_factory=dict)
    places: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What a call asks of capture; see ``capture_call``."""

    framework: Framework
    kind: CallKind
    init_executions: tuple[int, ...] | None = None
    needed: tuple[object, ...] = ()
    values: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    context_dir: Path | None = None
    init: CallRecord | None = None
