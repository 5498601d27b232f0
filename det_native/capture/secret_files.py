"""Configuration files with secrets, which are not sent: the master gets what they say in another way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from det_native.capture.files import MAX_FILES, DirectoryScan, ScannedFile
from det_native.capture.hash_cache import FileStat
from det_native.capture.ignored import IGNORE_FILE, read_rules
from det_native.capture.model import INCLUDED, SourceFile
from det_native.capture.secrets import name_is_secret
from det_native.schema.hidden import HIDDEN, PATHS
from det_native.schema.notify import REFERENCE
from det_native.schema.reports import CaptureRow
from det_native.schema.yaml_text import parse_yaml

_ENDS = (".yaml", ".yml", ".json")
_LARGEST = 1 << 20
_SECTIONS = tuple({path[0].encode() for path in PATHS} | {b"notify"})
_OF_NOTIFY = ("webhook", "secret")
# Options that give access to a storage, beside those whose names say so: `key` is s3fs's. Other options, such as a
# region, are no reason to leave a file out.
_OPENING = frozenset({"key", "pass", "sas", "pwd"})
_SHORTEST = 4  # of a text that is looked for in other files


class SecretFiles(NamedTuple):
    """The files that are sent, and a row of the report for each file that is left out."""

    scan: DirectoryScan | None
    files: list[SourceFile]
    rows: list[CaptureRow]


def without_secret_files(scan: DirectoryScan | None, files: Iterable[SourceFile]) -> SecretFiles:
    """Leave out configuration files with secrets, and others in which the same secrets stand.

    What the user has asked for by ``include=`` or a line with ``!`` in ``.detignore`` stays.

    Parameters
    ----------
    scan : DirectoryScan or None
        Files of the context directory.
    files : iterable of SourceFile
        Files that are sent by name.
    """
    files = list(files)
    rules = read_rules(scan.root) if scan is not None else None
    looked_at: list[SourceFile] = [
        file
        for file in (scan.files if scan is not None else ())
        if _may_hold(file) and (rules is None or rules.said_of(file.target) is not False)
    ]
    looked_at += [file for file in files if file.why != INCLUDED and _may_hold(file)]
    secrets = {file.path: _secrets_at(file.path, _stat_of(file)) for file in looked_at}
    texts = {text.encode() for found in secrets.values() if found for text in found if len(text) >= _SHORTEST}
    notes = {}
    for file in looked_at:
        if secrets[file.path] is not None:
            what = "it is a configuration with secrets, which the master gets by itself"
        elif texts and any(text in content for content in [_content(file.path)] for text in texts):
            what = "it has a secret of a configuration beside it"
        else:
            continue
        notes[file.target] = (
            f"has secrets: not sent, since {what}; include=[{file.target!r}] or '!{file.target}' in {IGNORE_FILE} "
            "sends it on purpose"
        )
    if not notes:
        return SecretFiles(scan, files, [])
    rows = [CaptureRow(what=target, how="file", size=0, status="not sent", note=notes[target]) for target in notes]
    left = {(file.path, file.target) for file in looked_at if file.target in notes}
    kept = [file for file in files if (file.path, file.target) not in left or file.why == INCLUDED]
    if scan is not None:
        mine = tuple(file for file in scan.files if (file.path, file.target) not in left)
        keys = tuple(target for target in scan.keys if target not in notes)
        scan = DirectoryScan(scan.root, mine, scan.rows, keys)
    return SecretFiles(scan, kept, rows)


def _may_hold(file: SourceFile) -> bool:
    return file.path.suffix.lower() in _ENDS


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError:  # told where it is to be sent
        return b""
    return content if len(content) <= _LARGEST else b""


def _stat_of(file: SourceFile) -> FileStat | None:
    if isinstance(file, ScannedFile):
        return file.stat
    try:
        found = file.path.stat()
    except OSError:
        return None
    return FileStat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


@lru_cache(maxsize=MAX_FILES)
def _secrets_at(path: Path, stat: FileStat | None) -> tuple[str, ...] | None:
    """Return what :func:`_secrets_of` does of a file, which is read again only once it has changed."""
    return _secrets_of(_content(path))


def _secrets_of(content: bytes) -> tuple[str, ...] | None:
    """Return the texts of the secrets of a configuration that may stand elsewhere; None if it has no secrets."""
    import yaml

    if not any(section in content for section in _SECTIONS):
        return None
    try:
        config = parse_yaml(content.decode("utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    if not isinstance(config, Mapping):
        return None
    values = list(_secret_values(config))
    return tuple(text for name, value in values for text in _texts(name, value)) if values else None


def _secret_values(config: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for *sections, name in PATHS:
        owner: Any = config
        for section in sections:
            owner = owner.get(section, {}) if isinstance(owner, Mapping) else {}
        value = owner.get(name) if isinstance(owner, Mapping) else None
        if _is_given(value):
            yield name, value
    entries = config.get("notify")
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, Mapping):
            yield from ((name, entry[name]) for name in _OF_NOTIFY if _is_given(entry.get(name)))


def _is_given(value: Any) -> bool:
    if isinstance(value, str):
        return not (value == HIDDEN or value.startswith("<secret ") or REFERENCE.fullmatch(value))
    return bool(value)


def _texts(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield str(value)
        return
    for key, inner in value.items():
        if isinstance(inner, Mapping) or str(key).lower() in _OPENING or name_is_secret(str(key)):
            yield from _texts(str(key), inner)
