"""Tenants and users: which memories belong to whom, and what a tenant wants remembered."""

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
"""The tenant of callers that name none."""

MAX_USER_ID_LENGTH = 255
"""Longest user id, in characters."""

GLOBAL_SUBJECT_NAME = "everyone"
"""Name of the entity that a global memory is about when it names no subject."""

SPACE_PREFIX = " "
"""The prefix of a space's user id: no user's id begins with white space."""

_TENANT_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a tenant; with an empty `user_id`, the tenant itself, which owns the global memories.

    A space of the tenant is one too: its `user_id` is its id after `SPACE_PREFIX`, which only `of_space` and ids that
    were stored make. Raises InvalidInput when the tenant or the id has characters that are not allowed.
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
        try:  # it is also the name of the entity that stands for the owner
            check_normalised_length(own_id, MAX_USER_ID_LENGTH)
        except ValueError as error:
            raise InvalidInput(f"A {kind} id {error}.") from None

    @classmethod
    def of_space(cls, tenant: str, space: str) -> Owner:
        """Return a space of a tenant as an owner of memories; raise InvalidInput for an id that is empty or unusable.

        Whether a caller may use it is for `tenants.rights` to say.
        """
        if not space.strip():
            raise InvalidInput("The id of a space must not be empty.")
        return cls(tenant, f"{SPACE_PREFIX}{space}", is_space=True)

    @classmethod
    def from_stored(cls, tenant: str, user_id: str) -> Owner:
        """Return the owner whose `user_id` graphmem has stored, a user or a space."""
        return cls(tenant, user_id, is_space=user_id.startswith(SPACE_PREFIX))

    @classmethod
    @lru_cache(maxsize=4096)
    def from_group_id(cls, group_id: str) -> Owner:
        """Return the owner that a `group_id` names."""
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
        """Return the id of this user as the author of what they write to a space; None where it is the user's own."""
        return self.user_id if group.is_space else None

    @property
    def group_id(self) -> str:
        """The `group_id` of every node and edge that this owner has in the graph."""
        return f"{self.tenant}:{self.user_id}"

    @property
    def group_key(self) -> str:
        """The `group_id` as one token for full-text indexes, whatever characters it holds."""
        return group_key(self.group_id)

    @property
    def entity_name(self) -> str:
        """The name of the entity that the owner's memories are about when they name no subject."""
        return self.space or self.user_id or GLOBAL_SUBJECT_NAME

    @property
    def tenant_global(self) -> Owner:
        """The owner of the memories that every user of the tenant reads."""
        return Owner(self.tenant, "")


def make_owner(tenant: str, user_id: str) -> Owner:
    """Return the owner for a user id that a caller gave; raise InvalidInput for an unusable one."""
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
    """Return the key of a message, which tells messages of several groups apart, as the fragment of its name does.

    It is the id, in a space with the group before it, because ids are unique in a group only.
    """
    return f"{group_id}\0{message_id}" if Owner.from_group_id(group_id).is_space else message_id


def split_message_key(key: str) -> tuple[str, str]:
    """Return the group id of a space, empty for other messages, and the id of the message."""
    group_id, _, message_id = key.rpartition("\0")
    return group_id, message_id


MessageName = tuple[str | None, str]
"""The space of a message, None for one that is in no space, and its id."""


def message_name(key: str) -> MessageName:
    """Return the name of the message that has a key."""
    group_id, message_id = split_message_key(key)
    return (Owner.from_group_id(group_id).space if group_id else None), message_id


def message_ids_of(keys: Iterable[str]) -> list[str]:
    """Return the ids of messages, each once; several keys may have the same one."""
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
"""Characters of a tenant's instructions at most; every prompt of extraction and consolidation shows them."""


class InstructionsIn(RequestBody):
    """The instructions to set; an empty text removes them."""

    text: StorableText = Field(max_length=MAX_INSTRUCTIONS_LENGTH)


class Instructions(BaseModel):
    """The instructions of a tenant, with who set them and when; empty where there are none."""

    text: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None
