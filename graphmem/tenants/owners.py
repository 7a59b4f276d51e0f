"""Tenants and users: the owners of memories, and a tenant's instructions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pydantic import BaseModel, Field

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import StorableText, check_identity, check_normalised_length
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.validation import RequestBody

DEFAULT_TENANT = "default"
"""Tenant of callers that name none."""

MAX_USER_ID_LENGTH = 255
"""Longest user id, in characters."""

GLOBAL_SUBJECT_NAME = "everyone"
"""Name of the default subject of a global memory."""

SPACE_PREFIX = " "
"""Prefix of a space's user id; no user id begins with white space."""

_TENANT_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a tenant; with an empty `user_id`, the tenant itself, which owns the global memories.

    A space of the tenant is also an owner: its `user_id` is `SPACE_PREFIX` and its id, a form that only `of_space` and
    stored ids produce. Raises InvalidInput if the tenant or the id has forbidden characters.
    """

    tenant: str
    user_id: str
    is_space: bool = False

    def __post_init__(self) -> None:
        if not _TENANT_PATTERN.fullmatch(self.tenant):
            raise InvalidInput("A tenant is named with a-z, 0-9, '-' and '_', up to 63 characters.")
        kind, own_id = ("space", self.space or "") if self.is_space else ("user", self.user_id)
        if len(own_id) > MAX_USER_ID_LENGTH or "\x00" in own_id or own_id != own_id.strip():
            raise InvalidInput(f"A {kind} id has 1 to {MAX_USER_ID_LENGTH} characters and no space around it.")
        try:
            own_id.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"A {kind} id must be text that UTF-8 can encode.") from error
        try:  # it is also the name of the owner's self entity
            check_normalised_length(own_id, MAX_USER_ID_LENGTH)
        except ValueError as error:
            raise InvalidInput(f"A {kind} id {error}.") from None

    @classmethod
    def of_space(cls, tenant: str, space: str) -> Owner:
        """Return a space of a tenant as an owner of memories; raise InvalidInput for an empty or invalid id.

        `tenants.rights` decides whether a caller may use it.
        """
        if not space.strip():
            raise InvalidInput("The id of a space must not be empty.")
        return cls(tenant, f"{SPACE_PREFIX}{space}", is_space=True)

    @classmethod
    def from_stored(cls, tenant: str, user_id: str) -> Owner:
        """Return the owner with a stored `user_id`, a user or a space."""
        return cls(tenant, user_id, is_space=user_id.startswith(SPACE_PREFIX))

    @classmethod
    @lru_cache(maxsize=4096)
    def from_group_id(cls, group_id: str) -> Owner:
        """Return the owner with a `group_id`."""
        tenant, _, user_id = group_id.partition(":")
        return cls.from_stored(tenant, user_id)

    @property
    def space(self) -> str | None:
        """The id of the space; None for a user and for the tenant."""
        return self.user_id.removeprefix(SPACE_PREFIX) if self.is_space else None

    @property
    def own_user_id(self) -> str | None:
        """The id of the user; None for a space and for the tenant."""
        return None if self.is_space else self.user_id or None

    def author_in(self, group: Owner) -> str | None:
        """Return this user's id as the author of writes to a space; None for the user's own memory."""
        return self.user_id if group.is_space else None

    @property
    def group_id(self) -> str:
        """The `group_id` of all of this owner's nodes and edges in the graph."""
        return f"{self.tenant}:{self.user_id}"

    @property
    def group_key(self) -> str:
        """The `group_id` as one token for full-text indexes, regardless of its characters."""
        return group_key(self.group_id)

    @property
    def entity_name(self) -> str:
        """The name of the default subject of the owner's memories."""
        return self.space or self.user_id or GLOBAL_SUBJECT_NAME

    @property
    def tenant_global(self) -> Owner:
        """The owner of the memories shared with every user of the tenant."""
        return Owner(self.tenant, "")


def make_owner(tenant: str, user_id: str) -> Owner:
    """Return the owner for a caller's user id; raise InvalidInput if the id is invalid."""
    if not user_id.strip():
        raise InvalidInput("A user id must not be empty.")
    try:
        check_identity(user_id)
    except ValueError as error:
        raise InvalidInput(f"The user id {error}.") from None
    return Owner(tenant, user_id)


def group_key(group_id: str) -> str:
    """Return a `group_id` as one token of letters and digits: `g` and 96 bits of its SHA-256 in hex."""
    return "g" + hashlib.sha256(group_id.encode()).hexdigest()[:24]


def message_key(group_id: str, message_id: str) -> str:
    """Return a message's key, which is unique across groups, like the Cypher fragment of that name.

    It is the message id, prefixed with the group in a space, because ids are only unique within a group.
    """
    return f"{group_id}\0{message_id}" if Owner.from_group_id(group_id).is_space else message_id


def split_message_key(key: str) -> tuple[str, str]:
    """Return the space's group id, empty outside spaces, and the message id."""
    group_id, _, message_id = key.rpartition("\0")
    return group_id, message_id


MessageName = tuple[str | None, str]
"""A message's space, None outside spaces, and its id."""


def message_name(key: str) -> MessageName:
    """Return the name of the message with a key."""
    group_id, message_id = split_message_key(key)
    return (Owner.from_group_id(group_id).space if group_id else None), message_id


def message_ids_of(keys: Iterable[str]) -> list[str]:
    """Return the distinct message ids of keys; several keys may have the same id."""
    return list(dict.fromkeys(split_message_key(key)[1] for key in keys))


class UserSummary(BaseModel):
    """A user: since when they are known, when something last changed, and how much is stored."""

    user_id: str
    created_at: datetime | None = Field(None, description="Time of the first write.")
    last_write_at: datetime | None = Field(None, description="Time of the latest write; null: no memory was written.")
    memory_count: int = Field(description="Number of current memories.")
    session_count: int = Field(description="Number of sessions.")


class UserListQuery(PageQuery):
    """The users to list."""

    query: str | None = Field(None, max_length=255, description="Part of a user id, in any case.")


MAX_INSTRUCTIONS_LENGTH = 2000
"""Maximum characters of a tenant's instructions, which every extraction and consolidation prompt includes."""


class InstructionsIn(RequestBody):
    """The instructions to set; an empty text removes them."""

    text: StorableText = Field(max_length=MAX_INSTRUCTIONS_LENGTH)


class Instructions(BaseModel):
    """The instructions of a tenant, with who set them and when; empty where there are none."""

    text: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None
