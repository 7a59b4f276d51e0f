"""The error tree of graphmem.

    GraphmemError
    ├── InvalidInput            422  the caller's data cannot be used as it is
    ├── Unauthenticated         401  no valid key
    ├── Forbidden               403  the key does not reach that far
    ├── NotFound                404  no such thing for this user
    ├── Conflict                409  the state has moved on, or forbids it
    │   ├── VersionConflict          a stale `If-Match`
    │   ├── ImmutableMemory          the memory may not be changed
    │   ├── MemoryDeleted              the memory was deleted before
    │   └── IdempotencyConflict      the key was used with another body
    ├── Gone                    410  past its retention
    ├── TooLarge                413  over a configured limit
    ├── RateLimited             429  too many requests
    └── Unavailable             503  a part the service stands on is away
        ├── DatabaseUnavailable      Neo4j
        ├── JobStoreUnavailable          the job store
        ├── ModelUnavailable         the language model, after bounded retries
        └── ConfigurationError               the installation cannot run: says what to do

Every error is one sentence for people that says what is wrong and, where there is one, the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class GraphmemError(Exception):
    """Any error graphmem raises on purpose; `status` is its HTTP status, `title` its short name."""

    status = 500
    title = "Internal error"

    def __init__(
        self, detail: str, *, errors: Sequence[Mapping[str, object]] = (), retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = [dict(error) for error in errors]
        self.retry_after = retry_after


class InvalidInput(GraphmemError):
    """The caller's data cannot be used; `errors` lists `{loc, msg}` where known."""

    status, title = 422, "Invalid input"


class Unauthenticated(GraphmemError):
    """No key, or one that is unknown or revoked."""

    status, title = 401, "Unauthenticated"


class Forbidden(GraphmemError):
    """The key's role or users do not reach this."""

    status, title = 403, "Forbidden"


class NotFound(GraphmemError):
    """Nothing of that id belongs to this user."""

    status, title = 404, "Not found"


class Conflict(GraphmemError):
    """The stored state forbids the change."""

    status, title = 409, "Conflict"


class VersionConflict(Conflict):
    """The version given with `If-Match` is no longer the latest."""

    title = "Version conflict"


class ImmutableMemory(Conflict):
    """The memory is immutable; only hard delete and forget reach it."""

    title = "Immutable memory"


class MemoryDeleted(Conflict):
    """The memory is no longer believed, so there is nothing to change."""

    title = "Ended memory"


class IdempotencyConflict(Conflict):
    """The idempotency key was used before with another body."""

    title = "Idempotency conflict"


class Gone(GraphmemError):
    """What was asked for is past its retention."""

    status, title = 410, "Gone"


class TooLarge(GraphmemError):
    """The request is over a configured limit."""

    status, title = 413, "Too large"


class RateLimited(GraphmemError):
    """Too many requests; `retry_after` says when to come back, in seconds."""

    status, title = 429, "Too many requests"


class Unavailable(GraphmemError):
    """A part the service stands on is away; the same call may succeed later."""

    status, title = 503, "Unavailable"

    def __init__(self, detail: str, *, retry_after: int | None = 5) -> None:
        super().__init__(detail, retry_after=retry_after)


class DatabaseUnavailable(Unavailable):
    """Neo4j cannot be reached or is not ready."""


class JobStoreUnavailable(Unavailable):
    """The job store cannot be reached."""


class ModelUnavailable(Unavailable):
    """The language model did not give a usable answer within its bounded retries."""


class ConfigurationError(Unavailable):
    """The installation cannot run as it is set up; the sentence says what to do."""

    title = "Not set up"
