"""A real Neo4j Community server of our own, without Docker or an installed Java."""

from graphmem.embedded.home import ServerInfo
from graphmem.embedded.server import EmbeddedNeo4j, status, stop

__all__ = ["EmbeddedNeo4j", "ServerInfo", "status", "stop"]
