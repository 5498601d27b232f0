"""What of a context directory is left out: what tools make, and what its ``.detignore`` says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from det_native.errors import CaptureError, Problem

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".detignore"

_IGNORED_FOLDERS = frozenset(
    {
        *(".git", ".hg", ".svn", ".bzr", "CVS"),
        *(".venv", ".tox", ".nox", ".direnv", "__pypackages__", ".eggs", "node_modules"),
        *("__pycache__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
        *(".virtual_documents", ".idea", ".vscode", "$RECYCLE.BIN", ".Trash", ".Spotlight-V100", ".fseventsd"),
    }
)
_IGNORED_FOLDER_ENDS = (".egg-info",)
_IGNORED_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_IGNORED_FILE_ENDS = (".pyc", ".pyo", "$py.class")
# A folder that holds one of these is a virtual environment, a conda environment, or a cache (bford.info/cachedir).
_MARKERS = frozenset({"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"})

_rules: dict[Path, Rules] = {}


def is_folder_of_tools(name: str) -> bool:
    """Whether a folder of this name is left out by default: version control, environments, caches."""
    return name in _IGNORED_FOLDERS or name.endswith(_IGNORED_FOLDER_ENDS)


def is_file_of_tools(name: str) -> bool:
    """Whether a file of this name is left out by default."""
    return name in _IGNORED_FILES or name.endswith(_IGNORED_FILE_ENDS)


def is_made_by_a_tool(names: set[str]) -> bool:
    """Whether what is in a folder says that it is an environment or a cache."""
    return not names.isdisjoint(_MARKERS)


def forget_rules() -> None:
    """Forget the rules of all directories."""
    _rules.clear()


@dataclass
class Rules:
    """What is left out, by default and by ``.detignore``. `decided` remembers what the patterns said of a path."""

    text: str
    spec: GitIgnoreSpec | None
    decided: dict[str, bool | None] = field(default_factory=dict)

    def ignores(self, path: str, by_default: bool) -> bool:
        """Say whether `path` (a folder's ends in ``/``) is left out."""
        if self.spec is None:
            return by_default
        decision = self.said_of(path)
        return by_default if decision is None else decision

    def said_of(self, path: str) -> bool | None:
        """Return what ``.detignore`` says of a path: leave it out, take it in, or nothing."""
        if self.spec is None:
            return None
        try:
            return self.decided[path]
        except KeyError:
            decision = self.decided[path] = self.spec.check_file(path).include
            return decision


def read_rules(root: Path) -> Rules:
    """Return the rules of a directory; as long as its ``.detignore`` says the same, the same object."""
    try:
        text = (root / IGNORE_FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise CaptureError(
            "The context directory cannot be scanned:",
            [Problem(str(root / IGNORE_FILE), f"cannot be read: {error.strerror}.")],
        ) from error
    rules = _rules.get(root)
    if rules is None or rules.text != text:
        rules = _rules[root] = Rules(text, _compile(root, text) if text.strip() else None)
    return rules


def _compile(root: Path, text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    problems: list[Problem] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            where = f"{root / IGNORE_FILE}, line {number}"
            problems.append(Problem(where, f"{line!r} is no gitignore pattern.", "Correct or remove the line."))
    if problems:
        raise CaptureError("The context directory cannot be scanned:", problems)
    return GitIgnoreSpec.from_lines(lines)
