"""Data files that a program names by a string."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from det_native.capture.facts import human_size
from det_native.capture.files import environment_file_row
from det_native.capture.missing_files import files_only_read, paths_elsewhere, reads_elsewhere
from det_native.capture.model import OutsidePath, SourceFile
from det_native.capture.path_texts import changed_folders, path_literals, path_patterns
from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.schema.home import Home
from det_native.schema.rest import CaptureRow

#: Label of what the command line names.
COMMAND_LINE = "command line"
_FOR_RESULTS = re.compile(r"(?i)(^|[-_])(out|output|outputs|save|log|logs|results?|runs?|checkpoints?|ckpt)([-_]|$)")
_MOST_FOLDERS = 16
_SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints", ".git", "node_modules"})
_CODE = frozenset({".ipynb", ".py", ".pyc"})
#: Files and bytes that a pattern may stand for, by whether it says more of them than an ending.
_FEW = {True: (1_000, 64 << 20), False: (50, 16 << 20)}


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


def collect_data(
    sources: Sequence[tuple[str, str]],
    root: Path,
    working_directory: Path,
    context_dir: Path | None,
    titles: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    maker: Callable[[Path], str | None] = lambda path: None,
) -> DataFiles:
    """Return the files and folders that strings in the program name.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    root : Path
        The context directory, or without one the notebook's folder: what lies in it is sent.
    working_directory : Path
        What relative paths are relative to in the kernel.
    context_dir : Path or None
        If given it is sent whole, and nothing in it needs an entry.
    titles : mapping of str to str, optional
        How labels of cells are called at the beginning of a sentence; others as they are.
    arguments : sequence of str
        What the program is started with.
    maker : callable, optional
        Returns the label of the cell that makes a file where the program runs; None of a file that is to be sent.
    """
    all_titles = {COMMAND_LINE: "The command line", **(titles or {})}
    collector = _Collector(root.resolve(), working_directory.resolve(), context_dir is not None, all_titles, maker)
    for source, _ in sources:
        for folder in changed_folders(source):
            collector.add_folder(folder)
    for word in read_arguments(arguments):
        collector.add(word, COMMAND_LINE)
    for source, label in sources:
        for text in path_literals(source):
            collector.add(text, label)
    # Last: what a name as it stands, or a folder, takes in needs no pattern.
    for source, label in sources if context_dir is None else ():
        for pattern in path_patterns(source):
            collector.add_pattern(pattern, label)
    for text, label, line in files_only_read(sources):
        collector.look_for(text, label, line)
    for text, label, line in reads_elsewhere(sources):
        collector.note_read(text, label, line)
    words = [(word, COMMAND_LINE, 0) for word in read_arguments(arguments) if word.startswith(("/", "~/"))]
    for text, label, line in [*paths_elsewhere(sources), *words]:
        collector.note_outside(text, label, line)
    return collector.found


def read_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line that may name what is read: values of options, ``--file=d.txt``, among them.

    Where an option says by its name that it is for results, its value is none of them.
    """
    option = ""
    for word in arguments:
        name, _, value = word.partition("=") if word.startswith("-") else (option, "", word)
        if value and not _FOR_RESULTS.search(name):
            yield value
        option = word if word.startswith("-") and not value else ""


class _Collector:
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
        self.homes: dict[Path, bool] = {}

    def add(self, text: str, label: str) -> None:
        if not text.strip(" ./\\") or len(text) > 400 or "\n" in text or "://" in text or text in self.seen:
            return
        self.seen.add(text)
        for path, relative in self._matches(text):
            if path == self.root or path in self.root.parents:
                continue
            if self.root in path.parents:
                self._inside(path, text, label, relative)
            elif not self._is_made(path):
                self._not_sent(text, label, self._beyond(text, path), size=_size(path))

    def look_for(self, text: str, label: str, line: int) -> None:
        """Warn of a file that is read and is not there."""
        if next(self._matches(text), None) is None:
            title = self.titles.get(label, label)
            self.found.warnings.append(
                f"{title}, line {line}, reads {text!r}, which is not there: the worker will not find it either. "
                f"Correct the path (it is looked for in {self.root}), or let the code make the file."
            )

    def note_read(self, text: str, label: str, line: int) -> None:
        """Note what is to be looked for where the program runs; what is sent with it is known already."""
        inside = "://" not in text and self.root in Path(text).expanduser().parents
        if not inside:
            title = self.titles.get(label, label)
            self.found.reads.append((text, f"{title}, line {line}"))

    def note_outside(self, text: str, label: str, line: int) -> None:
        """Note what lies here, and is not sent."""
        path = Path(os.path.abspath(os.path.expanduser(text)))
        known = any(one.text == text for one in self.found.outside)
        if known or self.root in (path, *path.parents) or path in self.root.parents or not path.exists():
            return
        if self._is_made(path):
            return
        title = self.titles.get(label, label)
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
        most, size = _FEW[named]
        anywhere = False
        for base, relative in self._bases():
            if anywhere and not relative:
                return
            found = _files_of_pattern(base, pattern, most)
            anywhere = anywhere or bool(found)
            new = [file for file in found if file not in self.taken and self.maker(file) is None]
            if len(new) > most or sum(map(_size, new)) > size:
                note = (
                    f"stands for too much, over {most:,} files or {human_size(size)}: name in include= what is needed"
                )
                self._not_sent(pattern, label, note, how="pattern")
                return
            for position, file in enumerate(new):
                # One warning for all of them is enough.
                self._add_matching(file, pattern, label, relative or position > 0)

    def _add_matching(self, file: Path, pattern: str, label: str, relative: bool) -> None:
        if self.root not in file.parents:
            self._not_sent(pattern, label, self._beyond(pattern, file))
        elif is_key_file(file.name):
            target = file.relative_to(self.root).as_posix()
            note = f"matches {pattern!r}, but looks like a key or password: include=[{target!r}] sends it"
            self._not_sent(target, label, note, how="file")
        else:
            self._inside(file, pattern, label, relative)

    def _beyond(self, text: str, path: Path) -> str:
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
                self._not_sent(name, label, "a link to a folder that it lies in")
            elif self.root in real.parents:
                files += [link / file.relative_to(real) for file in files_in(real)]
            else:
                self._not_sent(name, label, self._beyond(name, real))
        return files

    def _not_sent(self, what: str, label: str, note: str, *, how: str = "path", size: int = 0) -> None:
        row = CaptureRow(what=what, how=how, size=size, cell=label, status="not sent", note=note)
        if row not in self.found.rows:
            self.found.rows.append(row)

    def _matches(self, text: str) -> Iterator[tuple[Path, bool]]:
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

    def _inside(self, path: Path, text: str, label: str, relative: bool) -> None:
        if path.suffix in _CODE or path.name in _SKIPPED:
            return
        if not relative:
            target = path.relative_to(self.root).as_posix()
            self.found.warnings.append(
                f"{self.titles.get(label, label)} names {text!r}, which the worker has as {target!r}: write the path "
                f"relative to {self.root}, the working directory there."
            )
        if self.whole:
            return
        files = [path] if path.is_file() else [*files_in(path), *self._through_links(path, label)]
        if any(self._in_home(file) for file in files):
            note = "left out: the files of a det_native master, its token among them, never travel"
            self._not_sent(text, label, note)
        for file in files:
            if self._in_home(file) or file in self.taken:
                continue
            maker = self.maker(file)
            if maker is not None:
                self._not_sent(text, label, f"made by {self._place(maker)}, which runs again")
                continue
            target = file.relative_to(self.root).as_posix()
            if is_environment_file(file.name):
                self.found.rows.append(environment_file_row(target, label))
                continue
            self.taken.add(file)
            self.found.files.append(SourceFile(file, target, f"named in {self._place(label)} as {text!r}", label))

    def _is_made(self, path: Path) -> bool:
        """Whether the program makes a file, or a folder with all that is in it."""
        return self.maker(path) is not None and (path.is_file() or all(map(self.maker, files_in(path))))

    def _place(self, label: str) -> str:
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


def files_in(folder: Path) -> list[Path]:
    """Return all files in a folder, but for caches and hidden ones; what goes away meanwhile is left out."""
    found: list[Path] = []
    for inside, folders, files in os.walk(folder):  # unlike Path.rglob(), it bears with folders that vanish
        folders[:] = [name for name in folders if not _is_hidden(Path(name))]
        found += [path for name in files if not _is_hidden(Path(name)) and (path := Path(inside, name)).is_file()]
    return sorted(found)


def links_in(folder: Path) -> list[Path]:
    """Return the links in a folder that lead to folders, but for hidden ones."""
    found: list[Path] = []
    for inside, folders, _ in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(Path(name))]
        found += [path for name in folders if (path := Path(inside, name)).is_symlink()]
    return sorted(found)


def _files_of_pattern(base: Path, pattern: str, limit: int) -> list[Path]:
    """Return the files, and those in folders, that match in `base`; not all if they are more than `limit`."""
    try:
        matching = (path for path in base.glob(pattern) if not _is_hidden(path.relative_to(base)))
        inside = (file for path in matching for file in ([path] if path.is_file() else files_in(path)))
        inside = (file for file in inside if file.suffix not in _CODE)
        return sorted({file.resolve() for file in islice(inside, limit + 1)})
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return []  # Not a path that this system can have.


def _is_hidden(relative: Path) -> bool:
    return any(part in _SKIPPED or (part.startswith(".") and part != "..") for part in relative.parts)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # between the two
        return 0
