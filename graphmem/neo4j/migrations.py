"""The schema of a database: Cypher files that bring it up to date, and checks of what always holds in it.

A file runs once per database. Its statements may be replayed, because a process can stop between two of them.

Writers may be at work meanwhile, and a query reads a little before and a little after each of their transactions.
Therefore only what two runs of a check find violates an invariant.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.queries import Query, load_checks
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.files import cypher_root
from graphmem.runtime.progress import ProgressCallback, ignore_progress

_FILE_NAME = re.compile(r"^V(?P<version>\d{4})__(?P<title>[a-z0-9_]+)\.cypher$")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)

_POLL_SECONDS = 1.0
"""Seconds between two looks at how far indexes are populated."""


def split_statements(text: str) -> list[str]:
    """Return the statements of a Cypher file without its comments."""
    return [statement.strip() for statement in _COMMENT.sub("", text).split(";") if statement.strip()]


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file; `checksum` is the SHA-256 of its text before placeholders are replaced."""

    version: int
    title: str
    checksum: str
    text: str

    def statements(self, dimension: int) -> list[str]:
        """Return the statements for an embedding dimension."""
        return split_statements(self.text.replace("{{dimension}}", str(dimension)))


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


async def migrate(
    graph: Graph,
    model: EmbeddingModel,
    folder: Path | None = None,
    *,
    on_populated: ProgressCallback = ignore_progress,
) -> list[int]:
    """Run the pending migrations and return their versions; the vectors of a new database are those of `model`.

    `on_populated` gets how far the new indexes are populated, in percent of all of them.
    """
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
        await _await_population(graph, on_populated)
        await graph.fetch("schema.await_indexes")
    return versions


async def _await_population(graph: Graph, on_populated: ProgressCallback) -> None:
    """Wait as long as indexes are being populated, which takes hours for many facts."""
    while True:
        [row] = await graph.fetch("schema.get_population")
        on_populated(int(row["percent"]), 100 * row["indexes"])
        if not row["populating"]:
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _list_applied(transaction: Transaction) -> dict[int, str]:
    """Return the checksums of the applied migrations by version."""
    rows = await transaction.run("schema.list_applied_migrations")
    return {row["version"]: row["checksum"] for row in rows}


FACT_TEXT_FIELDS = ("fact", "search_text")
"""Fields of `graphmem_fact_words`."""

MESSAGE_TEXT_FIELDS = ("content", "speaker")
"""Fields of `graphmem_message_words`."""

NAME_TEXT_FIELDS = ("name", "alias_text")
"""The fields of `node_name_and_summary` that hold an entity's names."""


MAX_VIOLATIONS = 10_000
"""Violations of one invariant that are counted."""

SHOWN_IDS = 10
"""Violations of one invariant that are named."""

_FIX = " Fix: "
"""What separates the two parts of the comment of a check: what is wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class InvariantCheck:
    """The result of checking one invariant.

    `ids` names some of what violates it, each with its user, as `tenant:user id`; `count` is at most `MAX_VIOLATIONS`.
    """

    name: str
    violation: str
    fix: str
    count: int
    ids: tuple[tuple[str, str], ...]


async def check_invariants(graph: Graph, tenant: str | None = None) -> AsyncIterator[InvariantCheck]:
    """Check every invariant, reading the whole graph; with `tenant`, report the violations in that tenant only."""
    for check in load_checks().values():
        found = await _find_violations(graph, check, tenant)
        if found:
            hidden = await _list_forgotten(graph)
            found &= await _find_violations(graph, check, tenant)
            hidden |= await _list_forgotten(graph)
            found = {(group_id, key) for group_id, key in found if group_id not in hidden}
        violation, _, fix = check.description.partition(_FIX)
        yield InvariantCheck(check.name, violation, fix, len(found), tuple(sorted(found)[:SHOWN_IDS]))


async def _find_violations(graph: Graph, check: Query, tenant: str | None) -> set[tuple[str, str]]:
    rows = await graph.read(
        lambda transaction: transaction.run_text(check.text, {"tenant": tenant, "limit": MAX_VIOLATIONS})
    )
    return {(row["group_id"] or "", str(row["id"])) for row in rows}


async def _list_forgotten(graph: Graph) -> set[str]:
    """Return the users whose erasure is under way: parts of what they had are gone."""
    return {row["group_id"] for row in await graph.fetch("forget.list_begun")}
