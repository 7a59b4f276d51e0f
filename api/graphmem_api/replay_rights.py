"""Rights to a response that is replayed: what is of a space is repeated only to those who may still write there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import Request

from graphmem.app.bootstrap import Services
from graphmem.runtime.errors import NotFound
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceRole, require_role


async def require_rights_to_replay(request: Request, caller: ApiKey, owner: Owner, body: Any, answer: str) -> None:
    """Raise NotFound and Forbidden as the same request would without an idempotency key.

    `owner` is the user whom the request is about, with an empty id where it is about none, `body` its JSON value, and
    `answer` the body of the first response. An erasure stays answered: what it says is that nothing is left.
    """
    services: Services = request.app.state.services
    managed = request.path_params.get("space_id")
    if managed is not None and request.method != "DELETE":
        await services.spaces.get(caller, managed)
    spaces = {*_spaces_of_request(request, body), *_spaces_of_answer(answer)}
    if owner.user_id:
        await services.rights.find_places(owner, caller, spaces, SpaceRole.WRITER)
        return
    for space in sorted(spaces):
        role = await services.spaces.find_role(caller, space)
        if role is None:
            raise NotFound("There is no such space.")
        require_role(role, SpaceRole.WRITER)


def _spaces_of_request(request: Request, body: Any) -> Iterator[str]:
    """Yield the spaces that the address and the body of a request name."""
    yield from request.query_params.getlist("space")
    if isinstance(body, dict):
        memories = body.get("memories")
        for value in (body, *(memories if isinstance(memories, list) else ())):
            yield from _space_of(value)


def _spaces_of_answer(answer: str) -> Iterator[str]:
    """Yield the spaces that a response is from: that of a memory, a job or a session, or of memories in results."""
    try:
        found = json.loads(answer)
    except ValueError:  # not every route answers JSON
        return
    if isinstance(found, dict):
        results = found.get("results")
        for value in (found, *(results if isinstance(results, list) else ())):
            yield from _space_of(value)
            if isinstance(value, dict):
                yield from _space_of(value.get("memory"))


def _space_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(space := value.get("space"), str):
        yield space
