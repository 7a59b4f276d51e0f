"""Migrations: Cypher files that bring a database to the current schema, recorded with their checksums.

A file runs once per database. Its statements may be replayed, because a process can stop between two of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.resources import cypher_root

_FILE_NAME = re.compile(r"^V(?P<version>\d{4})__(?P<title>[a-z0-9_]+)\.cypher$")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file; `checksum` is the SHA-256 of its text before placeholders are replaced."""

    version: int
    title: str
    checksum: str
    text: str

    def statements(self, dimension: int) -> list[str]:
        """Return the statements for an embedding dimension."""
        filled = _COMMENT.sub("", self.text).replace("{{dimension}}", str(dimension))
        return [statement.strip() for statement in filled.split(";") if statement.strip()]


def load_migrations(folder: Path | None = None) -> list[Migration]:
    """Return the migrations of a folder by version; raise ConfigurationError for a file with another name."""
    migrations = []
    for path in sorted((folder or cypher_root() / "migrations").glob("*.cypher")):
        match = _FILE_NAME.match(path.name)
        if not match:
            raise ConfigurationError(f"{path.name} is not a migration: name it V0001__what_it_does.cypher.")
        text = path.read_text("utf-8")
        checksum = hashlib.sha256(text.encode()).hexdigest()
        migrations.append(Migration(int(match["version"]), match["title"], checksum, text))
    return migrations


def pending_migrations(known: Sequence[Migration], applied: dict[int, str]) -> list[Migration]:
    """Return the migrations that a database lacks; `applied` holds the checksums of those it has, by version.

    Raises ConfigurationError when an applied migration has another checksum or is unknown.
    """
    by_version = {migration.version: migration for migration in known}
    for version in applied.keys() & by_version.keys():
        if by_version[version].checksum != applied[version]:
            raise ConfigurationError(
                f"The database was created by another build of graphmem: its migration V{version:04} differs. Export "
                "its users with that build (`graphmem export`), start with an empty database and import them."
            )
    for version in applied.keys() - by_version.keys():
        raise ConfigurationError(
            f"The database is at schema version {version}, which this graphmem does not know: upgrade graphmem."
        )
    return [migration for migration in known if migration.version not in applied]


async def migrate(graph: Graph, model: EmbeddingModel, folder: Path | None = None) -> list[int]:
    """Run the pending migrations and return their versions; the vectors of a new database are those of `model`."""
    applied = await graph.read(_list_applied)
    recorded = await graph.vector_state(refresh=True)
    dimension = recorded.model.dimension if recorded else model.dimension
    versions = []
    for migration in pending_migrations(load_migrations(folder), applied):
        for statement in migration.statements(dimension):
            await graph.apply_schema(statement)
        await graph.execute(
            "schema.record_migration", version=migration.version, title=migration.title, checksum=migration.checksum
        )
        versions.append(migration.version)
    if recorded is None:
        await graph.execute(
            "schema.record_embedding_model", model=model.name, dimension=model.dimension, embedder=model.embedder
        )
    if versions:
        await graph.fetch("schema.await_indexes")
    return versions


async def _list_applied(transaction: Transaction) -> dict[int, str]:
    """Return the checksums of the applied migrations by version."""
    rows = await transaction.run("schema.list_applied_migrations")
    return {row["version"]: row["checksum"] for row in rows}
