"""What happens to a request before its route sees it: admitted, bounded, read strictly, answered once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from graphmem.domain.identity import Owner
from graphmem.domain.key import Key
from graphmem.errors import InvalidInput
from graphmem.store.idempotency import IdempotentRequest
from graphmem.store.rows import group_key
from graphmem_api.auth import Demand, admit
from graphmem_api.bodies import CheckedRequest
from graphmem_api.idempotency import HEADER, FirstAnswers, fingerprint, read_key
from graphmem_api.openapi import documented
from graphmem_api.problems import answer_to

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Guarded(APIRoute):
    """A route behind a key. Subclasses say what it demands and whether it writes."""

    demand: ClassVar[Demand] = Demand.READ
    writes: ClassVar[bool] = False
    sealed: ClassVar[bool] = False
    of_tenant: ClassVar[bool] = False

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **documented(path, options, writes=self.writes))

    def get_route_handler(self) -> Handler:
        """Return the handler that guards the one FastAPI makes."""
        handle = super().get_route_handler()

        async def guarded(plain: Request) -> Response:
            request = CheckedRequest(plain.scope, plain.receive)
            request.any_text = not self.writes
            caller = await admit(request, self.demand)
            value = await self._read(request)
            key = read_key(request) if self.writes else None
            if key is None:
                return await handle(request)
            return await self._once(request, caller, key, value, handle)

        return guarded

    async def _read(self, request: CheckedRequest) -> Any:
        """Return the body's value, where the route takes JSON, else its text."""
        body = await request.body()
        if self.body_field is None:
            return body.decode("latin-1")
        if not body:
            return None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise InvalidInput(
                "Send the body as `Content-Type: application/json`.",
                errors=[{"loc": ["header", "Content-Type"], "msg": "must be application/json"}],
            )
        return await request.json()

    async def _once(self, request: Request, caller: Key, key: str, value: Any, handle: Handler) -> Response:
        user_id = None if self.of_tenant else _user_id(request, value)
        owner = Owner(caller.tenant, user_id or "")
        in_path = request.path_params.get("user_id")
        record = IdempotentRequest(
            owner=owner,
            route=f"{request.method} {self.path_format}" + (f" {group_key(in_path)}" if in_path else ""),
            key=key,
            fingerprint=fingerprint(request, f"{caller.role.value} {caller.users}", value),
            quotes=not self.of_tenant,
        )
        secret = request.headers["authorization"] if self.sealed else None
        answers = FirstAnswers(request.app.state.memory.idempotency, secret)
        return await answers.answer(record, lambda: _settled(request, handle))


async def _settled(request: Request, handle: Handler) -> Response:
    """Return the answer of a route with its refusals as answers too, since they are replayed as well."""
    try:
        return await handle(request)
    except Exception as error:
        return answer_to(request, error)


def _user_id(request: Request, value: Any) -> str | None:
    """Return whose data a request is about: the user in its path, else the one its body names."""
    in_path: str | None = request.path_params.get("user_id")
    if in_path is not None or not isinstance(value, dict):
        return in_path
    named = value.get("userId", value.get("user_id"))
    return named if isinstance(named, str) else None


class Reading(Guarded):
    """Reads a user's data, by GET or by a POST that asks a question."""


class Writing(Guarded):
    """Changes a user's data."""

    demand, writes = Demand.WRITE, True


class AdminReading(Guarded):
    """Reads what only admins see."""

    demand = Demand.ADMIN


class AdminWriting(Guarded):
    """Changes what only admins may."""

    demand, writes = Demand.ADMIN, True


class Forgetting(AdminWriting):
    """Erases a user; its record is the tenant's own, or it would be erased with the user."""

    of_tenant = True


class KeyWriting(AdminWriting):
    """Makes or revokes keys; a secret in the answer is kept only under the seal of its caller's key."""

    sealed, of_tenant = True, True


__all__ = ["HEADER", "AdminReading", "AdminWriting", "Forgetting", "Guarded", "KeyWriting", "Reading", "Writing"]
