"""Dependencies of all routes: the services of the process, the caller and its permissions, and user paths."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from ipaddress import ip_address
from typing import Annotated

from fastapi import Depends, Request

from graphmem.app.bootstrap import Services
from graphmem.neo4j.placed_graph import set_tenant
from graphmem.runtime.errors import Forbidden
from graphmem.tenants.access import ApiKey, KeyRole, authenticate_local_token, parse_bearer_token
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.trust import TEXT_OF_OTHERS

USER_PATH = "/v1/users/{user_id:segment}"
"""Path of a user; the convertor `segment` allows any character in an id."""


def set_idempotent_request(request: Request, idempotent: IdempotentRequest) -> None:
    """Give a route's function the idempotent request that it executes."""
    request.state.idempotent_request = idempotent


# FastAPI would call plain functions in a thread, which costs more than these functions do.
async def _get_idempotent_request(request: Request) -> IdempotentRequest | None:
    return getattr(request.state, "idempotent_request", None)


async def _get_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(_get_services)]
"""The services of the application."""

IdempotentRequestDep = Annotated[IdempotentRequest | None, Depends(_get_idempotent_request)]
"""The request with its idempotency key; None without a key."""


FORWARDED_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers set by proxies, whose address does not show the origin of a request."""


def authenticate_local(request: Request, token: str) -> ApiKey | None:
    """Return the key of a command on this machine; None for other tokens, and for requests from other machines."""
    secret: str | None = request.app.state.local_secret
    if secret is None or not _is_from_this_machine(request):
        return None
    return authenticate_local_token(token, secret)


def _is_from_this_machine(request: Request) -> bool:
    if request.client is None or any(header in request.headers for header in FORWARDED_HEADERS):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False


IN_PROCESS_CALLER = "graphmem.caller"
"""The scope key of the caller of a request from this process; requests from the network cannot set it."""


class Permission(Enum):
    """The roles that may call a route."""

    READ = frozenset(KeyRole)
    WRITE = frozenset({KeyRole.AGENT, KeyRole.ADMIN})
    ADMIN = frozenset({KeyRole.ADMIN})


def read_bearer_token(request: Request) -> str:
    """Return the key that a request sends as a bearer token; raise Unauthenticated without one."""
    return parse_bearer_token(request.headers.get("authorization"))


async def authorize(
    request: Request,
    permission: Permission,
    read_token: Callable[[Request], str] = read_bearer_token,
    *,
    outage_seconds: float = 0.0,
) -> ApiKey:
    """Return the key of a request after checking its rate, role and access to the user in the path.

    While the database is unavailable, a key that was valid less than `outage_seconds` ago is accepted. Raises
    Unauthenticated, RateLimited or Forbidden.
    """
    caller: ApiKey | None = request.scope.get(IN_PROCESS_CALLER)
    if caller is None:
        caller = await _authenticate(request, read_token(request), outage_seconds)
        await request.app.state.rate_limit.hit(caller.tenant, caller.id)
    request.state.caller = caller
    set_tenant(caller.tenant)
    if caller.role not in permission.value:
        permitted = " or ".join(role.value for role in KeyRole if role in permission.value)
        raise Forbidden(f"A key of role {caller.role.value} may not do this: use a key of role {permitted}.")
    if "user_id" in request.path_params:
        caller.require_access(request.path_params["user_id"])
    return caller


async def _authenticate(request: Request, token: str, outage_seconds: float) -> ApiKey:
    client = request.client.host if request.client else ""
    caller = authenticate_local(request, token)
    if caller is None:
        caller = await request.app.state.services.keys.authenticate(token, client, outage_seconds=outage_seconds)
    request.state.caller = caller  # the log names the caller even if over the rate limit
    return caller


def require_admin(caller: ApiKey, action: str) -> None:
    """Raise Forbidden unless a key is an admin's; `action` is the subject of the sentence."""
    if not caller.is_admin:
        raise Forbidden(f"{action} requires a key of role admin.")


def forbid_third_party_text(caller: ApiKey, action: str) -> None:
    """Raise Forbidden if the key sends text of third parties; `action` is the subject of the error sentence."""
    if caller.source_kind in TEXT_OF_OTHERS:
        raise Forbidden(
            f"{action} is for the user to say, and this key speaks as {caller.source_kind}: use a key of the kind user "
            "or assistant."
        )


# FastAPI would call plain functions in a thread, which costs more than these functions do.
async def _get_caller(request: Request) -> ApiKey:
    caller: ApiKey = request.state.caller
    return caller


async def _get_owner(request: Request) -> Owner:
    caller = await _get_caller(request)
    return make_owner(caller.tenant, request.path_params["user_id"])


Caller = Annotated[ApiKey, Depends(_get_caller)]
"""The key of the request, accepted by `authorize`."""

OwnerInPath = Annotated[Owner, Depends(_get_owner)]
"""The user in the path, in the caller's tenant."""
