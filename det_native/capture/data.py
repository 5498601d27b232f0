"""Data files that a program names by a string."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.files import environment_file_row
from det_native.capture.model import SourceFile
from det_native.capture.secrets import is_environment_file
from det_native.schema.home import Home
from det_native.schema.rest import CaptureRow

_SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints", ".git", "node_modules"})
_JOINING = frozenset({"os.path.join", "path.join", "join", "Path", "pathlib.Path", "PurePath"})
#: Calls that write to a path which they are given, first or after what they write.
_WRITERS = frozenset(
    {
        *("dump", "save", "save_model", "save_weights", "savefig", "savetxt", "savez", "savez_compressed"),
        *("to_csv", "to_excel", "to_feather", "to_hdf", "to_html", "to_json", "to_latex", "to_markdown"),
        *("to_parquet", "to_pickle", "to_stata", "to_xml", "write_html", "write_image"),
    }
)
_PATH_KEYWORDS = frozenset({"buf", "excel_writer", "f", "file", "filename", "filepath", "fname", "path", "path_or_buf"})


@dataclass
class DataFiles:
    """Files to send; rows about what is named but not sent."""

    files: list[SourceFile] = field(default_factory=list)
    rows: list[CaptureRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def path_literals(source: str) -> Iterator[str]:
    """Yield the strings of a piece of source that may be paths; parts that are joined count once, joined.

    Paths that the code only writes to, ``open("run.log", "w")``, are none of them.
    """
    tree = ast.parse(source)
    written = (path for node in ast.walk(tree) if isinstance(node, ast.Call) for path in _written(node))
    used = {id(part) for path in written for part in ast.walk(path)}
    for node in ast.walk(tree):
        joined = _joined(node) if isinstance(node, ast.Call | ast.BinOp) and id(node) not in used else None
        if joined is not None:
            used.update(id(part) for part in ast.walk(node))
            yield joined
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in used:
            yield node.value


def _joined(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = _joined(node.left), _joined(node.right)
        return f"{left}/{right}" if left is not None and right is not None else None
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _JOINING and node.args and not node.keywords:
        parts = [_joined(argument) for argument in node.args]
        return None if None in parts else "/".join(part for part in parts if part)
    return None


def _written(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the path expressions that a call writes to."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    candidates: list[ast.expr] = []
    if name == "open":
        own = receiver is not None and _joined(receiver) is not None
        named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        modes = [*call.args[0 if own else 1 :][:1], *named]
        if any(isinstance(mode, ast.Constant) and set("wax") & set(str(mode.value)) for mode in modes):
            named = [keyword.value for keyword in call.keywords if keyword.arg in _PATH_KEYWORDS]
            candidates = [receiver] if own and receiver is not None else [*call.args[:1], *named]
    elif name in {"write_text", "write_bytes"} and receiver is not None:
        candidates = [receiver]
    elif name in _WRITERS:
        named = [keyword.value for keyword in call.keywords if keyword.arg in _PATH_KEYWORDS]
        candidates = [*call.args[:2], *named]
    yield from (path for path in candidates if _joined(path) is not None)


def collect_data(
    sources: Sequence[tuple[str, str]],
    root: Path,
    working_directory: Path,
    context_dir: Path | None,
    titles: Mapping[str, str] | None = None,
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
    """
    collector = _Collector(root.resolve(), working_directory.resolve(), context_dir is not None, titles or {})
    for source, label in sources:
        for text in path_literals(source):
            collector.add(text, label)
    return collector.found


class _Collector:
    def __init__(self, root: Path, working_directory: Path, whole: bool, titles: Mapping[str, str]) -> None:
        self.titles = titles
        self.root, self.working_directory, self.whole = root, working_directory, whole
        self.found = DataFiles()
        self.seen: set[str] = set()
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
            else:
                note = "read from where the worker can see it"
                row = CaptureRow(what=text, how="path", size=_size(path), cell=label, status="not sent", note=note)
                self.found.rows.append(row)

    def _matches(self, text: str) -> Iterator[tuple[Path, bool]]:
        """Existing files and folders that the text names, and whether the worker finds them under that name."""
        try:
            expanded = Path(text).expanduser()
            if expanded.is_absolute():
                if expanded.exists():
                    yield expanded.resolve(), False
                return
            for base in dict.fromkeys([self.root, self.working_directory]):
                found = [base / text] if (base / text).exists() else []
                if not found and any(mark in text for mark in "*?") and text[:1] != "/":
                    found = [path for path in base.glob(text) if path.is_file()]
                if found:
                    yield from ((path.resolve(), base == self.root) for path in found)
                    return
        except (OSError, ValueError, RuntimeError, NotImplementedError):
            return  # Not a path that this system can have.

    def _inside(self, path: Path, text: str, label: str, relative: bool) -> None:
        if path.suffix in {".ipynb", ".py", ".pyc"}:
            return
        if not relative:
            target = path.relative_to(self.root).as_posix()
            self.found.warnings.append(
                f"{self.titles.get(label, label)} names {text!r}, which the worker has as {target!r}: write the path "
                f"relative to {self.root}, the working directory there."
            )
        if self.whole:
            return
        files = [path] if path.is_file() else files_in(path)
        if any(self._in_home(file) for file in files):
            note = "left out: the files of a det_native master, its token among them, never travel"
            self.found.rows.append(CaptureRow(what=text, how="path", size=0, cell=label, status="not sent", note=note))
        for file in files:
            if self._in_home(file):
                continue
            target = file.relative_to(self.root).as_posix()
            if is_environment_file(file.name):
                self.found.rows.append(environment_file_row(target, label))
                continue
            self.found.files.append(SourceFile(file, target, f"named in {self._place(label)} as {text!r}", label))

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
    """Return all files in a folder, but for caches and hidden ones."""
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part in _SKIPPED or part.startswith(".") for part in parts):
            found.append(path)
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
