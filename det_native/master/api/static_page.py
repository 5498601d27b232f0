"""The files of the page that the master serves: the same for everybody, with nothing of the user's in them."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from det_native.master.api.errors import refusal

FOLDER = Path(__file__).resolve().parents[2] / "display" / "static" / "page"
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/index.html": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
PATHS = frozenset(_FILES)
# Styles are set by scripts only, never by attributes of markup; pictures are loaded with the session's key first.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked for each time, and answered in a few bytes while the file is the same.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class _File:
    content: bytes
    packed: bytes
    tag: str
    kind: str


@cache
def _read(path: str) -> _File:
    """Read a file once: an upgrade of the package leaves a master that runs with a page of its own version."""
    name, kind = _FILES[path]
    content = (FOLDER / name).read_bytes()
    packed = gzip.compress(content, mtime=0)
    return _File(content, packed, f'"{hashlib.sha256(content).hexdigest()[:32]}"', kind)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/index.html", methods=["GET", "HEAD"])
@router.api_route("/page.js", methods=["GET", "HEAD"])
@router.api_route("/page.css", methods=["GET", "HEAD"])
def get_page(request: Request) -> Response:
    """Return a file of the page. Public."""
    try:
        file = _read(request.url.path)
    except FileNotFoundError:
        return refusal(404, "The page was not built: run `make setup` in the source tree of det_native.")
    is_packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {**HEADERS, "ETag": file.tag if not is_packed else f'{file.tag[:-1]}-gzip"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if is_packed else file.content, headers=headers, media_type=file.kind)
