"""Writes the lock file of the embedded Neo4j: `python -m graphmem.neo4j.embedded.relock`, after a version change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jgo
from jgo.maven import Artifact

from graphmem.neo4j.embedded.distribution import LOCK_FILE
from graphmem.runtime.artifacts import MAX_PARALLEL_DOWNLOADS, Jar

ROOT_ARTIFACTS = (
    "org.neo4j:neo4j:2026.08.1",
    "org.neo4j.app:neo4j-server:2026.08.1",
    "org.neo4j.client:neo4j-browser:5.24.0",
)
"""The artifacts whose dependencies are locked: the database, its server and Neo4j Browser."""


def render_lock_file(jars: Sequence[Jar]) -> str:
    """Return the text of a lock file: one jar per line, in class path order."""
    lines = (f'  {{coordinates = "{jar.coordinates}", sha256 = "{jar.sha256}", size = {jar.size}}},\n' for jar in jars)
    roots = json.dumps(ROOT_ARTIFACTS)
    return f"# Made by graphmem.neo4j.embedded.relock.\nroots = {roots}\njars = [\n{''.join(lines)}]\n"


def _to_jar(artifact: Artifact) -> Jar:
    content = Path(artifact.resolve()).read_bytes()
    parts = (artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier)
    return Jar(":".join(part for part in parts if part), hashlib.sha256(content).hexdigest(), len(content))


def main() -> None:
    """Resolve the roots with jgo, download every jar, and write their hashes and sizes."""
    artifacts = jgo.resolve("+".join(ROOT_ARTIFACTS))
    with ThreadPoolExecutor(MAX_PARALLEL_DOWNLOADS) as pool:
        jars = list(pool.map(_to_jar, artifacts))
    LOCK_FILE.write_text(render_lock_file(jars), encoding="utf-8")


if __name__ == "__main__":
    main()
