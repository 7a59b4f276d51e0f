"""The explorer page: files without secrets, served without a key; what they show is asked for with the reader's."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, RedirectResponse, Response

from graphmem.errors import NotFound

router = APIRouter(include_in_schema=False)

ASSETS_FOLDER = Path(__file__).parent.parent / "ui"
PAGE = "index.html"
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
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


@router.get("/ui")
async def page() -> Response:
    """Serve the page, which asks for a key and a user."""
    return _serve_file(PAGE)


@router.get("/ui/")
async def redirect_trailing_slash() -> Response:
    """Lead to the page: its files are named relative to it."""
    return RedirectResponse("../ui", 308)


@router.get("/ui/{name}")
async def asset(name: str) -> Response:
    """Serve a file of the page."""
    return _serve_file(name)


def _serve_file(name: str) -> Response:
    served = {path.name: path for path in ASSETS_FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    if name not in served:
        raise NotFound("The explorer has no such file.")
    return FileResponse(served[name], media_type=MEDIA_TYPES[served[name].suffix], headers=HEADERS)
