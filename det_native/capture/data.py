"""Data files of a program: what its cells were seen to read, and what its strings name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from det_native.capture.collector import FEW, Collector, DataFiles
from det_native.capture.facts import human_size
from det_native.capture.folders import files_in, is_hidden, size_of_file
from det_native.capture.missing_files import (
    files_only_read,
    is_of_the_system,
    paths_elsewhere,
    program_texts,
    reads_elsewhere,
)
from det_native.capture.modules import is_installed
from det_native.capture.observation.paths_seen import real_path
from det_native.capture.path_flow import Flow, Handed
from det_native.capture.path_texts import Role
from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.capture.seen_files import SeenFiles
from det_native.capture.syntax import tree_of
from det_native.capture.value_paths import ValuePaths

#: Label of what the command line names.
COMMAND_LINE = "command line"
_FOR_RESULTS = re.compile(r"(?i)(^|[-_])(out|output|outputs|save|log|logs|results?|runs?|checkpoints?|ckpt)([-_]|$)")


def collect_data(
    sources: Sequence[tuple[str, str]],
    root: Path,
    working_directory: Path,
    context_dir: Path | None,
    titles: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    maker: Callable[[Path], str | None] = lambda path: None,
    seen: SeenFiles | None = None,
    values: ValuePaths | None = None,
) -> DataFiles:
    """Return the files and folders that a program was seen to read, or names by strings.

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
    seen : SeenFiles, optional
        What cells were seen to read. Of their strings then only those count that come to a call, which may open a file
        out of sight, or later.
    values : ValuePaths, optional
        The live values, for what is named nowhere else.
    """
    all_titles = {COMMAND_LINE: "The command line", **(titles or {})}
    collector = _Collector(root.resolve(), working_directory.resolve(), context_dir is not None, all_titles, maker)
    watched = seen.labels if seen is not None else frozenset()
    flow = Flow(
        (tree_of(source) for source, label in sources if label in watched),
        values.is_pythons if values is not None else lambda name: False,
    )
    texts = list(program_texts(sources))
    handed = [flow.handed(one.node) if label in watched else Handed.ANYWHERE for one, label in texts]
    for one, _ in texts:
        for folder in one.literals if one.role is Role.ENTERED else ():
            collector.add_folder(folder)
    if seen is not None:
        collector.add_seen(seen, [source for source, _ in sources])
    for word in read_arguments(arguments):
        collector.add(word, COMMAND_LINE)
    for (one, label), calls in zip(texts, handed, strict=True):
        for text in one.literals if calls else ():
            if label not in watched or not collector.was_sought(text):
                collector.add(text, label)
    if values is not None:
        collector.add_values(values.texts(flow.values_of(values.namespace)))
    # Last: what a name as it stands, or a folder, takes in needs no pattern.
    for (one, label), calls in zip(texts, handed, strict=True) if context_dir is None else ():
        for pattern in one.patterns if calls is Handed.ANYWHERE else ():
            collector.add_pattern(pattern, label)
    _warn(collector, sources, arguments, seen)
    return collector.found


def _warn(
    collector: _Collector, sources: Sequence[tuple[str, str]], arguments: Sequence[str], seen: SeenFiles | None
) -> None:
    """Say what is not there, not sent, or not as it was."""
    gone = collector.warn_of_seen(seen) if seen is not None else set()
    for text, label, line in files_only_read(sources):
        if os.path.basename(text) not in gone:
            collector.look_for(text, label, line)
    for text, label, line in reads_elsewhere(sources):
        collector.note_read(text, label, line)
    words = [(word, COMMAND_LINE, 0) for word in read_arguments(arguments) if word.startswith(("/", "~/"))]
    for text, label, line in [*paths_elsewhere(sources), *words]:
        collector.note_outside(text, label, line)
    if seen is not None:
        collector.name_elsewhere(seen.files)


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


class _Collector(Collector):
    """Takes in, too, what was seen, and what values name."""

    def add_seen(self, seen: SeenFiles, sources: Sequence[str]) -> None:
        """Take in what cells were seen to read."""
        for folder in seen.moves:
            self.add_folder(folder)
        for name, label in seen.files.items():
            path = self._in_root(name)
            if path is None or os.path.isdir(name):
                continue
            target = path.relative_to(self.root).as_posix()
            if is_key_file(path.name) and not any(path.name in source for source in sources):
                self.leave_key(target, label, "is read")
            elif self.root not in path.resolve().parents:
                self.elsewhere.add(path)
                self.not_sent(target, label, self.beyond(target, path.resolve()), size=size_of_file(path))
            else:
                self.take(path, target, label, why=f"read by {self.place(label)}")
        for name, label in seen.folders.items():
            path = self._in_root(name)
            if path is not None and path.is_dir() and self.root in path.resolve().parents:
                target = path.relative_to(self.root).as_posix()
                self.take(path, target, label, why=f"in {target}, which {self.place(label)} lists")
        for name, label in seen.patterns.items():
            self.sought.append(name)
            if self.root in Path(name).parents:
                self.add_pattern(os.path.relpath(name, self.root), label)

    def was_sought(self, text: str) -> bool:
        """Whether a text is the end of a pattern that was seen."""
        return bool(set("*?") & set(text)) and any(pattern.endswith(text) for pattern in self.sought)

    def warn_of_seen(self, seen: SeenFiles) -> set[str]:
        """Warn of files that are not what a cell has read; return the names of those that are gone."""
        for name, label in seen.gone.items():
            path = self._in_root(name)
            if path is not None:
                self.found.warnings.append(
                    f"{self.title(label)} has read {path.relative_to(self.root).as_posix()!r}, which is not there any "
                    "more: the worker will not find it either. Put it back, or let the code make it."
                )
        for name, label in seen.changed.items():
            if Path(name) in self.taken:
                self.found.warnings.append(
                    f"{self.title(label)} changes {Path(name).relative_to(self.root).as_posix()}, which was there "
                    "before it: the worker begins with the file as it is now, and changes it again. Write what changes "
                    "to a file of another name."
                )
        return {os.path.basename(name) for name in seen.gone}

    def name_elsewhere(self, files: Mapping[str, str]) -> None:
        """Name files that cells have read outside of what is sent, and that no text names."""
        folders: dict[Path, list[tuple[Path, str]]] = {}
        for name, label in files.items():
            path = Path(name)
            is_named = not self.elsewhere.isdisjoint((path, *path.parents))
            if self._in_root(name) is not None or self.root in path.parents or is_named or is_of_the_system(path):
                continue
            if path.is_file() and not self.is_made(path):
                folders.setdefault(path.parent, []).append((path, label))
        for folder, inside in folders.items():
            path, label = inside[0] if len(inside) == 1 else (folder, inside[0][1])
            size = sum(size_of_file(file) for file, _ in inside)
            self.not_sent(str(path), label, self.beyond(str(path), path), size=size)

    def add_values(self, texts: Iterable[tuple[str, str]]) -> None:
        """Take in what texts in values name, if it is not too much."""
        named: dict[str, list[Path]] = {}
        for text, name in texts:
            if text in self.seen or "://" in text or not text.strip(" ./\\"):
                continue
            self.seen.add(text)
            for path, relative in self.matches(text):
                if (relative or os.path.isabs(text)) and self._in_root(str(path)) is not None:
                    named.setdefault(name, []).extend(
                        [path] if path.is_file() else files_in(path) if "/" in text else []
                    )
        most, size = FEW[True]
        for name, paths in named.items():
            new = [path for path in dict.fromkeys(paths) if path not in self.taken and self.maker(path) is None]
            if len(new) > most or sum(map(size_of_file, new)) > size:
                note = f"names over {most:,} files or {human_size(size)}: name in include= what is needed"
                self.not_sent(name, "", note, how="paths in a value")
                continue
            for path in new:
                if not is_key_file(path.name):
                    self.take(path, path.name, "", why=f"named by the value of `{name}`")

    def _in_root(self, name: str) -> Path | None:
        """Return a path if it lies in what is sent, and is none of Python, of a package, or hidden, as caches are."""
        path = Path(name)
        if self.root not in path.parents:
            path = Path(real_path(name))
        if self.root not in path.parents or is_installed(path, self.root):
            return None
        return None if is_hidden(path.relative_to(self.root)) and not is_environment_file(path.name) else path
