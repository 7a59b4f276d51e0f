"""Tokens of requests: the bearer token of HTTP, and the one of this machine's user."""

from __future__ import annotations

import hmac
import re

from graphmem.runtime.errors import Unauthenticated
from graphmem.runtime.times import MIN_TIME
from graphmem.tenants.access import ApiKey, KeyRole
from graphmem.tenants.owners import Owner

KEY_PREFIX = "gm_"
"""What every API key begins with."""

KEY_PATTERN = re.compile(rf"(?<![A-Za-z0-9]){KEY_PREFIX}[A-Za-z0-9_-]{{20,}}")
"""An API key in a text."""

COMMAND_LINE = "cli"
"""Who commands act as: the id of their key."""

LIBRARY = "python"
"""Who a program acts as that uses graphmem in its own process and names no other actor."""


def parse_bearer_token(authorization: str | None) -> str:
    """Return the token of an `Authorization` header; raise Unauthenticated when it has none."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Send an API key as `Authorization: Bearer <key>`.")
    return token.strip()


def make_local_token(secret: str, tenant: str) -> str:
    """Return the bearer token for a tenant; the secret is that of the server, which has no dot."""
    return f"{secret}.{tenant}"


def authenticate_local_token(token: str, secret: str) -> ApiKey | None:
    """Return an admin key of the tenant that a token names, or None when its secret is another one."""
    given, _, tenant = token.partition(".")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode()):
        return None
    return make_local_key(COMMAND_LINE, tenant)


def make_local_key(actor: str, tenant: str) -> ApiKey:
    """Return the admin key that a caller on this machine has; its id says who acts.

    Raises InvalidInput for a tenant that cannot be one.
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
