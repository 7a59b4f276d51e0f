"""Bring a database to the schema of this version: replay-safe files, recorded with their checksums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmem.errors import ConfigurationError
from graphmem.resources import cypher_root
from graphmem.store.driver import Graph, Transaction

_FILE_NAME = re.compile(r"^V(?P<version>\d{4})__(?P<title>[a-z0-9_]+)\.cypher$")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file; `checksum` is the SHA-256 of its text before placeholders are filled."""

    version: int
    title: str
    checksum: str
    text: str

    def statements(self, dimension: int) -> list[str]:
        """Return its statements for an embedding dimension."""
        filled = _COMMENT.sub("", self.text).replace("{{dimension}}", str(dimension))
        return [statement.strip() for statement in filled.split(";") if statement.strip()]


def load_migrations(folder: Path | None = None) -> list[Migration]:
    """Return the migrations of a folder in order of their version."""
    found = []
    for path in sorted((folder or cypher_root() / "migrations").glob("*.cypher")):
        match = _FILE_NAME.match(path.name)
        if not match:
            raise ConfigurationError(f"{path.name} is no migration: name it V0001__what_it_does.cypher.")
        text = path.read_text("utf-8")
        checksum = hashlib.sha256(text.encode()).hexdigest()
        found.append(Migration(int(match["version"]), match["title"], checksum, text))
    return found


def pending_migrations(known: Sequence[Migration], applied: dict[int, str]) -> list[Migration]:
    """Return the migrations still to be run; raise ConfigurationError when an applied one is unknown or was changed."""
    by_version = {migration.version: migration for migration in known}
    for version, checksum in applied.items():
        if version not in by_version:
            raise ConfigurationError(
                f"The database is at schema version {version}, which this graphmem does not know: upgrade it."
            )
        if by_version[version].checksum != checksum:
            raise ConfigurationError(
                f"Migration V{version:04} differs from the one the database was made with: "
                "install the version that made it, or start with an empty database."
            )
    return [migration for migration in known if migration.version not in applied]


async def migrate(graph: Graph, model: str, dimension: int, folder: Path | None = None) -> list[int]:
    """Run the pending migrations and return their versions.

    Raises ConfigurationError if the indexes contain vectors of another embedder.
    """

    async def read_schema_state(transaction: Transaction) -> tuple[dict[int, str], tuple[str, int] | None]:
        rows = await transaction.run("schema.list_applied_migrations")
        embedding = await transaction.run("schema.get_embedding_model")
        return {row["version"]: row["checksum"] for row in rows}, (
            (embedding[0]["model"], embedding[0]["dimension"]) if embedding else None
        )

    applied, embedding = await graph.read(read_schema_state)
    if embedding and embedding != (model, dimension):
        raise ConfigurationError(
            f"The database holds vectors of {embedding[0]} ({embedding[1]} dimensions), but the embedder is {model} "
            f"({dimension}): set GRAPHMEM_EMBEDDER and GRAPHMEM_EMBEDDING_MODEL to the former embedder. To change the "
            "embedder, export all users with the former one, then import them into an empty database."
        )
    run = []
    for migration in pending_migrations(load_migrations(folder), applied):
        for statement in migration.statements(dimension):
            await graph.apply_schema(statement)
        await graph.execute(
            "schema.record_migration", version=migration.version, title=migration.title, checksum=migration.checksum
        )
        run.append(migration.version)
    if embedding is None:
        await graph.execute("schema.record_embedding_model", model=model, dimension=dimension)
    if run:
        await graph.fetch("schema.await_indexes")
    return run
