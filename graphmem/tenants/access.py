"""API keys and tokens: their holders, permissions and accessible users."""

from __future__ import annotations

import hmac
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from graphmem.runtime.errors import Forbidden, Unauthenticated
from graphmem.runtime.field_types import Id, NonBlankText, UserId, check_printable, deduplicate
from graphmem.runtime.times import MIN_TIME
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import StatedKind

MAX_SHOWN_CHARACTERS = 60
"""Characters of a user's id that an error quotes."""

MAX_SHOWN_USERS = 3
"""Maximum number of a key's users named in an error."""


def _check_user_ids(users: list[str]) -> list[str]:
    if any(user != user.strip() for user in users):
        raise ValueError("a user id must not be empty or have space around it")
    return deduplicate(users)


class KeyRole(StrEnum):
    """The permissions of a key: an agent reads and writes, an analyst reads, an admin does everything in its tenant."""

    AGENT = "agent"
    ANALYST = "analyst"
    ADMIN = "admin"


class ApiKeyIn(RequestBody):
    """A key to create; without `users`, it has access to every user of its tenant.

    `spaces` limits which of its users' spaces it reads and writes. What it saves has the source `source_kind`, and
    nothing that it sends is trusted more than that.
    """

    name: Annotated[NonBlankText, Field(max_length=100), AfterValidator(check_printable)]
    role: KeyRole
    users: Annotated[list[UserId], Field(min_length=1, max_length=1000), AfterValidator(_check_user_ids)] | None = None
    spaces: Annotated[list[Id], Field(max_length=1000), AfterValidator(deduplicate)] | None = None
    source_kind: StatedKind = Field("user", description="Source of what the key saves.")

    @model_validator(mode="after")
    def _reject_bindings_for_admin(self) -> Self:
        if self.role is KeyRole.ADMIN and not self.users is self.spaces is None:
            raise ValueError("an admin key gives access to its whole tenant: leave users and spaces out")
        return self


class ApiKey(BaseModel):
    """A key without its secret; `tenant` owns it and is not serialised."""

    id: str
    name: str
    role: KeyRole
    users: list[str] | None
    spaces: list[str] | None = Field(None, exclude_if=lambda spaces: spaces is None)
    source_kind: StatedKind = Field(
        "user", exclude_if=lambda kind: kind == "user", description="Source of what the key saves."
    )
    created_at: datetime
    tenant: str = Field("", exclude=True)
    is_local: bool = Field(False, exclude=True)
    """Whether it represents a local caller, who may administer every tenant."""

    @property
    def changes_as(self) -> StatedKind | None:
        """The source of the caller's changes to memories; None for an admin, who may change all memories."""
        return None if self.is_admin else self.source_kind

    @property
    def is_admin(self) -> bool:
        """Whether the key may administer its tenant."""
        return self.role is KeyRole.ADMIN

    @property
    def can_write(self) -> bool:
        """Whether the key may change data; counting a retrieval is a change too."""
        return self.role is not KeyRole.ANALYST

    def can_access(self, user_id: str | None) -> bool:
        """Return whether the key gives access to a user, or, for None, to the whole tenant."""
        return self.users is None or user_id in self.users

    def require_access(self, user_id: str) -> None:
        """Raise Forbidden if the key has no access to a user, whether or not that user exists."""
        if self.can_access(user_id):
            return
        users = [repr(user) for user in self.users or ()]
        bound = ", ".join([*users[:MAX_SHOWN_USERS], *(["…"] if len(users) > MAX_SHOWN_USERS else [])])
        named = user_id if len(user_id) <= MAX_SHOWN_CHARACTERS else f"{user_id[:MAX_SHOWN_CHARACTERS]}…"
        is_tenant = " That is the tenant, which the key names by itself." if user_id == self.tenant else ""
        raise Forbidden(
            f"This key has no access to the user {named!a}: it is bound to {bound or 'no user'}.{is_tenant}"
        )

    def can_reach(self, space: str) -> bool:
        """Return whether a member may use a space with the key: it is bound to this space or to none."""
        return self.spaces is None or space in self.spaces


class CreatedApiKey(ApiKey):
    """A key with its secret, which is returned only once."""

    key: str


KEY_PREFIX = "gm_"
"""The prefix of every API key."""

KEY_CHARS = 43
"""Characters of an API key after its prefix: 32 random bytes in base64."""

KEY_PATTERN = re.compile(rf"(?<![A-Za-z0-9]){KEY_PREFIX}[A-Za-z0-9_-]{{20,}}")
"""Matches an API key in a text."""

COMMAND_LINE = "cli"
"""Actor of commands: the id of their key."""

LIBRARY = "python"
"""Default actor of a program that uses graphmem in its own process."""


def parse_bearer_token(authorization: str | None) -> str:
    """Return the token of an `Authorization` header; raise Unauthenticated if there is none."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Send an API key as `Authorization: Bearer <key>`.")
    return token.strip()


def make_local_token(secret: str, tenant: str) -> str:
    """Return the bearer token for a tenant; `secret` is the server's, which contains no dot."""
    return f"{secret}.{tenant}"


def authenticate_local_token(token: str, secret: str) -> ApiKey | None:
    """Return an admin key of the tenant named in a token, or None if its secret does not match."""
    given, _, tenant = token.partition(".")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode()):
        return None
    return make_local_key(COMMAND_LINE, tenant)


def make_local_agent_key(actor: str, owner: Owner, source_kind: StatedKind = "user") -> ApiKey:
    """Return the key of a local agent that is bound to a user; its memories have the source `source_kind`."""
    return ApiKey(
        id=actor,
        name=actor,
        role=KeyRole.AGENT,
        users=[owner.user_id],
        source_kind=source_kind,
        created_at=MIN_TIME,
        tenant=owner.tenant,
    )


def make_local_key(actor: str, tenant: str) -> ApiKey:
    """Return the admin key of a local caller; its id is the actor.

    Raises InvalidInput for an invalid tenant name.
    """
    return ApiKey(
        id=actor,
        name=actor,
        role=KeyRole.ADMIN,
        users=None,
        created_at=MIN_TIME,
        tenant=Owner(tenant, "").tenant,
        is_local=True,
    )
