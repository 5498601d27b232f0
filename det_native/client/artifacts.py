"""Files that the code of a trial has written: the list of them, and each of them."""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from det_native.client.file_formats import read_file
from det_native.client.listing import ENDS
from det_native.client.loading import safe_parts
from det_native.client.source import Source
from det_native.client.tables import table
from det_native.errors import ArgumentError, NotFoundError, StorageError
from det_native.schema import rest
from det_native.schema.sizes import shown_size

Folder = str | os.PathLike[str]


class Artifact:
    """A file that the code of a trial has written, as it was written last.

    Parameters
    ----------
    source : Source
    artifact : rest.Artifact
        Its facts.
    """

    #: What changes is the experiment, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True

    def __init__(self, source: Source, artifact: rest.Artifact) -> None:
        self._source = source
        self._known = artifact

    @property
    def facts(self) -> rest.Artifact:
        """Its facts."""
        return self._known

    @property
    def path(self) -> str:
        """Path relative to the working directory, with ``/``."""
        return self._known.path

    @property
    def size(self) -> int:
        """Bytes."""
        return self._known.size

    @property
    def batch(self) -> int:
        """Batches that were done when it was like this."""
        return self._known.batch

    @property
    def note(self) -> str:
        """Why its content was not kept; empty if it was."""
        return self._known.note

    def load(self) -> Any:
        """Return the content, read by the file's ending.

        Returns
        -------
        object
            ``.npy``, ``.npz``: an array, or a dict of arrays; ``.csv``, ``.tsv``: a DataFrame, without pandas a list of
            dicts; ``.json``; ``.txt``, ``.log``: str; ``.png``, ``.jpg``: an array; ``.pt``, ``.pth``: what
            ``torch.load(weights_only=True)`` gives; others: bytes.

        Raises
        ------
        StorageError
            If the content was not kept, or cannot be read.
        UnsupportedFeatureError
            For a pickle, which would run code here.
        MissingDependencyError
            If the package that reads such files is not installed.
        """
        with tempfile.TemporaryDirectory(prefix="det-artifact-") as folder:
            target = Path(folder) / self.path.rpartition("/")[2]
            self._source.artifact_content(self._known, target)
            return read_file(target, self.path)

    def download(self, to: Folder = ".", *, overwrite: bool = False) -> Path:
        """Copy the file into a folder, under its path.

        Parameters
        ----------
        to : str or path
            The folder; it is made if need be. The working directory by default.
        overwrite : bool
            Also over a file that has another content.

        Returns
        -------
        Path
            The copy.

        Raises
        ------
        StorageError
            If the content was not kept, another file lies there, or it cannot be written.
        """
        folder = _folder(to)
        target = _target(folder, self.path)
        _refuse_others([(self, target)], overwrite=overwrite)
        return self._fetch(target)

    def _fetch(self, target: Path) -> Path:
        if not _has_content(target, self._known):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._source.artifact_content(self._known, target)
            except OSError as error:
                raise StorageError(f"{target} cannot be written: {error.strerror or error}.") from error
        return target

    def __repr__(self) -> str:
        return f"<Artifact {self.path!r}, {shown_size(self.size)}, batch {self.batch}{', not kept' * bool(self.note)}>"


class Artifacts(Sequence[Artifact]):
    """The files of a trial, by path: ``artifacts[0]`` and ``artifacts["log.csv"]`` give one, ``download()`` copies all.

    Parameters
    ----------
    source : Source
    owner : str
        Whose they are, for messages.
    artifacts : iterable of rest.Artifact
    """

    _det_known_by_identity = True

    def __init__(self, source: Source, owner: str, artifacts: Iterable[rest.Artifact]) -> None:
        self._owner = owner
        self._all = [Artifact(source, artifact) for artifact in artifacts]

    @property
    def paths(self) -> list[str]:
        """Their paths."""
        return [artifact.path for artifact in self._all]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Artifact]:
        return iter(self._all)

    def __contains__(self, item: object) -> bool:
        return item in (self.paths if isinstance(item, str) else self._all)

    @overload
    def __getitem__(self, key: int | str) -> Artifact: ...
    @overload
    def __getitem__(self, key: slice) -> list[Artifact]: ...
    def __getitem__(self, key: int | str | slice) -> Artifact | list[Artifact]:
        if isinstance(key, str):
            return self._by_path(key)
        try:
            return self._all[key]
        except IndexError:
            raise IndexError(f"{self._owner.capitalize()} has written {_count(len(self))}.") from None

    def _by_path(self, path: str) -> Artifact:
        wanted = path.removeprefix("./")
        for artifact in self._all:
            if artifact.path == wanted:
                return artifact
        names = {name.rpartition("/")[2]: name for name in reversed(self.paths)}
        close = [names[name] for name in names if name == wanted]
        close = close or difflib.get_close_matches(wanted, self.paths, n=3, cutoff=0.6)
        close = close or [names[name] for name in difflib.get_close_matches(wanted, list(names), n=3, cutoff=0.6)]
        text = f"{self._owner.capitalize()} has written no file {path!r}"
        if close:
            text += f"; did you mean {' or '.join(map(repr, close))}?"
        elif self._all:
            shown = ", ".join(self.paths[:ENDS]) + (", ..." if len(self) > ENDS else "")
            text += f"; it has written {shown}."
        else:
            text += ", nor any other."
        raise NotFoundError(text)

    def download(self, to: Folder = ".", *, overwrite: bool = False) -> list[Path]:
        """Copy all files into a folder, under their paths; see :meth:`Artifact.download`.

        Those whose content was not kept are left out with a warning. Nothing is written if another file is in the way.
        """
        folder = _folder(to)
        wanted = [(artifact, _target(folder, artifact.path)) for artifact in self._all if not artifact.note]
        _refuse_others(wanted, overwrite=overwrite)
        left_out = [artifact.path for artifact in self._all if artifact.note]
        if left_out:
            shown = ", ".join(left_out[:ENDS]) + (", ..." if len(left_out) > ENDS else "")
            text = f"Not copied, because the contents were not kept: {shown}. The list of files says why."
            warnings.warn(text, UserWarning, stacklevel=2)
        return [artifact._fetch(target) for artifact, target in wanted]

    def __repr__(self) -> str:
        head = f"{_count(len(self)).capitalize()} of {self._owner}"
        if not self._all:
            return head
        rows = [
            (str(number), artifact.path, shown_size(artifact.size), artifact.batch, artifact.note)
            for number, artifact in enumerate(self._all)
        ]
        left_out = len(rows) - 2 * ENDS
        if left_out > 1:
            rows = [*rows[:ENDS], ("...", f"{left_out} more", "", rows[ENDS][3], ""), *rows[-ENDS:]]
        return f"{head}\n{table(('', 'path', 'size', 'batch', 'note'), rows)}"


def _count(number: int) -> str:
    return "no file" if number == 0 else "1 file" if number == 1 else f"{number} files"


def _folder(to: Folder) -> Path:
    if not isinstance(to, str | os.PathLike):
        raise ArgumentError(f"download() takes the path of a folder, not {to!r}.")
    folder = Path(to)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; give download() a folder.")
    return folder


def _target(folder: Path, path: str) -> Path:
    """Return where a file goes; nothing is written outside of the folder, by its path or through a link."""
    parts = safe_parts(path)
    target = folder.joinpath(*parts or (".",))
    root = os.path.realpath(folder)
    if parts is None or not os.path.realpath(target).startswith(root.rstrip(os.sep) + os.sep):
        raise StorageError(f"The path {path!r} leads out of the folder {folder}; nothing is written.")
    return target


def _refuse_others(wanted: Iterable[tuple[Artifact, Path]], *, overwrite: bool) -> None:
    """Refuse to write where a folder lies, or a file with another content."""
    for artifact, target in wanted:
        if target.is_dir():
            raise StorageError(f"{target} is a folder; give download() another one to copy {artifact.path!r} into.")
        if not overwrite and target.exists() and not _has_content(target, artifact.facts):
            raise StorageError(
                f"{target} has another content; nothing is written. Give download() another folder, or overwrite=True."
            )


def _has_content(path: Path, artifact: rest.Artifact) -> bool:
    if artifact.sha256 is None or not path.is_file() or path.stat().st_size != artifact.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == artifact.sha256
