"""Takes in files and folders that a program reads, and says of others why they are not sent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.facts import human_size
from det_native.capture.files import environment_file_row
from det_native.capture.folders import CODE, SKIPPED, files_in, files_of_pattern, links_in, size_of_file
from det_native.capture.missing_files import OF_THE_KERNEL
from det_native.capture.model import OutsidePath, SourceFile
from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.schema.home import Home
from det_native.schema.rest import CaptureRow

#: Files and bytes that a pattern may stand for, by whether it says more of them than an ending.
FEW = {True: (1_000, 64 << 20), False: (50, 16 << 20)}
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


class Collector:
    """Takes in what a program names.

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
    maker : callable
        Returns the label of the cell that makes a file where the program runs.
    """

    def __init__(
        self,
        root: Path,
        working_directory: Path,
        whole: bool,
        titles: Mapping[str, str],
        maker: Callable[[Path], str | None],
    ) -> None:
        self.maker = maker
        self.titles = titles
        self.root, self.working_directory, self.whole = root, working_directory, whole
        # Where the code itself looks for relative paths, here as on the worker.
        self.folders = [root]
        self.found = DataFiles()
        self.seen: set[str] = set()
        self.taken: set[Path] = set()
        self.elsewhere: set[Path] = set()
        self.sought: list[str] = []  # patterns
        self.homes: dict[Path, bool] = {}

    def add(self, text: str, label: str) -> None:
        if not text.strip(" ./\\") or len(text) > 400 or "\n" in text or "://" in text or text in self.seen:
            return
        self.seen.add(text)
        for path, relative in self.matches(text):
            if path == self.root or path in self.root.parents:
                continue
            if self.root in path.parents:
                self.take(path, text, label, relative)
            elif not text.startswith(OF_THE_KERNEL) and not self.is_made(path):
                self.elsewhere.add(path)
                self.not_sent(text, label, self.beyond(text, path), size=size_of_file(path))

    def look_for(self, text: str, label: str, line: int) -> None:
        """Warn of a file that is read and is not there."""
        if next(self.matches(text), None) is None:
            title = self.title(label)
            self.found.warnings.append(
                f"{title}, line {line}, reads {text!r}, which is not there: the worker will not find it either. "
                f"Correct the path (it is looked for in {self.root}), or let the code make the file."
            )

    def note_read(self, text: str, label: str, line: int) -> None:
        """Note what is to be looked for where the program runs; what is sent with it is known already."""
        inside = "://" not in text and self.root in Path(text).expanduser().parents
        if not inside:
            title = self.title(label)
            self.found.reads.append((text, f"{title}, line {line}"))

    def note_outside(self, text: str, label: str, line: int) -> None:
        """Note what lies here, and is not sent."""
        path = Path(os.path.abspath(os.path.expanduser(text)))
        known = any(one.text == text for one in self.found.outside)
        if known or self.root in (path, *path.parents) or path in self.root.parents or not path.exists():
            return
        if self.is_made(path):
            return
        title = self.title(label)
        where = f"{title}, line {line}" if line else title
        self.found.outside.append(OutsidePath(text, path, label, where))

    def add_folder(self, folder: str) -> None:
        """Look for relative paths in a folder too that the program makes its working directory."""
        for base in self.folders[:_MOST_FOLDERS]:
            path = (base / folder).resolve()
            if path not in self.folders and self.root in path.parents and path.is_dir():
                self.folders.append(path)

    def _bases(self) -> Iterator[tuple[Path, bool]]:
        """Yield the folders to look in, and whether the worker looks in them."""
        yield from ((folder, True) for folder in self.folders)
        if self.working_directory not in self.folders:
            yield self.working_directory, False

    def add_pattern(self, pattern: str, label: str) -> None:
        """Take in what matches a pattern; its first part may also stand for the folder itself, ``.``."""
        for text in [pattern, pattern[2:]] if pattern.startswith("*/") else [pattern]:
            if text and text not in self.seen:
                self.seen.add(text)
                self._matching(text, label)

    def _matching(self, pattern: str, label: str) -> None:
        named = not pattern.startswith("*/") and any(map(str.isalpha, re.sub(r"\.\w+$", "", pattern)))
        most, size = FEW[named]
        anywhere = False
        for base, relative in self._bases():
            if anywhere and not relative:
                return
            found = files_of_pattern(base, pattern, most)
            anywhere = anywhere or bool(found)
            new = [file for file in found if file not in self.taken and self.maker(file) is None]
            if len(new) > most or sum(map(size_of_file, new)) > size:
                note = (
                    f"stands for too much, over {most:,} files or {human_size(size)}: name in include= what is needed"
                )
                self.not_sent(pattern, label, note, how="pattern")
                return
            for position, file in enumerate(new):
                # One warning for all of them is enough.
                self._add_matching(file, pattern, label, relative or position > 0)

    def _add_matching(self, file: Path, pattern: str, label: str, relative: bool) -> None:
        if self.root not in file.parents:
            self.not_sent(pattern, label, self.beyond(pattern, file))
        elif is_key_file(file.name):
            target = file.relative_to(self.root).as_posix()
            self.leave_key(target, label, f"matches {pattern!r}")
        else:
            self.take(file, pattern, label, relative)

    def leave_key(self, target: str, label: str, why: str) -> None:
        note = f"{why}, but looks like a key or password: include=[{target!r}] sends it"
        self.not_sent(target, label, note, how="file")

    def beyond(self, text: str, path: Path) -> str:
        """Return what is to be known of a text that leads out of what is sent, to `path`."""
        if Path(text).expanduser().is_absolute():
            return "read from where the worker can see it"
        if text.startswith(".."):
            return "outside of what is sent: the worker has nothing by this name"
        return f"leads through a link to {path}, outside of what is sent: include=[{text!r}] sends it"

    def _through_links(self, folder: Path, label: str) -> list[Path]:
        """Return the files of the folders that links in a folder lead to; those outside are named instead."""
        files: list[Path] = []
        for link in links_in(folder):
            name, real = link.relative_to(self.root).as_posix(), link.resolve()
            if real in link.parents:
                self.not_sent(name, label, "a link to a folder that it lies in")
            elif self.root in real.parents:
                files += [link / file.relative_to(real) for file in files_in(real)]
            else:
                self.not_sent(name, label, self.beyond(name, real))
        return files

    def not_sent(self, what: str, label: str, note: str, *, how: str = "path", size: int = 0) -> None:
        row = CaptureRow(what=what, how=how, size=size, cell=label, status="not sent", note=note)
        if row not in self.found.rows:
            self.found.rows.append(row)

    def matches(self, text: str) -> Iterator[tuple[Path, bool]]:
        """Existing files and folders that the text names, and whether the worker finds them under that name."""
        try:
            expanded = Path(text).expanduser()
            if expanded.is_absolute():
                if expanded.exists():
                    yield expanded.resolve(), False
                return
            anywhere = False
            for base, relative in self._bases():
                if anywhere and not relative:
                    return
                found = [base / text] if (base / text).exists() else []
                if not found and any(mark in text for mark in "*?") and text[:1] != "/":
                    found = [path for path in base.glob(text) if path.is_file()]
                anywhere = anywhere or bool(found)
                yield from ((path.resolve(), relative) for path in found)
        except (OSError, ValueError, RuntimeError, NotImplementedError):
            return  # Not a path that this system can have.

    def take(self, path: Path, text: str, label: str, relative: bool = True, *, why: str = "") -> None:
        """Take in a file, or what is in a folder, that a text names, or of which `why` says why it is sent."""
        if (path.suffix in CODE and not why) or path.name in SKIPPED:
            return
        if not relative:
            target = path.relative_to(self.root).as_posix()
            self.found.warnings.append(
                f"{self.title(label)} names {text!r}, which the worker has as {target!r}: write the path "
                f"relative to {self.root}, the working directory there."
            )
        if self.whole:
            return
        files = [path] if path.is_file() else [*files_in(path), *self._through_links(path, label)]
        if any(self._in_home(file) for file in files):
            note = "left out: the files of a det_native master, its token among them, never travel"
            self.not_sent(text, label, note)
        for file in files:
            if self._in_home(file) or file in self.taken:
                continue
            maker = self.maker(file)
            if maker is not None:
                self.not_sent(text, label, f"made by {self.place(maker)}, which runs again")
                continue
            target = file.relative_to(self.root).as_posix()
            if is_environment_file(file.name):
                row = environment_file_row(target, label)
                self.found.rows.extend([row] if row not in self.found.rows else [])
                continue
            self.taken.add(file)
            self.found.files.append(SourceFile(file, target, why or f"named in {self.place(label)} as {text!r}", label))

    def is_made(self, path: Path) -> bool:
        """Whether the program makes a file, or a folder with all that is in it."""
        return self.maker(path) is not None and (path.is_file() or all(map(self.maker, files_in(path))))

    def title(self, label: str) -> str:
        """Return how a piece of the program is called at the beginning of a sentence."""
        return self.titles.get(label, label)

    def place(self, label: str) -> str:
        title = self.titles.get(label)
        return label if title is None else f"{title[0].lower()}{title[1:]}"

    def _in_home(self, file: Path) -> bool:
        """Whether a file lies in the home of a master."""
        for folder in file.parents:
            if folder not in self.homes:
                self.homes[folder] = Home.is_at(folder)
            if self.homes[folder]:
                return True
            if folder == self.root:
                break
        return False
