"""Takes in files and folders that a program reads, and says of others why they are not sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.files import environment_file_row
from det_native.capture.folders import (
    CODE,
    SKIPPED,
    files_in,
    files_of_pattern,
    is_hidden,
    links_in,
    real_path,
    size_of_file,
)
from det_native.capture.missing_files import OF_THE_KERNEL, is_of_the_system
from det_native.capture.model import OutsidePath, SourceFile
from det_native.capture.modules import is_installed
from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.capture.seen_files import SeenFiles
from det_native.schema.home import Home
from det_native.schema.reports import CaptureRow
from det_native.schema.sizes import shown_size

#: Files and bytes that a pattern may stand for, by whether it says more of them than an ending.
_FEW = {True: (1_000, 64 << 20), False: (50, 16 << 20)}
_MOST_FOLDERS = 16


@dataclass
class DataFiles:
    """Files to send; rows about what is named but not sent."""

    files: list[SourceFile] = field(default_factory=list)
    rows: list[CaptureRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: What is read where the program runs: path or URL, and the place in the program.
    reads: list[tuple[str, str]] = field(default_factory=list)
    #: What lies here by an absolute path that leads out of what is sent.
    outside: list[OutsidePath] = field(default_factory=list)
    #: Folders that have to be there, by their targets, and those that the program makes itself, wherever it runs.
    folders: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)


class Collector:
    """Takes in what a program was seen to read, and what it names.

    Parameters
    ----------
    root : Path
        What lies in it is sent.
    working_directory : Path
        Of the kernel.
    whole : bool
        All of it is sent, so that nothing needs an entry.
    titles : mapping of str to str
        How labels are called at the beginning of a sentence.
    seen : SeenFiles
        What its runs were seen to read and make.
    """

    def __init__(
        self,
        root: Path,
        working_directory: Path,
        whole: bool,
        titles: Mapping[str, str],
        seen: SeenFiles,
    ) -> None:
        self.found = DataFiles()
        self._root, self._working_directory, self._whole = root, working_directory, whole
        self._titles, self._seen = titles, seen
        # Where the code itself looks for relative paths, here as on the worker.
        self._folders = [root]
        self._texts: set[str] = set()
        self._taken: set[Path] = set()
        self._elsewhere: set[Path] = set()
        self._homes: dict[Path, bool] = {}

    @property
    def folders(self) -> list[Path]:
        """Folders in which the code looks for relative paths."""
        return self._folders

    # What is sent.

    def add_folder(self, folder: str) -> None:
        """Look for relative paths in a folder too that the program makes its working directory."""
        for base in self._folders[:_MOST_FOLDERS]:
            path = (base / folder).resolve()
            if path not in self._folders and self._root in path.parents and path.is_dir():
                self._folders.append(path)

    def add_seen(self, sources: Sequence[tuple[str, str]]) -> None:
        """Take in what cells were seen to read."""
        seen = self._seen
        for folder in seen.moves:
            self.add_folder(folder)
        for name, label in seen.files.items():
            path = self._in_root(name)
            if path is None or os.path.isdir(name):
                continue
            target = path.relative_to(self._root).as_posix()
            if is_key_file(path.name) and not any(path.name in source for source, _ in sources):
                self._leave_key(target, label, "is read")
            elif self._root not in path.resolve().parents:
                self._leave_elsewhere(target, label, path.resolve(), size_of_file(path))
                self._elsewhere.add(path)
            else:
                self._take(path, target, label, why=f"read by {self._place(label)}")
        for name, label in seen.folders.items():
            path = self._in_root(name)
            if path is not None and path.is_dir() and self._root in path.resolve().parents:
                target = path.relative_to(self._root).as_posix()
                self._take(path, target, label, why=f"in {target}, which {self._place(label)} lists")
        for name, label in seen.patterns.items():
            if self._root in Path(name).parents:
                self.add_pattern(os.path.relpath(name, self._root), label)

    def add(self, text: str, label: str) -> None:
        """Take in what a text names, if it names anything."""
        if len(text) > 400 or "\n" in text or not self._is_new(text):
            return
        for path, relative in self._matches(text):
            if path == self._root or path in self._root.parents:
                continue
            if self._root in path.parents:
                self._take(path, text, label, relative)
            elif not text.startswith(OF_THE_KERNEL) and not self._is_made(path):
                self._elsewhere.add(path)
                self._leave_elsewhere(text, label, path, size_of_file(path))

    def add_pattern(self, pattern: str, label: str) -> None:
        """Take in what matches a pattern; its first part may also stand for the folder itself, ``.``."""
        for text in [pattern, pattern[2:]] if pattern.startswith("*/") else [pattern]:
            if text and text not in self._texts:
                self._texts.add(text)
                self._add_matching(text, label)

    def add_values(self, texts: Iterable[tuple[str, str]]) -> None:
        """Take in what texts in values name, if it is not too much."""
        named: dict[str, list[Path]] = {}
        for text, name in texts:
            for path, relative in self._matches(text) if self._is_new(text) else ():
                if (relative or os.path.isabs(text)) and self._in_root(str(path)) is not None:
                    inside = [path] if path.is_file() else files_in(path) if "/" in text else []
                    named.setdefault(name, []).extend(inside)
        for name, paths in named.items():
            for path in self._if_few(paths, name, "", "paths in a value"):
                if not is_key_file(path.name):
                    self._take(path, path.name, "", why=f"named by the value of `{name}`")

    def _is_new(self, text: str) -> bool:
        """Whether a text may be a path, and is met for the first time."""
        if text in self._texts or not text.strip(" ./\\") or "://" in text:
            return False
        self._texts.add(text)
        return True

    def _add_matching(self, pattern: str, label: str) -> None:
        named = not pattern.startswith("*/") and any(map(str.isalpha, re.sub(r"\.\w+$", "", pattern)))
        anywhere = False
        for base, relative in self._bases():
            if anywhere and not relative:
                return
            files = files_of_pattern(base, pattern, _FEW[named][0])
            anywhere = anywhere or bool(files)
            for position, file in enumerate(self._if_few(files, pattern, label, "pattern", named=named)):
                if self._root not in file.parents:
                    self._leave_elsewhere(pattern, label, file)
                elif is_key_file(file.name):
                    self._leave_key(file.relative_to(self._root).as_posix(), label, f"matches {pattern!r}")
                else:  # one warning for all of them is enough
                    self._take(file, pattern, label, relative or position > 0)

    def _if_few(self, paths: Iterable[Path], what: str, label: str, how: str, *, named: bool = True) -> list[Path]:
        """Return the files that are not sent already; none, and a row, if they are too much to be meant."""
        new = [path for path in dict.fromkeys(paths) if path not in self._taken and self._seen.maker(path) is None]
        most, size = _FEW[named]
        if len(new) <= most and sum(map(size_of_file, new)) <= size:
            return new
        note = f"stands for too much, over {most:,} files or {shown_size(size)}: name in include= what is needed"
        self._leave(what, label, note, how=how)
        return []

    def _take(self, path: Path, text: str, label: str, relative: bool = True, *, why: str = "") -> None:
        """Take in a file, or what is in a folder, that a text names, or of which `why` says why it is sent."""
        if (path.suffix in CODE and not why) or path.name in SKIPPED:
            return
        if not relative:
            target = path.relative_to(self._root).as_posix()
            self.found.warnings.append(
                f"{self._title(label)} names {text!r}, which the worker has as {target!r}: write the path "
                f"relative to {self._root}, the working directory there."
            )
        if self._whole:
            return
        for file in [path] if path.is_file() else [*files_in(path), *self._through_links(path, label)]:
            target = file.relative_to(self._root).as_posix()
            if self._in_home(file):
                self._leave(
                    text, label, "left out: the files of a det_native master, its token among them, never travel"
                )
            elif file in self._taken:
                continue
            elif (maker := self._seen.maker(file)) is not None:
                self._leave(text, label, f"made by {self._place(self._seen.label(maker))}, which runs again")
            elif is_environment_file(file.name):
                self._add_row(environment_file_row(target, label))
            else:
                self._taken.add(file)
                reason = why or f"named in {self._place(label)} as {text!r}"
                self.found.files.append(SourceFile(file, target, reason, label))

    def _through_links(self, folder: Path, label: str) -> list[Path]:
        """Return the files of the folders that links in a folder lead to; those outside are named instead."""
        files: list[Path] = []
        for link in links_in(folder):
            name, real = link.relative_to(self._root).as_posix(), link.resolve()
            if real in link.parents:
                self._leave(name, label, "a link to a folder that it lies in")
            elif self._root in real.parents:
                files += [link / file.relative_to(real) for file in files_in(real)]
            else:
                self._leave_elsewhere(name, label, real)
        return files

    # What is not sent, and the warnings about it.

    def warn_of_gone(self) -> None:
        """Warn of files that a cell has read and that are not there any more."""
        for name, label in self._seen.gone.items():
            path = self._in_root(name)
            if path is not None:
                self.found.warnings.append(
                    f"{self._title(label)} has read {path.relative_to(self._root).as_posix()!r}, which is not there "
                    "any more: the worker will not find it either. Put it back, or let the code make it."
                )

    def look_for(self, text: str, label: str, line: int) -> None:
        """Warn of a file that is read and is not there."""
        if next(self._matches(text), None) is None:
            self.found.warnings.append(
                f"{self._title(label, line)}, reads {text!r}, which is not there: the worker will not find it either. "
                f"Correct the path (it is looked for in {self._root}), or let the code make the file."
            )

    def note_read(self, text: str, label: str, line: int) -> None:
        """Note what is to be looked for where the program runs; what is sent with it is known already."""
        if self._root not in Path(text).expanduser().parents:
            self.found.reads.append((text, self._title(label, line)))

    def note_outside(self, text: str, label: str, line: int) -> None:
        """Note what lies here, and is not sent."""
        path = Path(os.path.abspath(os.path.expanduser(text)))
        is_ours = self._root in (path, *path.parents) or path in self._root.parents
        if not is_ours and path.exists() and not self._is_made(path):
            self.found.outside.append(OutsidePath(text, path, label, self._title(label, line)))

    def name_elsewhere(self) -> None:
        """Name files that cells have read outside of what is sent, and that no text names."""
        folders: dict[Path, list[tuple[Path, str]]] = {}
        for name, label in self._seen.files.items():
            path = Path(name)
            is_named = not self._elsewhere.isdisjoint((path, *path.parents))
            if self._in_root(name) is not None or self._root in path.parents or is_named or is_of_the_system(path):
                continue
            if path.is_file() and not self._is_made(path):
                folders.setdefault(path.parent, []).append((path, label))
        for folder, inside in folders.items():
            path, label = inside[0] if len(inside) == 1 else (folder, inside[0][1])
            self._leave_elsewhere(str(path), label, path, sum(size_of_file(file) for file, _ in inside))

    def _leave_key(self, target: str, label: str, why: str) -> None:
        note = f"{why}, but looks like a key or password: include=[{target!r}] sends it"
        self._leave(target, label, note, how="file")

    def _leave_elsewhere(self, text: str, label: str, path: Path, size: int = 0) -> None:
        """Say of a text that it leads out of what is sent, to `path`."""
        if Path(text).expanduser().is_absolute():
            note = "read from where the worker can see it"
        elif text.startswith(".."):
            note = "outside of what is sent: the worker has nothing by this name"
        else:
            note = f"leads through a link to {path}, outside of what is sent: include=[{text!r}] sends it"
        self._leave(text, label, note, size=size)

    def _leave(self, what: str, label: str, note: str, *, how: str = "path", size: int = 0) -> None:
        self._add_row(CaptureRow(what=what, how=how, size=size, cell=label, status="not sent", note=note))

    def _add_row(self, row: CaptureRow) -> None:
        if row not in self.found.rows:
            self.found.rows.append(row)

    # Where it is.

    def _bases(self) -> Iterator[tuple[Path, bool]]:
        """Yield the folders to look in, and whether the worker looks in them."""
        yield from ((folder, True) for folder in self._folders)
        if self._working_directory not in self._folders:
            yield self._working_directory, False

    def _matches(self, text: str) -> Iterator[tuple[Path, bool]]:
        """Existing files and folders that the text names, and whether the worker finds them under that name."""
        try:
            expanded = Path(text).expanduser()
            if expanded.is_absolute():
                if expanded.exists():
                    yield expanded.resolve(), True  # the worker's program is compiled with its own place of it
                return
            anywhere = False
            for base, relative in self._bases():
                if anywhere and not relative:
                    return
                found = [base / text] if (base / text).exists() else []
                if not found and any(mark in text for mark in "*?"):
                    found = [path for path in base.glob(text) if path.is_file()]
                anywhere = anywhere or bool(found)
                yield from ((path.resolve(), relative) for path in found)
        except (OSError, ValueError, RuntimeError, NotImplementedError):
            return  # Not a path that this system can have.

    def _in_root(self, name: str) -> Path | None:
        """Return a path if it lies in what is sent, and is none of Python, of a package, or hidden, as caches are."""
        path = Path(name)
        if self._root not in path.parents:
            path = Path(real_path(name))
        if self._root not in path.parents or is_installed(path, self._root):
            return None
        return None if is_hidden(path.relative_to(self._root)) and not is_environment_file(path.name) else path

    def _is_made(self, path: Path) -> bool:
        """Whether the program makes a file, or a folder with all that is in it."""
        maker = self._seen.maker
        return maker(path) is not None and (path.is_file() or None not in map(maker, files_in(path)))

    def _in_home(self, file: Path) -> bool:
        """Whether a file lies in the home of a master."""
        inside = [folder for folder in file.parents if folder == self._root or self._root in folder.parents]
        for folder in inside:
            if folder not in self._homes:
                self._homes[folder] = Home.is_at(folder)
        return any(self._homes[folder] for folder in inside)

    # How it is called.

    def _title(self, label: str, line: int = 0) -> str:
        """Return how a piece of the program is called at the beginning of a sentence."""
        title = self._titles.get(label, label)
        return f"{title}, line {line}" if line else title

    def _place(self, label: str) -> str:
        title = self._titles.get(label)
        return label if title is None else f"{title[0].lower()}{title[1:]}"
