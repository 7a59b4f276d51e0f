"""What all route modules share: the services of the process, and the prefix of a user's routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from graphmem.app.bootstrap import Services
from graphmem.tenants.idempotency import IdempotentRequest

USER_PATH = "/v1/users/{user_id:segment}"
"""Path of a user; `segment` lets an id hold any character."""


def set_idempotent_request(request: Request, idempotent: IdempotentRequest) -> None:
    """Give a route's function the idempotent request that it executes."""
    request.state.idempotent_request = idempotent


# FastAPI calls what is not a coroutine in a thread, which costs more than these do.
async def _get_idempotent_request(request: Request) -> IdempotentRequest | None:
    return getattr(request.state, "idempotent_request", None)


async def _get_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(_get_services)]
"""The services that the application was created for."""

IdempotentRequestDep = Annotated[IdempotentRequest | None, Depends(_get_idempotent_request)]
"""The request with its idempotency key; None without a key."""
