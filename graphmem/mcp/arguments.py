"""The arguments of tools, with the descriptions that a model reads, and the user that a connection is fixed to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from graphmem.memories.filters import MemoryFilters
from graphmem.memories.memory import (
    MAX_CONTENT_LENGTH,
    Scope,
    StatedType,
    Tags,
)
from graphmem.runtime.errors import Forbidden, InvalidInput
from graphmem.runtime.field_types import Domain, Id, NonBlankText, StorableText, UnitInterval
from graphmem.runtime.times import Instant
from graphmem.search.models import Cut, QueryText
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.profiles import known_topic_tags
from graphmem.tenants.spaces import SpaceId, SpaceSelection
from graphmem.tenants.trust import SourceKind, StatedKind

_NON_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")

Content = Annotated[
    NonBlankText,
    Field(
        max_length=MAX_CONTENT_LENGTH,
        description="One self-contained sentence in the third person, with names, not 'I'.",
    ),
]
TypeArgument = Annotated[StatedType, Field(description="What kind of statement it is.")]
Confidence = Annotated[
    UnitInterval,
    Field(description="How sure it is, 0 to 1: 1 when the user said so, less when you infer. Below 0.5: not saved."),
]
Importance = Annotated[UnitInterval, Field(description="How much it matters for later conversations, 0 to 1.")]
TopicTags = Annotated[
    Tags, Field(description=f"Topics, lower case; known ones are {', '.join(sorted(known_topic_tags()))}.")
]
EntityNames = Annotated[
    list[Annotated[NonBlankText, Field(max_length=300)]],
    Field(max_length=50, description="Names of the people, places and things it is about, besides the user."),
]
DomainArgument = Annotated[
    Domain | None, Field(description="Area it belongs to, such as cooking, when it matters nowhere else.")
]
UserScope = Annotated[
    Literal[Scope.PROFILE, Scope.DOMAIN, Scope.EPISODIC] | None,
    Field(description="profile: matters everywhere; domain: in its domain only; episodic: in this conversation only."),
]
ValidAt = Annotated[
    Instant | None, Field(description="Since when it holds in the world, RFC 3339 with offset; leave out when unknown.")
]
InvalidAt = Annotated[Instant | None, Field(description="From when it no longer holds; leave out when it still does.")]
ExpiresAt = Annotated[Instant | None, Field(description="When to stop recalling it; leave out for never.")]
ValidAsOf = Annotated[
    Instant | None, Field(description="What held in the world at this time, RFC 3339 with offset; leave out for now.")
]
KnownAsOf = Annotated[Instant | None, Field(description="What was known at this time; leave out for now.")]
SupersededIds = Annotated[
    list[Id], Field(max_length=100, description="Ids of memories that it replaces, from search_memory.")
]
MemoryId = Annotated[Id, Field(description="Id of a memory, from search_memory or lookup_entity.")]
Query = Annotated[QueryText, Field(description="What to look for, in plain words.")]
CutArgument = Annotated[
    Cut,
    Field(description="auto: only what fits the query, possibly nothing; none: the nearest memories, fitting or not."),
]
MinScore = Annotated[UnitInterval, Field(description="Least score of a memory, 0 to 1; from 0.5 it fits the query.")]
SpaceArgument = Annotated[
    SpaceId | None,
    Field(description="Id of a space, whose members share it; leave out for the user's own."),
]
SpacesArgument = Annotated[
    SpaceSelection, Field(description="Ids of shared spaces to read too; all: every one; none: only the user's own.")
]
MinTrust = SkipJsonSchema[StatedKind | None]
"""The least trusted source that counts, for the program around the model: its schema does not show it."""
Limit = Annotated[int, Field(ge=1, le=50, description="Most memories to return.")]


class SearchFilters(MemoryFilters):
    """What a memory must be to be found; leave out what does not matter."""

    types: list[StatedType] | None = None  # type: ignore[assignment] # a model chooses among the built-in ones
    entity: (
        Annotated[str, Field(max_length=300, description="Name or id of somebody or something it is about.")] | None
    ) = None
    # Models know these by their names: a description would cost tokens at each call.
    domain: Domain | None = None
    scope: Scope | None = None
    min_confidence: UnitInterval | None = None
    min_importance: UnitInterval | None = None
    # Whose word a memory is is for the program around the model to filter by; it may send these all the same.
    source_kind: SkipJsonSchema[SourceKind | None] = None
    min_trust: MinTrust = None
    speaker: SkipJsonSchema[StorableText | None] = None
    agent: SkipJsonSchema[Id | None] = None
    session_id: SkipJsonSchema[Id | None] = None
    include_contested: SkipJsonSchema[bool] = False


def predicate_from_key(key: str) -> str:
    """Return the predicate for the key of an attribute; raise InvalidInput for an unusable key."""
    words = "_".join(word for word in _NON_ALPHANUMERIC.split(key) if word).upper()[:64]
    if not words or not words[0].isalpha():
        raise InvalidInput("key must begin with a Latin letter, as in server_os.")
    return words


@dataclass(frozen=True, slots=True)
class Connection:
    """The user whose memory the tools access, the actor recorded with writes, and whether writes are allowed.

    `key` is that of the connection, None for one of this machine.
    """

    owner: Owner
    actor: str | None = None
    can_write: bool = True
    key: ApiKey | None = None

    @property
    def changes_as(self) -> StatedKind | None:
        """Whose word the changes are that the connection makes of memories; None for one that may change any."""
        return self.key.changes_as if self.key else None

    @property
    def writable_owner(self) -> Owner:
        """The owner, for a write; raises Forbidden on a connection that only reads."""
        if not self.can_write:
            raise Forbidden("The key of this connection is an analyst's: it reads and does not write.")
        return self.owner


def resolve_connection(key: ApiKey, user_id: str | None) -> Connection:
    """Return the connection of a key to the user in the path, or to the only user that the key is bound to.

    Raises Forbidden when the key has no access to the user, or is bound to no single user and the path names none.
    """
    if user_id is None:
        if key.users is None or len(key.users) != 1:
            raise Forbidden("The key is not bound to exactly one user: name the user in the path, as in /mcp/<user>.")
        user_id = key.users[0]
    if not key.can_access(user_id):
        raise Forbidden("This key has no access to that user.")
    return Connection(make_owner(key.tenant, user_id), actor=key.id, can_write=key.can_write, key=key)
