"""The files of a context directory that travel: all but what is ignored, links followed inside only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from det_native.capture.hash_cache import FileStat
from det_native.capture.ignored import (
    IGNORE_FILE,
    Rules,
    forget_rules,
    is_file_of_tools,
    is_folder_of_tools,
    is_made_by_a_tool,
    read_rules,
)
from det_native.capture.model import Maker, SourceFile
from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.errors import ArgumentError, BundleTooLargeError, Problem
from det_native.schema.home import FILE_HASHES, HOME_MARKERS, Home
from det_native.schema.reports import CaptureRow
from det_native.schema.sizes import shown_size

BUNDLE_LIMIT = 100_663_296
MAX_FILES = 100_000
#: How the report calls a file of variables that is left out.
ENVIRONMENT_FILE = "environment file"

# Never sent, whatever .detignore says: SQLite has more files beside its own.
_OWN_FILES = tuple(FILE_HASHES.name + end for end in ("", "-wal", "-shm", "-journal"))
_OWN_NOTE = "left out: the files of det_native itself, the token of a master among them, never travel"
_NOTHING = FileStat(0, 0, 0, 0, 0)
_LARGEST = 10
_NAMED = 8

_scans: dict[Path, tuple[DirectoryScan, Rules]] = {}


@dataclass(frozen=True)
class ScannedFile(SourceFile):
    """A file as the scan found it."""

    stat: FileStat = _NOTHING


@dataclass(frozen=True)
class DirectoryScan:
    """What was found in a directory: the files to send, by target, and rows about what is not sent.

    As long as nothing in the directory changes, scanning it gives the same object.
    """

    root: Path
    files: tuple[ScannedFile, ...]
    rows: tuple[CaptureRow, ...]
    #: Targets of files that look like keys, unless ``.detignore`` takes them in by name.
    keys: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Raw bytes of all files."""
        return sum(file.stat.size for file in self.files)

    def without_made(self, made: Maker | None) -> DirectoryScan:
        """Return the same without the files that the program makes where it runs."""
        again = {file.target for file in self.files if made(file.path) is not None} if made is not None else set()
        if not again:
            return self
        size = sum(file.stat.size for file in self.files if file.target in again)
        what = f"{len(again)} files" if len(again) > 1 else next(iter(again))
        note = "made by cells that run again"
        row = CaptureRow(what=what, how="file", size=size, status="not sent", note=note)
        kept = tuple(file for file in self.files if file.target not in again)
        keys = tuple(target for target in self.keys if target not in again)
        return DirectoryScan(self.root, kept, (*self.rows, row), keys)


def scan_tree(root: Path) -> DirectoryScan:
    """Return the files under a context directory that travel with a call, by target, and what is not sent.

    Version control, virtual environments, caches, ``.env`` files and the like are left out, and what ``.detignore`` in
    `root` says (gitignore syntax; a line with ``!`` there takes back what is left out by default). A link to inside of
    `root` is followed, so that what it leads to is sent under the link's name.

    Raises
    ------
    ArgumentError
        `root` is no directory.
    CaptureError
        A line of ``.detignore`` is not valid.
    """
    root = Path(os.path.abspath(root.expanduser()))
    if not root.is_dir():
        kind = "is a file" if root.exists() else "does not exist"
        raise ArgumentError(f"context_dir: {str(root)!r} {kind}; give the directory that holds your code.")
    rules = read_rules(root)
    previous, rules_then = _scans.get(root, (None, None))
    if rules is not rules_then:
        previous = None
    walk = _Walk(root, rules, previous)
    walk.run()
    scan = walk.result(previous)
    _scans[root] = (scan, rules)
    return scan


def forget_scans() -> None:
    """Forget what earlier scans found."""
    _scans.clear()
    forget_rules()


def check_size(sizes: Iterable[tuple[str, int]], limit: int, root: Path | None) -> None:
    """Refuse files (name, raw bytes) that exceed `limit` together."""
    sizes = list(sizes)
    total = sum(size for _, size in sizes)
    if total <= limit:
        return
    where = f" under {str(root)!r}" if root else ""
    hint = f" Leave out what the code does not need by {IGNORE_FILE!r} there (gitignore syntax)." if root else ""
    raise BundleTooLargeError(
        f"The {len(sizes)} files to send{where} have {shown_size(total)}, {shown_size(total - limit)} over the limit of"
        f" {shown_size(limit)}.{hint}"
        f" Bring large data to the workers by `det data put PATH`, after which the same code reads them there, or"
        f" name a path or URL that the workers see. The largest:",
        _largest(sizes),
    )


def _largest(sizes: Iterable[tuple[str, int]]) -> list[Problem]:
    largest = sorted(sizes, key=lambda one: (-one[1], one[0]))[:_LARGEST]
    return [Problem(name, shown_size(size)) for name, size in largest]


def environment_file_row(target: str, cell: str = "") -> CaptureRow:
    """Say that a file of variables is left out, and how the code gets them."""
    note = (
        "left out: such files hold secrets. Pass the variables by environment.environment_variables in the "
        f"configuration, or send the file on purpose: include=[{target!r}]"
    )
    return CaptureRow(what=_shown(target), how=ENVIRONMENT_FILE, size=0, cell=cell, status="not sent", note=note)


# Prefix of the targets in a folder, its path, and the real paths of the folders above it and of itself.
_Folder = tuple[str, str, tuple[str, ...]]


# Walking ------------------------------------------------------------------------------------------------------------


class _Walk:
    """One pass over a directory. What is unchanged since the previous pass is taken over from it."""

    def __init__(self, root: Path, rules: Rules, previous: DirectoryScan | None) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)
        self._home = os.path.realpath(Home.default().path)
        self._rules = rules
        self._before = {file.target: file for file in previous.files} if previous else {}
        self._files: list[ScannedFile] = []
        self._changed = False
        self._folders = 0
        self._left_out: list[str] = []
        self._environment_files: list[str] = []
        self._not_sent: list[tuple[str, str]] = []

    def run(self) -> None:
        """Go through all folders; the order does not matter, the result is sorted."""
        pending: list[_Folder] = [("", str(self._root), (self._real_root,))]
        while pending:
            prefix, folder, above = pending.pop()
            pending += self._scan_folder(prefix, folder, above)
            self._folders += 1
            if max(len(self._files), self._folders) > MAX_FILES:
                raise BundleTooLargeError(
                    f"There are more than {MAX_FILES} files or folders under {str(self._root)!r}. Leave out what the"
                    f" code does not need by {IGNORE_FILE!r} there (gitignore syntax). The largest so far:",
                    _largest((file.target, file.stat.size) for file in self._files),
                )

    def result(self, previous: DirectoryScan | None) -> DirectoryScan:
        """Return what was found: the previous scan itself if it still holds."""
        rows = self._rows()
        if previous and not self._changed and len(self._files) == len(previous.files) and rows == previous.rows:
            return previous
        files = tuple(sorted(self._files, key=lambda file: file.target))
        return DirectoryScan(self._root, files, rows, tuple(self._keys(files)))

    def _keys(self, files: Iterable[ScannedFile]) -> Iterator[str]:
        for file in files:
            if is_key_file(file.target.rpartition("/")[2]) and self._rules.said_of(file.target) is None:
                yield file.target

    def _scan_folder(self, prefix: str, folder: str, above: tuple[str, ...]) -> list[_Folder]:
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError as error:
            self._not_sent.append((prefix, f"cannot be read: {error.strerror}"))
            return []
        if prefix and self._is_environment(prefix, entries):
            self._left_out.append(prefix)
            return []
        if self._is_home(folder, above[-1], {entry.name for entry in entries}):
            self._not_sent.append((prefix or "./", _OWN_NOTE))
            if prefix:
                return []
            entries = [entry for entry in entries if not Home.owns(entry.name)]  # a project that is one too
        inner: list[_Folder] = []
        for entry in entries:
            target = prefix + entry.name
            before = self._before.get(target)
            if before is not None and entry.is_file(follow_symlinks=False):
                self._add(entry, target, before)
            elif entry.is_symlink():
                followed = self._follow(entry, target, above)
                if followed:
                    inner.append(followed)
            elif entry.is_dir(follow_symlinks=False):
                if not self._ignores_folder(target, entry.name):
                    inner.append((f"{target}/", entry.path, (*above, f"{above[-1]}/{entry.name}")))
            elif not self._ignores_file(target, entry.name):
                self._add(entry, target, before)
        return inner

    def _is_environment(self, prefix: str, entries: list[os.DirEntry[str]]) -> bool:
        return self._rules.said_of(prefix) is not False and is_made_by_a_tool({entry.name for entry in entries})

    def _is_home(self, folder: str, real: str, names: set[str]) -> bool:
        """As :meth:`Home.is_at`, without a look at the disk for most folders."""
        if real == self._home:
            return True
        likely = "cache" in names or names.issuperset(HOME_MARKERS)
        return likely and Home.is_at(Path(folder))

    def _ignores_folder(self, target: str, name: str) -> bool:
        ignored = self._rules.ignores(f"{target}/", is_folder_of_tools(name))
        if ignored:
            self._left_out.append(f"{target}/")
        return ignored

    def _ignores_file(self, target: str, name: str) -> bool:
        if target == IGNORE_FILE or name in _OWN_FILES:
            return True
        if is_environment_file(name) and self._rules.said_of(target) is None:
            self._environment_files.append(target)
            return True
        ignored = self._rules.ignores(target, is_file_of_tools(name))
        if ignored:
            self._left_out.append(target)
        return ignored

    def _follow(self, entry: os.DirEntry[str], target: str, above: tuple[str, ...]) -> _Folder | None:
        """Take in what a link leads to, if that lies inside; return the folder to go into, if it is one."""
        try:
            is_folder = entry.is_dir()
        except OSError:
            is_folder = False
        if self._ignores_folder(target, entry.name) if is_folder else self._ignores_file(target, entry.name):
            return None
        try:
            real = os.path.realpath(entry.path, strict=True)
        except OSError as error:
            self._not_sent.append((target, f"a link that cannot be followed: {error.strerror}"))
            return None
        if real != self._real_root and not real.startswith(self._real_root.rstrip("/") + "/"):
            self._not_sent.append((target, f"a link to outside of the context directory: {real}"))
        elif is_folder and real in above:
            self._not_sent.append((target, "a link to a folder that it lies in"))
        elif is_folder:
            return f"{target}/", entry.path, (*above, real)
        else:
            self._add(entry, target, self._before.get(target))
        return None

    def _add(self, entry: os.DirEntry[str], target: str, before: ScannedFile | None) -> None:
        try:
            found = entry.stat()
        except OSError as error:
            self._not_sent.append((target, f"cannot be read: {error.strerror}"))
            return
        now = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
        if before is not None and before.stat == now:
            self._files.append(before)
            return
        fault = _fault(entry.path, target, found)
        if fault:
            self._not_sent.append((target, fault))
            return
        self._changed = True
        self._files.append(ScannedFile(Path(entry.path), target, "context directory", "", FileStat(*now)))

    def _rows(self) -> tuple[CaptureRow, ...]:
        rows = list(self._rows_not_sent())
        rows += map(environment_file_row, sorted(self._environment_files))
        if self._left_out:
            names = sorted(self._left_out)
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            what = _shown(", ".join(names[:_NAMED]) + more)
            note = f"left out by default or by {IGNORE_FILE}"
            rows.append(CaptureRow(what=what, how="ignored", size=0, status="not sent", note=note))
        return tuple(rows)

    def _rows_not_sent(self) -> Iterator[CaptureRow]:
        """One for each file; where many in a folder have the same reason, one for all of them."""
        reasons: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for what, note in sorted(self._not_sent):
            reasons.setdefault((what.rpartition("/")[0], note.partition(":")[0]), []).append((what, note))
        for (folder, reason), found in reasons.items():
            if len(found) > _NAMED:
                note = f"{reason}, such as {found[0][0]}"
                how = f"{len(found)} files"
                yield CaptureRow(
                    what=_shown(f"{folder or '.'}/"), how=how, size=0, status="not sent", note=_shown(note)
                )
                continue
            for what, note in found:
                how = "folder" if what.endswith("/") else "file"
                yield CaptureRow(what=_shown(what), how=how, size=0, status="not sent", note=note)


def _fault(path: str, target: str, found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "no plain file (a pipe, socket or device)"
    if "\\" in target or not _is_text(target):
        return "a name that cannot be used on another machine"
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        return "cannot be read: Permission denied"
    return None


def _is_text(target: str) -> bool:
    try:
        target.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    """Return a file's name in a form that a report can carry: undecodable bytes become replacement characters."""
    return name.encode(errors="surrogateescape").decode(errors="replace")
