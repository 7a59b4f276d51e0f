"""Who calls, and how far the call may reach."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from fastapi import Depends, Request

from graphmem.domain.api_key import ApiKey, KeyRole
from graphmem.domain.identity import Owner, make_owner
from graphmem.errors import Forbidden, Unauthenticated


class Permission(Enum):
    """What a route asks of a key."""

    READ = frozenset(KeyRole)
    WRITE = frozenset({KeyRole.AGENT, KeyRole.ADMIN})
    ADMIN = frozenset({KeyRole.ADMIN})


async def authorize(request: Request, permission: Permission) -> ApiKey:
    """Return the key of a request after checking how often it asks, its role and the user in its path."""
    caller: ApiKey = await request.app.state.memory.keys.authenticate(_bearer_token(request))
    request.state.caller = caller
    await request.app.state.rate_limiter.check(caller)
    if caller.role not in permission.value:
        raise Forbidden(f"A key of role {caller.role.value} may not do this.")
    if "user_id" in request.path_params:
        require_user(caller, request.path_params["user_id"])
    return caller


def require_user(caller: ApiKey, user_id: str | None) -> None:
    """Raise Forbidden when a user is out of the key's reach, whether there is such a user or not."""
    if not caller.can_access(user_id):
        raise Forbidden("The user is out of this key's reach.")


def require_admin(caller: ApiKey, action: str) -> None:
    """Raise Forbidden for anyone but an admin; `action` is the deed, as the subject of a sentence."""
    if not caller.is_admin:
        raise Forbidden(f"{action} takes a key of role admin.")


def _bearer_token(request: Request) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("Send a key as `Authorization: Bearer <key>`.")
    return secret.strip()


def _get_caller(request: Request) -> ApiKey:
    caller: ApiKey = request.state.caller
    return caller


def _get_owner(request: Request) -> Owner:
    return make_owner(_get_caller(request).tenant, request.path_params["user_id"])


Caller = Annotated[ApiKey, Depends(_get_caller)]
"""The key of the request, admitted already."""

OwnerInPath = Annotated[Owner, Depends(_get_owner)]
"""The user named in the path, within the caller's tenant."""
