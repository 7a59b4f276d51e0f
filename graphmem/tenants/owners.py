"""Tenants and users: which memories belong to whom."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import StorableText, check_normalised_length
from graphmem.runtime.paging import PageQuery

DEFAULT_TENANT = "default"
"""The tenant of callers that name none."""

MAX_USER_ID_LENGTH = 255
"""Longest user id, in characters."""

GLOBAL_SUBJECT_NAME = "everyone"
"""Name of the entity that a global memory is about when it names no subject."""

_TENANT_PATTERN = re.compile(r"^[a-z0-9][a-z0-9_-]{0,62}$")


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a tenant; with an empty `user_id`, the tenant itself, which owns the global memories.

    Raises InvalidInput when the tenant or the user id has characters that are not allowed.
    """

    tenant: str
    user_id: str

    def __post_init__(self) -> None:
        if not _TENANT_PATTERN.match(self.tenant):
            raise InvalidInput("A tenant is named with a-z, 0-9, '-' and '_', up to 63 characters.")
        if len(self.user_id) > MAX_USER_ID_LENGTH or "\x00" in self.user_id or self.user_id != self.user_id.strip():
            raise InvalidInput(f"A user id has 1 to {MAX_USER_ID_LENGTH} characters and no space around it.")
        try:
            self.user_id.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput("A user id must be text that UTF-8 can encode.") from error
        try:  # it is also the name of the entity that stands for the user
            check_normalised_length(self.user_id, MAX_USER_ID_LENGTH)
        except ValueError as error:
            raise InvalidInput(f"A user id {error}.") from None

    @classmethod
    @lru_cache(maxsize=4096)
    def from_group_id(cls, group_id: str) -> Owner:
        """Return the owner that a `group_id` names."""
        tenant, _, user_id = group_id.partition(":")
        return cls(tenant, user_id)

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
        return self.user_id or GLOBAL_SUBJECT_NAME

    @property
    def tenant_global(self) -> Owner:
        """The owner of the memories that every user of the tenant reads."""
        return Owner(self.tenant, "")

    @property
    def readable_group_ids(self) -> list[str]:
        """The group ids that this owner reads: its own and the tenant's global one."""
        return list(dict.fromkeys([self.group_id, self.tenant_global.group_id]))

    @property
    def readable_group_keys(self) -> list[str]:
        """The group keys that this owner reads."""
        return [group_key(group_id) for group_id in self.readable_group_ids]


def make_owner(tenant: str, user_id: str) -> Owner:
    """Return the owner for a user id that a caller gave; raise InvalidInput for an unusable one."""
    if not user_id.strip():
        raise InvalidInput("A user id must not be empty.")
    return Owner(tenant, user_id)


def group_key(group_id: str) -> str:
    """Return a `group_id` as one token of letters and digits: `g` and 96 bits of its SHA-256 in hex."""
    return "g" + hashlib.sha256(group_id.encode()).hexdigest()[:24]


class UserSummary(BaseModel):
    """A user: since when they are known, when something last changed, and how much is stored."""

    user_id: str
    created_at: datetime | None = Field(None, description="Time of the first write.")
    last_write_at: datetime | None = Field(None, description="Time of the latest write; null: no memory was written.")
    memory_count: int = Field(description="Number of current memories.")
    session_count: int = Field(description="Number of sessions.")


class UserListQuery(PageQuery):
    """Which users to list."""

    query: str | None = Field(None, max_length=255, description="Part of a user id, in any case.")


MAX_INSTRUCTIONS_LENGTH = 2000
"""Characters of a tenant's instructions at most; every prompt of extraction and consolidation shows them."""


class InstructionsIn(BaseModel):
    """The instructions to set; an empty text removes them."""

    model_config = ConfigDict(extra="forbid")

    text: StorableText = Field(max_length=MAX_INSTRUCTIONS_LENGTH)


class Instructions(BaseModel):
    """The instructions of a tenant, with who set them and when; empty where there are none."""

    text: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None
