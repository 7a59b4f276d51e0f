"""Who calls, and how far the call may reach."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from fastapi import Depends, Request

from graphmem.domain.identity import Owner, owner_of
from graphmem.domain.key import Key, Role
from graphmem.errors import Forbidden, Unauthenticated


class Demand(Enum):
    """What a route asks of a key."""

    READ = frozenset(Role)
    WRITE = frozenset({Role.AGENT, Role.ADMIN})
    ADMIN = frozenset({Role.ADMIN})


async def admit(request: Request, demand: Demand) -> Key:
    """Return the key of a request after checking how often it asks, its role and the user in its path."""
    caller: Key = await request.app.state.memory.keys.authenticate(_bearer(request))
    request.state.caller = caller
    await request.app.state.rate.count(caller)
    if caller.role not in demand.value:
        raise Forbidden(f"A key of role {caller.role.value} may not do this.")
    if "user_id" in request.path_params:
        require_user(caller, request.path_params["user_id"])
    return caller


def require_user(caller: Key, user_id: str | None) -> None:
    """Raise Forbidden when a user is out of the key's reach, whether there is such a user or not."""
    if not caller.reaches(user_id):
        raise Forbidden("The user is out of this key's reach.")


def require_admin(caller: Key, what: str) -> None:
    """Raise Forbidden for anyone but an admin; `what` is the deed, as the subject of a sentence."""
    if not caller.is_admin:
        raise Forbidden(f"{what} takes a key of role admin.")


def _bearer(request: Request) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("Send a key as `Authorization: Bearer <key>`.")
    return secret.strip()


def _caller(request: Request) -> Key:
    caller: Key = request.state.caller
    return caller


def _owner(request: Request) -> Owner:
    return owner_of(_caller(request).tenant, request.path_params["user_id"])


Caller = Annotated[Key, Depends(_caller)]
"""The key of the request, admitted already."""

OwnerInPath = Annotated[Owner, Depends(_owner)]
"""The user named in the path, within the caller's tenant."""
