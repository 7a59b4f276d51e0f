"""The schema of a database: Cypher files that migrate it, and checks of its invariants.

A file runs once per database, in one process while the others wait. Its statements may be replayed, because a process
can stop between two of them. A line `// Compatible with: V0002` in a file says that processes of schema version 2 and
later keep working with the database during and after the migration. This is recorded in the database, because a process
of an earlier version does not have the file.

Writers may be active meanwhile, and a query may read parts from before and after a write. So only violations found by
two runs of a check count.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.queries import Query, load_checks
from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, GraphmemError
from graphmem.runtime.files import cypher_root
from graphmem.runtime.progress import ProgressCallback, StartProgress, ignore_progress

LEASE_SECONDS = 30.0
"""Seconds for which a lease holds after its last extension; other processes wait this long for a killed one."""

EXTENSIONS_PER_LEASE = 3
"""How often a lease is extended during its term."""

POLL_SECONDS = 1.0
"""Seconds between checks whether another process's lease has ended."""

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another process has taken over, because this one could not extend its lease in time; `migrate` restarts."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease that has not been released.

    Its process migrates the database to schema version `version`, with which processes of version `compatible_with` and
    later work. `is_held` is true until the lease expires.
    """

    version: int
    compatible_with: int
    is_held: bool


async def read_lease(transaction: Transaction) -> LeaseRecord | None:
    """Return the lease of the process that migrates the database or was killed meanwhile, or None."""
    rows = await transaction.run("schema.get_migration_lease")
    return LeaseRecord(**rows[0]) if rows else None


class MigrationLease:
    """One process's lease on a database, for `seconds` at a time.

    Neo4j runs each schema statement in a separate transaction, so no lock lasts for a whole migration. Instead, a node
    in the database names the migrating process and the time until which others wait for it. The process extends that
    time while it works; if it is killed, another one takes over once the time has passed. All times are the server's.
    """

    def __init__(self, graph: Graph, seconds: float = LEASE_SECONDS) -> None:
        self._graph = graph
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._extended_at = 0.0

    async def take(self, version: int, compatible_with: int) -> bool:
        """Take the lease to migrate to a schema version; return whether this process now holds it."""
        statement = (cypher_root() / "admin" / "lease_migrations.cypher").read_text(encoding="utf-8")
        await self._graph.apply_schema(statement)
        asked_at = time.monotonic()
        rows = await self._graph.execute(
            "schema.take_migration_lease",
            holder=self._holder,
            version=version,
            compatible_with=compatible_with,
            seconds=self._seconds,
        )
        self._extended_at = asked_at
        return bool(rows)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Extend the lease during the block, and release it at the end."""
        extensions = asyncio.create_task(self._extend_repeatedly())
        try:
            yield
        finally:
            extensions.cancel()
            with suppress(DatabaseUnavailable):  # then it expires by itself
                await self._graph.execute("schema.release_migration_lease", holder=self._holder)

    async def confirm(self) -> None:
        """Raise LeaseLost unless this process holds the lease for some time to come; call before each step."""
        if time.monotonic() - self._extended_at > self._seconds / EXTENSIONS_PER_LEASE:
            await self._extend()

    async def wait_for_others(self) -> None:
        """Wait until no other process holds the lease."""
        while (lease := await self._graph.read(read_lease)) and lease.is_held:  # noqa: ASYNC110 - the graph does not call
            await asyncio.sleep(POLL_SECONDS)

    async def _extend(self) -> None:
        asked_at = time.monotonic()
        if not await self._graph.execute("schema.extend_migration_lease", holder=self._holder, seconds=self._seconds):
            raise LeaseLost
        self._extended_at = asked_at

    async def _extend_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / EXTENSIONS_PER_LEASE)
            try:
                await self._extend()
            except LeaseLost:
                return  # the next step of the migration finds out
            except GraphmemError as error:
                log.warning("The lease of the migration could not be extended: %s", error.detail)


_FILE_NAME = re.compile(r"^V(?P<version>\d{4})__(?P<title>[a-z0-9_]+)\.cypher$")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_COMPATIBLE_LINE = re.compile(r"^\s*//\s*compatible with\b.*$", re.MULTILINE | re.IGNORECASE)
_COMPATIBLE_VERSION = re.compile(r"^// Compatible with: V(\d{4})$")

_POLL_SECONDS = 1.0
"""Seconds between checks of how far indexes are populated."""


def split_statements(text: str) -> list[str]:
    """Return the statements of a Cypher file without its comments."""
    return [statement.strip() for statement in _COMMENT.sub("", text).split(";") if statement.strip()]


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """A migration applied to a database; processes of schema version `compatible_with` and later work with it."""

    checksum: str
    compatible_with: int | None = None


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file; `checksum` is the SHA-256 of its text before placeholders are replaced.

    Processes of schema version `compatible_with` and later work with the database after it; None means only processes
    that have the file.
    """

    version: int
    title: str
    checksum: str
    text: str
    compatible_with: int | None = None

    def statements(self, dimension: int) -> list[str]:
        """Return the statements for an embedding dimension."""
        return split_statements(self.text.replace("{{dimension}}", str(dimension)))


def load_migrations(folder: Path | None = None) -> list[Migration]:
    """Return the migrations of a folder by version.

    Raises ConfigurationError for a misnamed file or an invalid `Compatible with` line.
    """
    migrations = []
    for path in sorted((folder or cypher_root() / "migrations").glob("*.cypher")):
        match = _FILE_NAME.match(path.name)
        if not match:
            raise ConfigurationError(f"{path.name} is not a migration: name it V0001__what_it_does.cypher.")
        text = path.read_text("utf-8")
        checksum = hashlib.sha256(text.encode()).hexdigest()
        version = int(match["version"])
        migrations.append(Migration(version, match["title"], checksum, text, _read_compatibility(path, version, text)))
    return migrations


def _read_compatibility(path: Path, version: int, text: str) -> int | None:
    """Return the oldest schema version that a migration declares itself compatible with, or None."""
    lines = _COMPATIBLE_LINE.findall(text)
    if not lines:
        return None
    match = _COMPATIBLE_VERSION.match(lines[0])
    if len(lines) > 1 or match is None or int(match[1]) >= version:
        raise ConfigurationError(
            f"{path.name} must say in one line with which earlier schema version it is compatible, such as "
            f"`// Compatible with: V{version - 1:04}`."
        )
    return int(match[1])


def newest_version(known: Sequence[Migration]) -> int:
    """Return the schema version of a process that knows these migrations."""
    return max((migration.version for migration in known), default=0)


def oldest_compatible_version(known: Sequence[Migration]) -> int:
    """Return the oldest schema version whose processes work with a database that has all of these migrations."""
    versions = (migration.version for migration in known)
    return min(
        (version for version in versions if all(_allows(later, version) for later in known if later.version > version)),
        default=0,
    )


def _allows(migration: Migration | AppliedMigration, version: int) -> bool:
    return migration.compatible_with is not None and migration.compatible_with <= version


def pending_migrations(known: Sequence[Migration], applied: Mapping[int, AppliedMigration]) -> list[Migration]:
    """Return the missing migrations; `applied` holds the database's migrations by version.

    Raises ConfigurationError if an applied migration has another checksum, or is unknown and not recorded as a later
    one compatible with the newest known version.
    """
    by_version = {migration.version: migration for migration in known}
    for version in applied.keys() & by_version.keys():
        if by_version[version].checksum != applied[version].checksum:
            raise ConfigurationError(
                f"The database was created by another build of graphmem: its migration V{version:04} differs. Export "
                "its users with that build (`graphmem export`), start with an empty database and import them."
            )
    newest = newest_version(known)
    for version in sorted(applied.keys() - by_version.keys()):
        if version < newest or not _allows(applied[version], newest):
            raise ConfigurationError(
                f"The database is at schema version {version}, which this graphmem does not know: upgrade graphmem."
            )
    return [migration for migration in known if migration.version not in applied]


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """Migrations that a database lacks for this version, or has in addition.

    `version` is the database's schema version, 0 without a schema, and `known_version` this process's. During and after
    the pending migrations, processes of schema version `compatible_with` and later keep working.
    """

    version: int
    known_version: int
    compatible_with: int
    pending: list[Migration]

    @property
    def must_stop_others(self) -> bool:
        """Whether the processes that use the database must end before the pending migrations run."""
        return bool(self.pending) and 0 < self.version < self.compatible_with


async def read_schema_status(graph: Graph) -> SchemaStatus:
    """Compare a database with this version; raise ConfigurationError as `pending_migrations` does."""
    known, applied = load_migrations(), await graph.read(_list_applied)
    return SchemaStatus(
        version=max(applied, default=0),
        known_version=newest_version(known),
        compatible_with=oldest_compatible_version(known),
        pending=pending_migrations(known, applied),
    )


async def migrate(
    graph: Graph,
    model: EmbeddingModel,
    folder: Path | None = None,
    *,
    on_populated: ProgressCallback = ignore_progress,
    progress: StartProgress | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> list[int]:
    """Run the pending migrations and return their versions; a new database gets vectors of `model`.

    One process migrates while others wait; they take over `lease_seconds` after it was killed. `on_populated` receives
    how far the new indexes are populated, in percent of all of them. `progress` reports the wait for another process.
    """
    known = load_migrations(folder)
    lease = MigrationLease(graph, lease_seconds)
    while await _must_migrate(graph, known):
        if not await lease.take(newest_version(known), oldest_compatible_version(known)):
            log.info("Another process migrates the database; this one waits for it.")
            async with (progress or StartProgress()).waiting_for("waiting for another process to migrate the database"):
                await lease.wait_for_others()
            continue
        try:
            async with lease.kept():
                return await _run_pending(graph, known, model, lease, on_populated)
        except LeaseLost:
            log.warning("This process did not extend its lease in time, and another one migrates the database.")
    return []


async def _must_migrate(graph: Graph, known: Sequence[Migration]) -> bool:
    """Return whether migrations or the vector state are missing, or another process's migration excludes this one."""
    applied, lease = await graph.read(_read_state)
    if pending_migrations(known, applied) or await graph.vector_state(refresh=True) is None:
        return True
    return lease is not None and not _may_work_during(lease, newest_version(known))


def _may_work_during(lease: LeaseRecord, version: int) -> bool:
    """Return whether a process of a schema version may work while another one migrates the database."""
    return lease.compatible_with <= version < lease.version


async def _run_pending(
    graph: Graph,
    known: Sequence[Migration],
    model: EmbeddingModel,
    lease: MigrationLease,
    on_populated: ProgressCallback,
) -> list[int]:
    pending = pending_migrations(known, await graph.read(_list_applied))
    recorded = await graph.vector_state(refresh=True)
    dimension = recorded.model.dimension if recorded else model.dimension
    for migration in pending:
        for statement in migration.statements(dimension):
            await lease.confirm()
            await graph.apply_schema(statement)
        await lease.confirm()
        await graph.execute(
            "schema.record_migration",
            version=migration.version,
            title=migration.title,
            checksum=migration.checksum,
            compatible_with=migration.compatible_with,
        )
    if recorded is None:
        await graph.execute(
            "schema.record_embedding_model", model=model.name, dimension=model.dimension, embedder=model.embedder
        )
    # Even without a pending migration: the process that ran the last one may have been killed while waiting.
    await _await_population(graph, on_populated)
    await graph.fetch("schema.await_indexes")
    return [migration.version for migration in pending]


async def _await_population(graph: Graph, on_populated: ProgressCallback) -> None:
    """Wait while indexes are being populated, which takes hours for many facts."""
    while True:
        [row] = await graph.fetch("schema.get_population")
        on_populated(int(row["percent"]), 100 * row["indexes"])
        if not row["populating"]:
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _read_state(transaction: Transaction) -> tuple[dict[int, AppliedMigration], LeaseRecord | None]:
    return await _list_applied(transaction), await read_lease(transaction)


async def _list_applied(transaction: Transaction) -> dict[int, AppliedMigration]:
    """Return the applied migrations by version."""
    rows = await transaction.run("schema.list_applied_migrations")
    return {row["version"]: AppliedMigration(row["checksum"], row["compatible_with"]) for row in rows}


FACT_TEXT_FIELDS = ("fact", "search_text", "folded_text")
"""Fields of `graphmem_fact_words`."""

MESSAGE_TEXT_FIELDS = ("content", "speaker", "folded_text")
"""Fields of `graphmem_message_words`."""

NAME_TEXT_FIELDS = ("name", "alias_text")
"""The fields of `node_name_and_summary` that hold an entity's names."""


MAX_VIOLATIONS = 10_000
"""Maximum number of violations counted per invariant."""

SHOWN_IDS = 10
"""Maximum number of violations named per invariant."""

_FIX = " Fix: "
"""Separator in a check's comment between what is wrong and what to do about it."""


@dataclass(frozen=True, slots=True)
class InvariantCheck:
    """The result of checking one invariant.

    `ids` names some violating elements, each with its user as `tenant:user id`; `count` is at most `MAX_VIOLATIONS`.
    """

    name: str
    violation: str
    fix: str
    count: int
    ids: tuple[tuple[str, str], ...]


async def check_invariants(graph: Graph, tenant: str | None = None) -> AsyncIterator[InvariantCheck]:
    """Check every invariant, reading the whole graph; with `tenant`, report only that tenant's violations."""
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
    """Return the users whose erasure is under way and whose data is therefore incomplete."""
    return {row["group_id"] for row in await graph.fetch("forget.list_begun")}
