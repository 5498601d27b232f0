"""What a trial gives besides metrics: a line of each kind, and its last pictures for a notebook without a kernel."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from det_native.client.short_forms import shortened
from det_native.client.source import Source
from det_native.errors import DetError
from det_native.schema import rest
from det_native.schema.outputs import MIME_TYPES, MediaKind
from det_native.schema.sizes import shown_size

MOST_NAMED = 8
#: Of a saved notebook: bytes of one picture, and of all.
PICTURE_BYTES = 500_000
PICTURES_BYTES = 2_000_000
MOST_PICTURES = 24

_MUTED = "opacity:.65;font-size:12px"
_PICTURE = "display:inline-block;vertical-align:top;margin:4px 12px 4px 0;max-width:320px"


def output_facts(source: Source, trial: rest.Trial | None, *, several: bool = False) -> dict[str, str]:
    """Return what is said of the media and the files of a trial, as label and value; nothing where it has none."""
    if trial is None:
        return {}
    whose = f" (trial {trial.shown_number})" if several else ""
    found = {"logged": media_text(source.media(trial.id)), "files": files_text(source.artifacts(trial.id))}
    return {label: text + whose for label, text in found.items() if text}


def media_text(media: Sequence[rest.Medium]) -> str:
    """Return ``samples (12 images), confusion (table)``."""
    counts: dict[tuple[str, MediaKind], int] = {}
    for medium in media:
        key = medium.name, medium.kind
        counts[key] = counts.get(key, 0) + 1
    words = [
        f"{shortened(name)} ({kind.value if count == 1 else f'{count} {kind.value}s'})"
        for (name, kind), count in counts.items()
    ]
    return _listed(words)


def files_text(files: Sequence[rest.Artifact]) -> str:
    """Return ``best.keras (1.2 MB), log.csv (310 B)``."""
    return _listed([f"{shortened(file.path)} ({shown_size(file.size)})" for file in files])


def pictures_html(source: Source, media: Sequence[rest.Medium]) -> str:
    """Return the last pictures of each name, embedded; those that would make a notebook large are only named."""
    parts, room = [], PICTURES_BYTES
    for medium in _last_pictures(media):
        caption = " ".join(filter(None, [f"{medium.name}, batch {medium.batch:,}", medium.caption]))
        if medium.size > min(room, PICTURE_BYTES):
            parts.append(_note(f"{caption}: {shown_size(medium.size)}, too large to be saved in the notebook"))
            continue
        try:
            content = source.medium_content(medium)
        except DetError:  # it is not there any more, say
            continue
        room -= medium.size
        address = f"data:{MIME_TYPES[medium.format]};base64,{b64encode(content).decode('ascii')}"
        image = f'<img alt="{escape(caption)}" style="max-width:100%;min-width:96px" src="{address}"/>'
        parts.append(f'<div style="{_PICTURE}">{image}{_note(caption)}</div>')
    return f"<div>{''.join(parts)}</div>" if parts else ""


def _last_pictures(media: Sequence[rest.Medium]) -> list[rest.Medium]:
    of_name: dict[str, list[rest.Medium]] = {}
    for medium in media:
        if medium.kind is MediaKind.IMAGE and MIME_TYPES.get(medium.format, "").startswith("image/"):
            of_name.setdefault(medium.name, []).append(medium)
    found = []
    for same in of_name.values():
        last = max(medium.batch for medium in same)
        found += [medium for medium in same if medium.batch == last]
    return found[:MOST_PICTURES]


def _note(text: str) -> str:
    return f'<div style="{_MUTED}">{escape(text)}</div>'


def _listed(words: Sequence[str]) -> str:
    more = len(words) - MOST_NAMED
    return ", ".join([*words[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
