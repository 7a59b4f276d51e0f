"""The embedded Neo4j on the command line: starting it to stay, and how to reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from graphmem.cli.command import Output
from graphmem.cli.progress import start_progress

if TYPE_CHECKING:
    from graphmem.neo4j.embedded.home import ServerInfo
    from graphmem.runtime.settings import Settings

SEES_ALL_TENANTS = "This login reads and writes the data of every tenant: give it to administrators only."
"""A warning: the Community edition of Neo4j has one role."""


async def start_detached(output: Output, settings: Settings) -> ServerInfo:
    """Start or join the embedded Neo4j and leave it running until `graphmem db stop`."""
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    with start_progress(output) as progress:
        server = await EmbeddedNeo4j.start_or_join(
            settings.data_dir,
            settings.cache_dir,
            bolt_port=settings.bolt_port,
            http_port=settings.http_port,
            mirror=settings.jar_mirror,
            progress=progress,
            detached=True,
        )
    await server.stop()
    return server.info


def server_details(info: ServerInfo) -> dict[str, Any]:
    """Return the details of a running server without its password."""
    return {
        "running": True,
        "uri": info.uri,
        "user": info.user,
        "browser_url": info.browser_url,
        "password_file": str(info.password_file),
        "home": str(info.home),
        "pid": info.pid,
        "detached": info.detached,
    }


def browser_login(
    settings: Settings, info: ServerInfo | None, text: str, address: str | None = None
) -> dict[str, object]:
    """Return how to open Neo4j Browser with `text` in its editor; without `info`, that of the configured Neo4j."""
    from graphmem.neo4j.embedded.neo4j_browser import browser_link, setup_commands

    if info is not None:
        link = browser_link(address or info.browser_url, info.uri, info.user, text)
        return {"open": link, "user": info.user, "password in": str(info.password_file)}
    uri = settings.neo4j_uri or ""
    link = browser_link(address or f"http://{urlsplit(uri).hostname}:7474/browser/", uri, settings.neo4j_user, text)
    return {"open": link, "user": settings.neo4j_user, "paste first": f":{setup_commands()[0]}"}
