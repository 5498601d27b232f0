"""Files that change between capture and sending: sent is what was read, or else what they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from det_native.capture.model import Bundle
from det_native.errors import CaptureError, Problem
from det_native.schema.manifests import FileEntry, Sha256

# As large as all files of a bundle together may be.
_LARGEST = 96 << 20
_HEADLINE = "Files changed while they were sent:"


def with_files_read(bundle: Bundle, hashes: Iterable[Sha256]) -> tuple[Bundle, dict[Sha256, Sha256]]:
    """Return a bundle with the contents of those files at hand that are no longer what was hashed.

    A file that only grew is sent as it was when it was hashed. Of another one nobody has that content any more: it is
    read now, once, and its entry in the manifest is renewed.

    Parameters
    ----------
    hashes : iterable of SHA-256
        What could not be sent.

    Returns
    -------
    Bundle
    dict of SHA-256 to SHA-256
        New hashes of files, each with the one that it had before.

    Raises
    ------
    CaptureError
        If a file is gone, cannot be read, or has become larger than all files together may be; lists all of them.
    """
    concerned = {sha256 for sha256 in hashes if isinstance(bundle.contents.get(sha256), Path)}
    contents = dict(bundle.contents)
    renewed: dict[str, FileEntry] = {}
    known: dict[Sha256, Sha256] = {}
    problems: list[Problem] = []
    for entry in bundle.manifest.files:
        if entry.sha256 not in concerned:
            continue
        path = bundle.places[entry.path]
        try:
            content = _read(path)
        except OSError as error:
            problems.append(Problem(str(path), f"cannot be read: {error.strerror}.", "Run the call again."))
            continue
        if content is None:
            what = "has become larger than what can be sent."
            problems.append(Problem(str(path), what, "Leave it out by '.detignore', or write it elsewhere."))
            continue
        then = content[: entry.size]
        if _hash(then) == entry.sha256:
            contents[entry.sha256] = then
            continue
        now = _hash(content)
        contents[now] = content
        known[now] = entry.sha256
        renewed[entry.path] = entry.model_copy(update={"sha256": now, "size": len(content)})
    if problems:
        raise CaptureError(_HEADLINE, problems)
    return _renewed(bundle, contents, renewed), known


def _renewed(bundle: Bundle, contents: Mapping[Sha256, Path | bytes], entries: Mapping[str, FileEntry]) -> Bundle:
    files = tuple(entries.get(entry.path, entry) for entry in bundle.manifest.files)
    manifest = bundle.manifest.model_copy(update={"files": files}) if entries else bundle.manifest
    needed = manifest.hashes()
    kept = {sha256: content for sha256, content in contents.items() if sha256 in needed}
    states = {sha256: state for sha256, state in bundle.states.items() if not isinstance(kept.get(sha256), bytes)}
    return replace(bundle, manifest=manifest, contents=kept, states=states)


def _read(path: Path) -> bytes | None:
    """Return the content of a file, None if it is too large."""
    with open(path, "rb") as stream:
        content = stream.read(_LARGEST + 1)
    return content if len(content) <= _LARGEST else None


def _hash(content: bytes) -> Sha256:
    return hashlib.sha256(content).hexdigest()
