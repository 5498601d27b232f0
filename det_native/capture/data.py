"""Data files of a program: what its cells were seen to read, and what its strings name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from det_native.capture.collector import Collector, DataFiles
from det_native.capture.missing_files import files_only_read, paths_elsewhere, program_texts, reads_elsewhere
from det_native.capture.needed_folders import NeededFolders
from det_native.capture.path_flow import Flow, Handed
from det_native.capture.path_texts import PathText, Role, only_written
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
    seen : SeenFiles, optional
        What cells were seen to read and make. Of their strings then only those count that come to a call, which may
        open a file out of sight, or later.
    values : ValuePaths, optional
        The live values, for what is named nowhere else.
    """
    seen, values = seen or SeenFiles(), values or ValuePaths({}, ())
    all_titles = {COMMAND_LINE: "The command line", **(titles or {})}
    collector = Collector(root.resolve(), working_directory.resolve(), context_dir is not None, all_titles, seen)
    flow = Flow((tree_of(source) for source, label in sources if label in seen.labels), values.is_pythons)
    texts = [
        (one, label, flow.handed(one.node) if label in seen.labels else Handed.ANYWHERE)
        for one, label in program_texts(sources)
    ]
    words = list(read_arguments(arguments))
    for folder in (folder for one, _, _ in texts if one.role is Role.ENTERED for folder in one.literals):
        collector.add_folder(folder)
    collector.add_seen(sources)
    for word in words:
        collector.add(word, COMMAND_LINE)
    results = only_written(one for one, _, _ in texts)
    for one, label, handed in texts:
        for text in one.literals if one.text not in results else ():
            was_sought = set("*?") & set(text) and any(pattern.endswith(text) for pattern in seen.patterns)
            if handed and not (label in seen.labels and was_sought):
                collector.add(text, label)
    of_values = [one for one in values.texts(flow.values) if one[0] not in results]
    collector.add_values(of_values)
    # Last: what a name as it stands, or a folder, takes in needs no pattern.
    for one, label, handed in texts if context_dir is None else ():
        for pattern in one.patterns if handed is Handed.ANYWHERE else ():
            collector.add_pattern(pattern, label)
    folders = NeededFolders(root.resolve(), collector.folders, context_dir is not None, seen)
    _add_folders(folders, [(one, label in seen.labels) for one, label, _ in texts], of_values, arguments)
    collector.found.folders, collector.found.made = folders.needed, folders.made
    _warn(collector, sources, words, seen)
    return collector.found


def _add_folders(
    folders: NeededFolders,
    texts: Sequence[tuple[PathText, bool]],
    of_values: Sequence[tuple[str, str]],
    arguments: Sequence[str],
) -> None:
    """Take note of the folders that a program needs; of its texts it is given which stand in cells that were seen."""
    folders.add_written()
    for one, was_seen in texts:
        if one.role is Role.MADE and not was_seen:
            folders.add_made(one.text)
    for one, _ in texts:
        folders.add(one.text, is_written=one.role is Role.WRITTEN)
    for text, _ in of_values:
        folders.add(text)
    for word in arguments:
        folders.add(word.partition("=")[2] if word.startswith("-") else word, is_written=True)


def _warn(collector: Collector, sources: Sequence[tuple[str, str]], words: Sequence[str], seen: SeenFiles) -> None:
    """Say what is not there, not sent, or not as it was."""
    collector.warn_of_gone()
    gone = {Path(name).name for name in seen.gone}

    def is_certain(label: str, line: int) -> bool:
        return line < seen.optional.get(label, math.inf)

    for text, label, line in files_only_read(sources):
        if is_certain(label, line) and Path(text).name not in gone:
            collector.look_for(text, label, line)
    for text, label, line in reads_elsewhere(sources):
        if is_certain(label, line):
            collector.note_read(text, label, line)
    named = {text: (label, line) for text, label, line in paths_elsewhere(sources) if is_certain(label, line)}
    absolute = {word: (COMMAND_LINE, 0) for word in words if word.startswith(("/", "~/"))}
    for text, (label, line) in (absolute | named).items():
        collector.note_outside(text, label, line)
    collector.name_elsewhere()


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
