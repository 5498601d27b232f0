"""Manifests of bundles (code, values, files of an experiment) and of checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator

from det_native.schema.numbers import words
from det_native.schema.proof import CallProof

Sha256 = str
CallKind = Literal["fit", "train", "create", "train_and_evaluate", "command", "init"]
# The name of a framework, by which its description is found. Whether there is one, hangs on the Python that is asked.
FRAMEWORK_NAME = "^[a-z][a-z0-9_]{0,15}$"
Framework = Annotated[str, Field(pattern=FRAMEWORK_NAME)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Model):
    """A file of the bundle; `path` is relative to the worker's working directory, with forward slashes."""

    path: str
    sha256: Sha256
    size: int
    mode: int = 0o644


class ValueEntry(_Model):
    """A value sent along; it is bound in the program's namespace before cell `before_cell` of the program runs.

    Values of several names, with what these share, have one content. `in_place`: the program has made an object that
    this is the later state of; others may hold it.
    """

    name: str
    codec: str = "objects"  # bundles of earlier versions have others
    sha256: Sha256
    size: int
    before_cell: int = 0
    in_place: bool = False


class StreamsEntry(_Model):
    """States of the global streams of random numbers, as they stood before cell `before_cell` of the program ran.

    `in_every_trial` is False for a cell after ``init()``: there only a trial with the notebook's own seed has them.
    """

    sha256: Sha256
    size: int
    before_cell: int
    in_every_trial: bool = True


class ReadEntry(_Model):
    """A path that the program reads where it runs; `where` is the cell or file with the line.

    One that is not `certain` is named there, and may be read.
    """

    path: str
    where: str
    certain: bool = True


class PlaceEntry(_Model):
    """A path that the program names, by its text, and where the worker has it, relative to the working directory."""

    text: str
    target: str


class FolderEntry(_Model):
    """A folder of the working directory. It is there when the program begins, unless a cell makes it.

    `made`: a cell makes it, which does not fail because files in it travel.
    """

    path: str
    made: bool = False


class SettledEntry(_Model):
    """A path that becomes, before cell `before_cell` of the program runs, what the bundle has of it, if anything."""

    path: str
    before_cell: int


class Cell(_Model):
    """One execution of the log that the call needs.

    `source` is Python that compiles: magics, shell and display lines are blanked, so that line numbers stay those of
    the notebook. `number` is what the notebook shows in brackets; `reason` is one line for the report. From line
    `optional_from` on, an error ends the cell and not the program: 1 where the call needs nothing of it, and the line
    that failed in the notebook, `failed_line`, too.
    """

    number: int | None
    cell_id: str | None
    source: str
    reason: str = ""
    optional_from: int | None = None
    failed_line: int | None = None


class CallSite(_Model):
    """The training call that the controller takes over, or the ``init()`` that it belongs to.

    `file` is None for a call written in a cell (`cell` is then the index into ``Program.cells``), else the path of a
    script or module relative to the working directory. `line` counts from 1, `column` from 0; `occurrence` counts
    from 1 the times that this very place was reached while its cell (or script) ran. `running` is the index of the cell
    that was running, None for the last one; `running_line` the line of its top level that was running, None if that is
    not known.
    """

    kind: CallKind
    cell: int | None = None
    file: str | None = None
    line: int
    column: int
    occurrence: int = 1
    running: int | None = None
    running_line: int | None = None


class EarlierTraining(_Model):
    """A training call of the program before the recorded one, whose weights the notebook has by now.

    `checkpoint` is the uuid of the one that they are of, after `batch` batches; `history` has the training's metrics by
    epoch, as ``det_native.past_history`` reads them. `went_on` is of earlier versions.
    """

    site: CallSite
    experiment_id: int
    checkpoint: str
    batch: int
    history: Sha256
    size: int
    went_on: bool = False


class EarlierAnswers(_Model):
    """What the program has asked of the experiment of a training call before the recorded one, with the answers.

    `answers` has them as ``det_native.client.replayed_source`` reads them; `checkpoints` are those whose files it read.
    `init` is the ``init()`` of the call, in a script.
    """

    site: CallSite
    init: CallSite | None = None
    experiment_id: int
    answers: Sha256
    size: int
    checkpoints: tuple[str, ...] = ()


class Program(_Model):
    """What a worker runs: cells of a notebook in order, a script with its arguments, or a command.

    For ``kind="script"`` `command` is ``[path relative to the working directory, *arguments]``; for ``"command"`` what
    is started as a process of its own. `call` is the training
    call, `init` the ``init()`` whose context it went through; None if there is none, or it is not known. `earlier` are
    the other training calls that give something here, `answers` what was asked of their experiments where nothing
    compares what the recorded call is given.
    """

    kind: Literal["cells", "script", "command"]
    framework: Framework
    cells: tuple[Cell, ...] = ()
    command: tuple[str, ...] = ()
    call: CallSite | None = None
    init: CallSite | None = None
    earlier: tuple[EarlierTraining, ...] = ()
    answers: tuple[EarlierAnswers, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_prompts(cls, content: Any) -> Any:
        """Leave out what programs of earlier versions said of the numbers of their cells."""
        return {k: v for k, v in content.items() if k != "prompts"} if isinstance(content, dict) else content

    @property
    def command_line(self) -> str:
        """The script or the command as a user writes it; empty for cells."""
        return self.command[2] if self.command[:2] == ("sh", "-c") else " ".join(self.command)

    @property
    def earlier_checkpoints(self) -> set[str]:
        """Uuids of the checkpoints that the program reads before its recorded call."""
        read = (uuid for each in self.answers for uuid in each.checkpoints)
        return {earlier.checkpoint for earlier in self.earlier}.union(read)

    def title(self, index: int) -> str:
        """Return how a cell, by its index, is named to the user."""
        number = self.cells[index].number
        return f"cell number {index + 1}" if number is None else f"cell [{number}]"


class Interpreter(_Model):
    """The Python that the bundle was made with."""

    python: str
    executable: str
    packages: dict[str, str] = Field(default_factory=dict)

    @property
    def minor(self) -> str:
        """``"3.11"`` for ``"3.11.7"``."""
        return ".".join(self.python.split(".")[:2])

    @property
    def fingerprint(self) -> str:
        """Key of the warm standbys that can run this bundle."""
        text = json.dumps([self.python, self.executable, sorted(self.packages.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# Fields of a bundle that came later than others.
_LATER = (
    "packages",
    "streams",
    "init_streams",
    "proof",
    "links",
    "reads",
    "places",
    "folders",
    "settled",
)
_DROPPED = ("wider", "widened")


class BundleManifest(_Model):
    """Everything a worker needs of the user's: a program, values and files, by hash.

    The id of the bundle is the hash of this manifest in canonical JSON.
    """

    format: Literal[1] = 1
    protocol: int
    interpreter: Interpreter
    program: Program
    # One fault of a hundred thousand alike is enough to tell.
    files: Annotated[tuple[FileEntry, ...], FailFast(), Field(max_length=100_000)] = ()
    values: Annotated[tuple[ValueEntry, ...], FailFast()] = ()
    requirements: tuple[str, ...] = ()
    # Installed for it, beside what the workers have: ``environment.packages``.
    packages: tuple[str, ...] = ()
    streams: tuple[StreamsEntry, ...] = ()
    # Where ``init()`` of the call left them: a trial with the notebook's own seed goes on from there.
    init_streams: StreamsEntry | None = None
    proof: CallProof | None = None
    # Files that do not travel with it, since the cluster's store of data has them.
    links: tuple[FileEntry, ...] = ()
    # Paths that the program reads and that only the workers have.
    reads: tuple[ReadEntry, ...] = ()
    # Absolute paths that lead to files of `links`, or into the working directory.
    places: tuple[PlaceEntry, ...] = ()
    # Folders that the program writes to, or makes though files in them travel.
    folders: tuple[FolderEntry, ...] = ()
    # What cells that do not run again have removed or replaced of what others make.
    settled: tuple[SettledEntry, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_second_program(cls, content: Any) -> Any:
        """Leave out what bundles of earlier versions had besides: a program with more cells."""
        return {k: v for k, v in content.items() if k not in _DROPPED} if isinstance(content, dict) else content

    def canonical(self) -> bytes:
        """Return the bytes whose hash is the bundle's id; later fields that are not used leave it as it was."""
        return json.dumps(self.content(), sort_keys=True, separators=(",", ":")).encode()

    def content(self) -> dict[str, Any]:
        """Return the fields for JSON, without later ones that are not used: an older master does not know them."""
        content = self.model_dump(mode="json")
        for name in _LATER:
            if not content[name]:
                del content[name]
        if not content["program"]["earlier"]:
            del content["program"]["earlier"]
        for cell in content["program"]["cells"]:
            for name in ("optional_from", "failed_line"):
                if cell[name] is None:
                    del cell[name]
        for read in content.get("reads", ()):
            if read["certain"]:
                del read["certain"]
        return content

    @property
    def bound_to_python(self) -> bool:
        """Whether it has what only the same minor version of Python can load; source is not."""
        return bool(self.values)

    @property
    def id(self) -> str:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @property
    def check_key(self) -> str:
        """SHA-256 of what a check in a fresh process can find fault with.

        The same cells run again have other numbers, and so another `id`; what they are is the same.
        """
        content = json.loads(self.canonical())
        content["program"].pop("earlier", None)
        content["program"].pop("answers", None)
        for name in ("streams", "init_streams", "proof"):
            content.pop(name, None)
        for cell in content["program"]["cells"]:
            for name in ("number", "cell_id", "reason"):
                del cell[name]
        content["reads"] = [one["path"] for one in content.get("reads", [])]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def hashes(self) -> set[Sha256]:
        """Return the hashes of all blobs that the bundle refers to."""
        of_init = [] if self.init_streams is None else [self.init_streams]
        every = (self.files, self.values, self.streams, of_init)
        noted = self.proof.values if self.proof is not None else ()
        histories = {earlier.history for earlier in self.program.earlier}
        histories |= {each.answers for each in self.program.answers}
        return {entry.sha256 for entries in every for entry in entries} | {value.sha256 for value in noted} | histories


class CheckpointFile(_Model):
    """A file of a checkpoint."""

    path: str
    sha256: Sha256
    size: int


class CheckpointManifest(_Model):
    """Written last into a checkpoint's folder, as ``manifest.json``; without it the checkpoint does not exist."""

    format: Literal[1] = 1
    uuid: str
    framework: Framework
    framework_version: str
    det_version: str
    batch: int
    experiment_id: int | None
    trial_id: int | None
    run_id: str | None
    bundle_id: str | None
    hparams: dict[str, Any]
    created: str
    files: tuple[CheckpointFile, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    # No field of its own: the hashes of all manifests that were written before would change.
    METRICS: ClassVar[str] = "validation_metrics"

    @property
    def own_metrics(self) -> dict[str, Any] | None:
        """Validation metrics of weights that were changed after the validation of their batch; empty if unknown.

        A callback or the end of the training changes them. None where nothing has: then the metrics of the batch hold
        for the checkpoint.
        """
        return self.metadata.get(self.METRICS)

    @classmethod
    def with_metrics(cls, metadata: Mapping[str, Any], metrics: Mapping[str, float] | None) -> dict[str, Any]:
        """Return the `metadata` of a checkpoint with these as :attr:`own_metrics`."""
        others = {name: value for name, value in metadata.items() if name != cls.METRICS}
        if metrics is None:
            return others
        return {**others, cls.METRICS: words(dict(metrics))}

    @property
    def sha256(self) -> Sha256:
        """SHA-256 of the manifest, the same for the one that was reported and the one that lies in the storage."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)
