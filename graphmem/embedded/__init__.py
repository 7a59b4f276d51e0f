"""A real Neo4j Community server of our own, without Docker or an installed Java."""

from graphmem.embedded.distribution import Progress, ensure_jars
from graphmem.embedded.home import ServerInfo
from graphmem.embedded.process import EmbeddedNeo4j, status, stop

__all__ = ["EmbeddedNeo4j", "Progress", "ServerInfo", "ensure_jars", "status", "stop"]
