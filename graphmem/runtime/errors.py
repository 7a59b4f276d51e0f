"""The errors that graphmem raises.

    GraphmemError
    ├── InvalidInput            422  the caller's data cannot be used
    ├── Unauthenticated         401  the key is missing, unknown or revoked
    ├── Forbidden               403  the key does not allow this
    ├── NotFound                404  the user has no such thing
    ├── RequestTimeout          408  the request did not arrive in time
    ├── Conflict                409  the stored state forbids the change
    │   ├── VersionConflict          the version in `If-Match` is not the latest
    │   ├── ImmutableMemory          the memory may not be changed
    │   ├── MemoryDeleted            the memory was deleted or archived before
    │   ├── UserBeingForgotten       the erasure of the user has begun and not ended
    │   └── IdempotencyConflict      the idempotency key was used with another body
    ├── Gone                    410  the retention period has passed
    ├── TooLarge                413  the request is over a configured limit
    ├── RateLimited             429  too many requests
    ├── NotConfigured           501  the installation lacks what the call needs
    └── Unavailable             503  a dependency is unavailable
        ├── DatabaseUnavailable      Neo4j
        │   └── OutcomeUnknown           the connection was lost while a transaction was committed
        ├── JobStoreUnavailable      the job store
        ├── ModelUnavailable         the language model or the embedding model, after bounded retries
        │   └── ModelAnswerUnusable      the model answers, and its answer cannot be used
        └── ConfigurationError       the installation must be changed

An error's detail is one sentence that says what is wrong and, after a colon, what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class GraphmemError(Exception):
    """The base of all errors; `status` is the HTTP status, `title` the short name in responses.

    `errors` lists single problems as `{loc, msg}`; `retry_after` is the number of seconds after which the same call may
    succeed.
    """

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
    """The caller's data cannot be used."""

    status, title = 422, "Invalid input"


class Unauthenticated(GraphmemError):
    """The key is missing, unknown or revoked."""

    status, title = 401, "Unauthenticated"


class Forbidden(GraphmemError):
    """The role or the users of the key do not allow this."""

    status, title = 403, "Forbidden"


class NotFound(GraphmemError):
    """The user has nothing with this id."""

    status, title = 404, "Not found"


class RequestTimeout(GraphmemError):
    """The request did not arrive in time."""

    status, title = 408, "Request timeout"


class Conflict(GraphmemError):
    """The change conflicts with the stored state."""

    status, title = 409, "Conflict"


class VersionConflict(Conflict):
    """The version in `If-Match` is not the latest."""

    title = "Version conflict"


class ImmutableMemory(Conflict):
    """The memory is immutable; it can only be hard-deleted or forgotten."""

    title = "Immutable memory"


class MemoryDeleted(Conflict):
    """The memory was deleted or archived and cannot be changed."""

    title = "Memory deleted"


class UserBeingForgotten(Conflict):
    """The user is being erased; until that has ended, nothing is stored."""

    title = "User being forgotten"


class IdempotencyConflict(Conflict):
    """The idempotency key was used with another body."""

    title = "Idempotency conflict"


class Gone(GraphmemError):
    """The retention period has passed."""

    status, title = 410, "Gone"


class TooLarge(GraphmemError):
    """The request is over a configured limit."""

    status, title = 413, "Too large"


class RateLimited(GraphmemError):
    """Too many requests; `retry_after` is the number of seconds to wait."""

    status, title = 429, "Too many requests"


class NotConfigured(GraphmemError):
    """The call needs something that is not configured, such as a language model; the detail says what to configure."""

    status, title = 501, "Not configured"


class Unavailable(GraphmemError):
    """A dependency is unavailable; the same call may succeed later, unless `retry_after` is null."""

    status, title = 503, "Unavailable"

    def __init__(self, detail: str, *, retry_after: int | None = 5) -> None:
        super().__init__(detail, retry_after=retry_after)


class DatabaseUnavailable(Unavailable):
    """Neo4j cannot be reached or is not ready."""


class OutcomeUnknown(DatabaseUnavailable):
    """The connection to Neo4j was lost while a transaction was committed: it is stored in full, or not at all."""


class JobStoreUnavailable(Unavailable):
    """The job store cannot be reached."""


class ModelUnavailable(Unavailable):
    """A language or embedding model did not give a usable answer within its bounded retries."""


class ModelAnswerUnusable(ModelUnavailable):
    """A language model answered, but its answer is unusable; another attempt may give a better one."""


class ConfigurationError(Unavailable):
    """The configuration is not valid; the detail says what to change."""

    title = "Configuration error"
