"""What state an embedded Neo4j is in, as it answers: reachable, its password, its database."""

from __future__ import annotations

import logging

import httpx
from neo4j import AsyncGraphDatabase, Query
from neo4j.exceptions import ClientError, DatabaseError, DriverError, Neo4jError

from graphmem.neo4j.embedded.home import NEO4J_USER, ServerInfo
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.resources import cypher_root

_INITIAL_PASSWORD = "neo4j"
"""The password of a new Neo4j, which must be changed before use."""

_FAILED_DATABASE_CODES = ("Neo.DatabaseError.Transaction", "Neo.DatabaseError.Database")
"""How the codes begin with which a database that has failed refuses a transaction."""

log = logging.getLogger(__name__)


async def is_reachable(info: ServerInfo) -> bool:
    """Return whether the server answers over HTTP, the last protocol that it starts."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.head(info.browser_url)).is_success
        except httpx.TransportError:
            return False


async def accepts_password(info: ServerInfo) -> bool:
    """Return whether the stored password works, which is set on a new server; False while it does not answer yet.

    Raises ConfigurationError when the server refuses the password.
    """
    try:
        await _ensure_password_works(info)
    except (Neo4jError, DriverError, OSError) as error:
        log.debug("Neo4j is not ready: %s", error)
        return False
    return True


async def _ensure_password_works(info: ServerInfo) -> None:
    if await _can_log_in(info, info.password):
        return
    if not await _can_log_in(info, _INITIAL_PASSWORD):
        raise ConfigurationError(
            f"The password in {info.password_file} does not open the Neo4j data in {info.home}: "
            "write the right one to that file, or move the folder away to start with an empty database."
        )
    text = (cypher_root() / "admin" / "set_password.cypher").read_text(encoding="utf-8")
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, _INITIAL_PASSWORD)) as driver:
        passwords = {"old": _INITIAL_PASSWORD, "new": info.password}
        await driver.execute_query(Query(text), passwords, database_="system")


async def has_failed_database(info: ServerInfo) -> bool:
    """Return whether the server answers that its database has failed."""
    text = (cypher_root() / "admin" / "check_database.cypher").read_text(encoding="utf-8")
    async with (
        AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, info.password)) as driver,
        driver.session(database="neo4j") as session,
    ):
        try:
            await (await session.run(Query(text))).consume()  # unlike a transaction function, it is not retried
        except DatabaseError as error:
            return (error.code or "").startswith(_FAILED_DATABASE_CODES)
        except (Neo4jError, DriverError, OSError):
            return False
    return False


async def _can_log_in(info: ServerInfo, password: str) -> bool:
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, password)) as driver:
        try:
            await driver.verify_connectivity()
        except ClientError as error:
            if (error.code or "").startswith("Neo.ClientError.Security."):
                return False
            raise
    return True
