"""The embedded Neo4j on the command line: starting it to stay, and how to reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphmem.cli.command import Output
from graphmem.cli.progress import download_progress

if TYPE_CHECKING:
    from graphmem.embedded.home import ServerInfo
    from graphmem.settings import Settings


async def start_detached(output: Output, settings: Settings) -> ServerInfo:
    """Start or join the embedded Neo4j and leave it running until `graphmem db stop`."""
    from graphmem.embedded.server import EmbeddedNeo4j

    with download_progress(output) as on_download:
        server = await EmbeddedNeo4j.start_or_join(
            settings.data_dir,
            settings.cache_dir,
            bolt_port=settings.bolt_port,
            http_port=settings.http_port,
            mirror=settings.jar_mirror,
            progress=on_download,
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


def browser_access(settings: Settings, info: ServerInfo | None) -> dict[str, object]:
    """Return how to open the graph in Neo4j Browser; without `info`, the address of the configured Neo4j."""
    if info is None:
        return {"bolt": settings.neo4j_uri, "user": settings.neo4j_user}
    return {"open": info.browser_url, "user": info.user, "password in": str(info.password_file), "bolt": info.uri}
