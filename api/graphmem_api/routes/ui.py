"""The explorer page: static files without secrets, served without a key."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fastapi import APIRouter
from fastapi.responses import FileResponse, RedirectResponse, Response

from graphmem.runtime.errors import NotFound

router = APIRouter(include_in_schema=False)

ASSETS_FOLDER = Path(__file__).parent.parent / "ui"
PAGE = "index.html"
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

VENDORED_HEADERS = {"Content-Encoding": "gzip", "Cache-Control": "public, max-age=31536000, immutable"}
"""Headers of vendored files, which are stored compressed under a name that includes their version."""


@router.get("/")
async def redirect_root() -> Response:
    """Redirect to the explorer."""
    return RedirectResponse("ui", 307)


@router.get("/ui")
async def page() -> Response:
    """Serve the page, which asks for a key and a user."""
    return _serve_file(PAGE)


@router.get("/ui/")
async def redirect_trailing_slash() -> Response:
    """Redirect to `/ui`: the page names its files relative to that path."""
    return RedirectResponse("../ui", 308)


@router.get("/ui/{name:path}")
async def asset(name: str) -> Response:
    """Serve a file of the page."""
    return _serve_file(name)


def _serve_file(name: str) -> Response:
    files = {path.relative_to(ASSETS_FOLDER).as_posix(): path for path in ASSETS_FOLDER.rglob("*.*")}
    media_type = MEDIA_TYPES.get(PurePosixPath(name).suffix)
    if media_type and (compressed := files.get(f"{name}.gz")):
        return FileResponse(compressed, media_type=media_type, headers=HEADERS | VENDORED_HEADERS)
    if media_type and (file := files.get(name)):
        return FileResponse(file, media_type=media_type, headers=HEADERS)
    raise NotFound("The explorer has no such file.")
