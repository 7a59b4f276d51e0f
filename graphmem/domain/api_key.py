"""API keys: who holds them, what they may do and whose memories they reach."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from graphmem.domain.memory import Id
from graphmem.domain.text import NonBlankText


def _distinct_users(users: list[str]) -> list[str]:
    if any(user != user.strip() for user in users):
        raise ValueError("a user id must not be empty or have space around it")
    return list(dict.fromkeys(users))


class KeyRole(StrEnum):
    """What a key may do: an agent reads and writes, an analyst reads, an admin does all in its tenant."""

    AGENT = "agent"
    ANALYST = "analyst"
    ADMIN = "admin"


class ApiKeyIn(BaseModel):
    """A key to be made; without `users` it reaches every user of its tenant."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[NonBlankText, Field(max_length=100)]
    role: KeyRole
    users: Annotated[list[Id], Field(min_length=1, max_length=1000), AfterValidator(_distinct_users)] | None = None

    @model_validator(mode="after")
    def _reject_users_for_admin(self) -> Self:
        if self.role is KeyRole.ADMIN and self.users is not None:
            raise ValueError("an admin key reaches all of its tenant: leave users out")
        return self


class ApiKey(BaseModel):
    """A key without its secret; `tenant` is the customer it belongs to and is not rendered."""

    id: str
    name: str
    role: KeyRole
    users: list[str] | None
    created_at: datetime
    tenant: str = Field(exclude=True)

    @property
    def is_admin(self) -> bool:
        """Whether the key may administer its tenant."""
        return self.role is KeyRole.ADMIN

    @property
    def can_write(self) -> bool:
        """Whether the key may change anything, were it only by counting a retrieval."""
        return self.role is not KeyRole.ANALYST

    def can_access(self, user_id: str | None) -> bool:
        """Return whether a user is in reach; None, the tenant as a whole, is so for keys without `users`."""
        return self.users is None or user_id in self.users


class CreatedApiKey(ApiKey):
    """A key with its secret, which is shown once."""

    key: str
