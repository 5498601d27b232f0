"""The report of a bundle: what is sent, a row for each thing or for many of one kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from det_native.capture.files import ENVIRONMENT_FILE, DirectoryScan
from det_native.capture.hash_cache import FileHash
from det_native.capture.model import INCLUDED, BundleRow, Capture, SourceFile
from det_native.capture.secrets import is_key_file
from det_native.schema.manifests import FileEntry, Program, Sha256, ValueEntry
from det_native.schema.rest import CaptureRow

_LOOSE_FILES = 12
_KEYS = 8


@dataclass(frozen=True)
class Placed:
    """A file with its entry in the manifest, and what was seen of it when it was hashed."""

    source: SourceFile
    entry: FileEntry
    found: FileHash

    @property
    def content(self) -> Path | bytes:
        """What was read of it just now, or where it is read when it is sent."""
        return self.source.path if self.found.content is None else self.found.content


@dataclass(frozen=True)
class Summary:
    """What a row of the report says about a folder, or about a file at the top."""

    what: str
    how: str
    size: int
    hashes: frozenset[Sha256]


def rows_of_others(capture: Capture, rows: Sequence[CaptureRow], scan: DirectoryScan | None) -> Iterator[CaptureRow]:
    """Yield rows about what is not sent: of files left out for their name, those that the user did not ask for."""
    sent = {file.target for file in capture.files}
    reported: set[str] = set()
    for row in (*rows, *(scan.rows if scan else ())):
        if row.how == ENVIRONMENT_FILE:
            if row.what in sent or row.what in reported:
                continue
            reported.add(row.what)
        yield row


def key_warnings(capture: Capture, scan: DirectoryScan | None) -> Iterator[str]:
    asked = {file.target for file in capture.files if file.why == INCLUDED}
    named = [file.target for file in capture.files if is_key_file(file.target.rpartition("/")[2])]
    keys = dict.fromkeys(target for target in (*named, *(scan.keys if scan else ())) if target not in asked)
    if not keys:
        return
    shown = ", ".join(list(keys)[:_KEYS]) + (f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else "")
    yield (
        f"By their names these files look like keys or passwords, and they are sent: {shown}. Leave them out by "
        "'.detignore' in context_dir or put them elsewhere, and pass what the code needs by "
        "environment.environment_variables in the configuration; include= or a line with ! in '.detignore' says that "
        "they are meant to be sent."
    )


def rows_of(
    capture: Capture, summaries: Sequence[Summary], explicit: Sequence[Placed], values: Sequence[ValueEntry]
) -> Iterator[CaptureRow]:
    yield _program_row(capture.program)
    for value, value_entry in zip(capture.values, values, strict=True):
        yield BundleRow.about(
            [value_entry.sha256],
            what=value.name,
            how="value",
            size=value_entry.size,
            cell=value.cell,
            note=value.description,
        )
    yield from _explicit_rows(explicit)
    for one in summaries:
        yield BundleRow.about(one.hashes, what=one.what, how=one.how, size=one.size, note="context directory")
    for requirement in dict.fromkeys(capture.requirements):
        yield CaptureRow(what=requirement, how="requirement", size=0)


def rows_of_inputs(values: Mapping[Sha256, bytes]) -> Iterator[CaptureRow]:
    """Yield the row about values of the call's inputs that travel with the bundle."""
    if values:
        count = f"{len(values)} value{'' if len(values) == 1 else 's'}"
        note = "of the call's inputs: used where the worker makes another value"
        yield BundleRow.about(values, what="inputs", how=count, size=sum(map(len, values.values())), note=note)


def _explicit_rows(explicit: Sequence[Placed]) -> Iterator[CaptureRow]:
    """One for each file; where many have the same reason, one for what they have in common."""
    reasons: dict[tuple[str, str], list[Placed]] = {}
    for placed in explicit:
        reasons.setdefault((placed.source.cell, placed.source.why), []).append(placed)
    for (cell, why), files in reasons.items():
        entries = [placed.entry for placed in files]
        if len(entries) <= _LOOSE_FILES:
            for entry in entries:
                yield BundleRow.about([entry.sha256], what=entry.path, how="file", size=entry.size, cell=cell, note=why)
            continue
        folder = os.path.commonpath([os.path.dirname(entry.path) for entry in entries])
        hashes = [entry.sha256 for entry in entries]
        size = sum(entry.size for entry in entries)
        yield BundleRow.about(
            hashes, what=f"{folder or '.'}/", how=f"{len(entries)} files", size=size, cell=cell, note=why
        )


def _program_row(program: Program) -> CaptureRow:
    if program.kind != "cells":
        return CaptureRow(what=program.command_line, how=program.kind, size=0)
    count, runs = count_cells(program), len(program.cells)
    return CaptureRow(
        what="1 cell" if count == 1 else f"{count} cells",
        how="source",
        size=sum(len(cell.source.encode()) for cell in program.cells),
        cell=_numbers([cell.number for cell in program.cells if cell.number is not None]),
        note="" if runs == count else f"that ran {runs} times",
    )


def count_cells(program: Program) -> int:
    """Return how many cells a program has; one that ran several times is one."""
    return len({cell.cell_id or cell.source.strip() for cell in program.cells})


def _numbers(numbers: Sequence[int]) -> str:
    """Return ``[1], [3]-[6]``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    joined = ["-".join(f"[{end}]" for end in (run[0], run[-1])[: len(run)]) for run in runs]
    return ", ".join(joined)


def summaries_of(entries: Sequence[FileEntry]) -> Iterator[Summary]:
    """One for each folder at the top, and for each file beside them unless those are many."""
    folders: dict[str, list[FileEntry]] = {}
    for entry in entries:
        head, separator, _ = entry.path.partition("/")
        folders.setdefault(f"{head}/" if separator else "./", []).append(entry)
    if len(folders.get("./", ())) <= _LOOSE_FILES:
        for entry in folders.pop("./", ()):
            yield Summary(entry.path, "file", entry.size, frozenset([entry.sha256]))
    for name, inside in folders.items():
        how = f"{len(inside)} files" if len(inside) > 1 else "1 file"
        hashes = frozenset(entry.sha256 for entry in inside)
        yield Summary(name, how, sum(entry.size for entry in inside), hashes)
