"""The page at `/docs`: Swagger UI, served from this package so that it works offline."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from graphmem.runtime.errors import NotFound
from graphmem_api.openapi import DOCUMENTATION_FOLDER

router = APIRouter(include_in_schema=False)

PAGE = """\
<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>graphmem: HTTP API</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="icon" href="ui/icon.svg">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
"""
START_SCRIPT = """\
SwaggerUIBundle({
  url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, filter: true, persistAuthorization: false,
  validatorUrl: null, tryItOutEnabled: true, defaultModelsExpandDepth: 0, displayOperationId: true,
});
"""
VENDORED = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
"""Files of Swagger UI, stored compressed in `documentation/swagger_ui`, next to its licence."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("/docs")
async def page() -> Response:
    """Serve the page."""
    return Response(PAGE, media_type="text/html", headers=HEADERS)


@router.get("/docs/{name}")
async def asset(name: str) -> Response:
    """Serve a script or the style of the page."""
    if name == "start.js":
        return Response(START_SCRIPT, media_type="text/javascript", headers=HEADERS)
    if name not in VENDORED:
        raise NotFound("The documentation has no such file.")
    compressed = (DOCUMENTATION_FOLDER / "swagger_ui" / f"{name}.gz").read_bytes()
    return Response(compressed, media_type=VENDORED[name], headers={**HEADERS, "Content-Encoding": "gzip"})
