"""A real Neo4j Community server of our own, without Docker or an installed Java."""

from graphmem.embedded.distribution import DownloadProgress, ensure_jars
from graphmem.embedded.home import ServerInfo
from graphmem.embedded.server import EmbeddedNeo4j, status, stop

__all__ = ["DownloadProgress", "EmbeddedNeo4j", "ServerInfo", "ensure_jars", "status", "stop"]
