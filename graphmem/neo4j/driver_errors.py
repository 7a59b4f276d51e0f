"""The errors of the Neo4j driver as errors of graphmem."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from neo4j.exceptions import AuthError, DriverError, Neo4jError, ServiceUnavailable, TransientError
from neo4j.exceptions import ConfigurationError as DriverConfigurationError

from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, GraphmemError

_NOT_READY_CODES = ("Neo.TransientError", "Neo.ClientError.Database.DatabaseNotFound")
_READ_ONLY_CODES = (
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
)
_FAILED_STORAGE_CODES = ("Neo.DatabaseError.Transaction", "Neo.DatabaseError.Database")

log = logging.getLogger(__name__)


@asynccontextmanager
async def translate_driver_errors() -> AsyncIterator[None]:
    """Raise DatabaseUnavailable for a server that cannot be reached or written to, ConfigurationError for a refusal.

    Messages of the server, which may hold paths, are logged and never part of an error.
    """
    try:
        yield
    except AuthError as error:
        raise ConfigurationError(
            "Neo4j refused the user name or password: check GRAPHMEM_NEO4J_USER and GRAPHMEM_NEO4J_PASSWORD."
        ) from error
    except DriverConfigurationError as error:
        raise ConfigurationError(f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI.") from error
    except Neo4jError as error:
        if translated := _translate_server_error(error):
            raise translated from error
        raise
    except (ServiceUnavailable, OSError) as error:
        raise DatabaseUnavailable("Neo4j cannot be reached: check that it runs, then try again.") from error
    except DriverError as error:
        raise DatabaseUnavailable("The connection to Neo4j was lost: try again.") from error


def is_not_ready(error: Neo4jError) -> bool:
    """Return whether a server reports that it cannot work yet."""
    return (error.code or "").startswith(_NOT_READY_CODES)


def _translate_server_error(error: Neo4jError) -> GraphmemError | None:
    """Return the error for one that the server reports; None when the query is at fault."""
    code, message = error.code or "", error.message or ""
    if "No space left on device" in message:
        log.error("Neo4j cannot write: %s", message)
        return DatabaseUnavailable("Neo4j cannot write because its disk is full: free disk space, then try again.")
    if code in _READ_ONLY_CODES:
        return DatabaseUnavailable("Neo4j refuses writes because it is read-only: check its configuration.")
    if code.startswith(_FAILED_STORAGE_CODES):
        log.error("Neo4j failed: %s: %s", code, message)
        return DatabaseUnavailable(
            f"Neo4j failed ({code}), as it does on a full disk: free disk space, restart Neo4j, then try again."
        )
    if isinstance(error, TransientError):
        return DatabaseUnavailable("Neo4j is overloaded or not ready: try again.")
    if is_not_ready(error):
        return DatabaseUnavailable(f"Neo4j is not ready: {code}.")
    return None
