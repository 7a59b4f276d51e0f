"""The locked jars of the embedded Neo4j."""

from __future__ import annotations

from pathlib import Path

from graphmem.runtime.artifacts import JarSet, read_lock_file

LOCK_FILE = Path(__file__).with_name("neo4j.lock.toml")
"""The lock file that `relock` writes."""


def neo4j_jars() -> JarSet:
    """Read the locked jars, in the order of the class path."""
    return JarSet("Neo4j's jars", read_lock_file(LOCK_FILE), "GRAPHMEM_NEO4J_URI to a Neo4j of yours")
