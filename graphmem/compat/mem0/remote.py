"""mem0's `MemoryClient` and `AsyncMemoryClient` over a graphmem server."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from graphmem.client import AsyncClient
from graphmem.client.async_client import DEFAULT_SERVER_URL
from graphmem.compat.mem0.operations import DEFAULT_THRESHOLD, UNSET, LoopThread, Mem0Operations, check_search
from graphmem.compat.mem0.shapes import ID_FIELDS, OwnerIds, split_owner
from graphmem.runtime.errors import NotFound

DEFAULT_TOP_K = 10
"""Default number of search results."""

DEFAULT_PAGE_SIZE = 100
"""Default page size."""

KEY_VARIABLES = ("MEM0_API_KEY", "GRAPHMEM_API_KEY")
"""Environment variables with the key of a graphmem server."""

EVERY = "*"
"""The id that means all of its kind in `delete_all`."""

URL_VARIABLE = "GRAPHMEM_URL"
"""The environment variable with the server's address."""

Result = dict[str, Any]

_log = logging.getLogger(__name__)


class AsyncMem0Client:
    """mem0's `AsyncMemoryClient` over a graphmem server at `host` or `GRAPHMEM_URL`.

    The graphmem key is `api_key`, `MEM0_API_KEY` or `GRAPHMEM_API_KEY`; erasing users requires an admin's key.
    """

    def __init__(self, api_key: str | None = None, host: str | None = None, client: object = None) -> None:
        key = api_key or next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
        if not key:
            raise ValueError("Mem0 API Key not provided. Please provide an API Key: a key of graphmem.")
        if client is not None:
            _log.warning("`client` is not used: graphmem's client makes its own connections")
        self.api_key = key
        self.host = host or os.environ.get(URL_VARIABLE) or DEFAULT_SERVER_URL
        self._client = AsyncClient(key, self.host)
        self._operations = Mem0Operations(self._client)
        self.project = AsyncMem0Project(self._operations)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def add(self, messages: str | Mapping[str, Any] | list[Any], options: object = None, **kwargs: Any) -> Result:
        """Extract memories from messages and wait for them, or with `infer=False` save each message.

        Pass ids in `filters` or as arguments.
        """
        given = _merge_options(options, kwargs)
        ids = OwnerIds.of({**(given.get("filters") or {}), **given})
        results = await self._operations.add(
            messages,
            ids,
            infer=given.get("infer") is not False,
            metadata=given.get("metadata"),
            expiration_date=given.get("expiration_date"),
            timestamp=given.get("timestamp"),
            immutable=bool(given.get("immutable")),
        )
        return {"results": results}

    async def get(self, memory_id: str) -> Result:
        """Return a memory; raise NotFound if it is unknown or has ended."""
        item = await self._operations.get(memory_id)
        if item is None:
            raise NotFound("There is no such memory.")
        return item

    async def get_all(self, options: object = None, **kwargs: Any) -> Any:
        """Return a page of the memories that match, latest first.

        With ids as arguments instead of `filters`, as in an earlier version, the result is a list: of all matches, of
        the given page, or of the latest `limit`. Raises ValueError for a page or a page size below 1.
        """
        given = _merge_options(options, kwargs)
        filters, in_earlier_form = _read_filters(given)
        limit = given.get("limit", given.get("top_k"))
        if limit is not None:
            check_search(limit, None)
        found = await self._operations.get_all(filters, limit)
        page, size = _read_page(given)
        start = (page - 1) * size
        if in_earlier_form:
            return found[start : start + size] if "page" in given or "page_size" in given else found
        has_next = start + size < len(found)
        return {
            "count": len(found),
            "next": f"?page={page + 1}&page_size={size}" if has_next else None,
            "previous": f"?page={page - 1}&page_size={size}" if page > 1 else None,
            "results": found[start : start + size],
        }

    async def search(self, query: str, options: object = None, **kwargs: Any) -> Any:
        """Return the memories that match and answer a query, best first.

        Scores differ from mem0's: relevant memories have 0.5 or more, and the right one for a vague question may have
        less than 0.1. A `threshold` of 0.1 or less therefore excludes nothing. `rerank=True` raises InvalidInput unless
        the server has a cross-encoder.

        With ids as arguments instead of `filters`, as in an earlier version, the result is a list.
        """
        given = _merge_options(options, kwargs)
        filters, in_earlier_form = _read_filters(given)
        limit = given.get("top_k", given.get("limit"))
        limit = DEFAULT_TOP_K if limit is None else limit
        threshold = given.get("threshold")
        threshold = DEFAULT_THRESHOLD if threshold is None else threshold
        check_search(limit, threshold)
        found = await self._operations.search(
            query, filters, limit=limit, threshold=threshold, rerank=bool(given.get("rerank"))
        )
        return found if in_earlier_form else {"results": found}

    async def update(self, memory_id: str, options: object = None, **kwargs: Any) -> Result:
        """Change a memory in a new version, and return it; given metadata is added."""
        given = _merge_options(options, kwargs)
        return await self._operations.update(
            memory_id, given.get("text"), given.get("metadata"), given.get("expiration_date", UNSET)
        )

    async def delete(self, memory_id: str, delete_linked: bool = False) -> Result:
        """End a memory; its history stays, and memories it replaced stay ended whatever `delete_linked` says."""
        await self._operations.delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(self, options: object = None, **kwargs: Any) -> Result:
        """Erase all data of a user, or end the user's memories that have the other given ids; `*` means every user."""
        given = _merge_options(options, kwargs)
        ids = {**(given.get("filters") or {}), **given}
        kinds = [name for name in ID_FIELDS if ids.get(name) == EVERY]
        if kinds:
            await self._operations.erase_kinds(kinds)
        else:
            await self._operations.delete_all(OwnerIds.of(ids))
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[Result]:
        """Return the changes of a memory's text, oldest first."""
        return await self._operations.history(memory_id)

    async def users(self) -> Result:
        """Return the users, agents and runs that have memories."""
        owners = await self._operations.list_owners()
        return {"results": [dict(zip(("type", "name"), split_owner(owner), strict=True)) for owner in owners]}

    async def delete_users(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
    ) -> Result:
        """Erase all data of a user, an agent or a run; without arguments, of all of them."""
        ids = OwnerIds.of({"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id})
        if ids.owner:
            await self._operations.forget(ids.owner)
            return {"message": "Entity deleted successfully."}
        await self._operations.reset()
        return {"message": "All users, agents, apps and runs deleted."}

    async def reset(self) -> Result:
        """Erase all users of the tenant."""
        await self._operations.reset()
        return {"message": "Client reset successful. All users and memories deleted."}

    async def batch_update(self, memories: list[dict[str, Any]]) -> Result:
        """Change several memories, one by one."""
        for memory in memories:
            await self._operations.update(memory["memory_id"], memory.get("text"), memory.get("metadata"))
        return {"message": f"Successfully updated {len(memories)} memories"}

    async def batch_delete(self, memories: list[dict[str, Any]]) -> Result:
        """End several memories, one by one."""
        for memory in memories:
            await self._operations.delete(memory["memory_id"])
        return {"message": f"Successfully deleted {len(memories)} memories"}

    def __getattr__(self, name: str) -> NoReturn:
        _raise_missing(type(self).__name__, name)


class AsyncMem0Project:
    """A client's project, which is a graphmem tenant."""

    def __init__(self, operations: Mem0Operations) -> None:
        self._operations = operations

    async def update(self, custom_instructions: str | None = None, **others: Any) -> Result:
        """Set the tenant's instructions on what to remember (admin)."""
        if others:
            _log.warning("graphmem has no %s of a project", ", ".join(sorted(others)))
        if custom_instructions is not None:
            await self._operations.set_instructions(custom_instructions)
        return {"message": "Updated custom instructions"}


class BlockingMem0Client:
    """mem0's `MemoryClient` over a graphmem server at `host` or `GRAPHMEM_URL`.

    The graphmem key is `api_key`, `MEM0_API_KEY` or `GRAPHMEM_API_KEY`; erasing users requires an admin's key.
    """

    def __init__(self, api_key: str | None = None, host: str | None = None, client: object = None) -> None:
        self._client = AsyncMem0Client(api_key, host, client)
        self.api_key, self.host = self._client.api_key, self._client.host
        self._thread = LoopThread.of_process()
        self._thread.close_at_end(self._client.aclose)
        self.project = BlockingMem0Project(self._client.project, self._thread)

    def close(self) -> None:
        """Close the connections."""
        self._thread.close_now(self._client.aclose)

    def add(self, messages: str | Mapping[str, Any] | list[Any], options: object = None, **kwargs: Any) -> Result:
        """Extract memories from messages and wait for them, or with `infer=False` save each message."""
        return self._thread.run(self._client.add(messages, options, **kwargs))

    def get(self, memory_id: str) -> Result:
        """Return a memory; raise NotFound if it is unknown or has ended."""
        return self._thread.run(self._client.get(memory_id))

    def get_all(self, options: object = None, **kwargs: Any) -> Any:
        """Return a page of the memories that match; with ids as arguments instead of `filters`, a list of all."""
        return self._thread.run(self._client.get_all(options, **kwargs))

    def search(self, query: str, options: object = None, **kwargs: Any) -> Any:
        """Return the memories that match and answer a query; with ids as arguments instead of `filters`, as a list."""
        return self._thread.run(self._client.search(query, options, **kwargs))

    def update(self, memory_id: str, options: object = None, **kwargs: Any) -> Result:
        """Change a memory in a new version, and return it; given metadata is added."""
        return self._thread.run(self._client.update(memory_id, options, **kwargs))

    def delete(self, memory_id: str, delete_linked: bool = False) -> Result:
        """End a memory; its history stays, and memories it replaced stay ended whatever `delete_linked` says."""
        return self._thread.run(self._client.delete(memory_id, delete_linked))

    def delete_all(self, options: object = None, **kwargs: Any) -> Result:
        """Erase all data of a user, or end the user's memories that have the other given ids."""
        return self._thread.run(self._client.delete_all(options, **kwargs))

    def history(self, memory_id: str) -> list[Result]:
        """Return the changes of a memory's text, oldest first."""
        return self._thread.run(self._client.history(memory_id))

    def users(self) -> Result:
        """Return the users, agents and runs that have memories."""
        return self._thread.run(self._client.users())

    def delete_users(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
    ) -> Result:
        """Erase all data of a user, an agent or a run; without arguments, of all of them."""
        return self._thread.run(self._client.delete_users(user_id, agent_id, app_id, run_id))

    def reset(self) -> Result:
        """Erase all users of the tenant."""
        return self._thread.run(self._client.reset())

    def batch_update(self, memories: list[dict[str, Any]]) -> Result:
        """Change several memories, one by one."""
        return self._thread.run(self._client.batch_update(memories))

    def batch_delete(self, memories: list[dict[str, Any]]) -> Result:
        """End several memories, one by one."""
        return self._thread.run(self._client.batch_delete(memories))

    def __getattr__(self, name: str) -> NoReturn:
        _raise_missing(type(self).__name__, name)


class BlockingMem0Project:
    """The project of a blocking client."""

    def __init__(self, project: AsyncMem0Project, thread: LoopThread) -> None:
        self._project = project
        self._thread = thread

    def update(self, custom_instructions: str | None = None, **others: Any) -> Result:
        """Set the tenant's instructions on what to remember (admin)."""
        return self._thread.run(self._project.update(custom_instructions, **others))


_INSTEAD = {
    "generate_profile": "`graphmem profile`",
    "get_profile": "`graphmem profile`",
    "feedback": "rate a context: `POST …/context/{context_id}/feedback`",
    "create_memory_export": "`graphmem export`",
    "get_memory_export": "`graphmem export`",
    "get_summary": "`graphmem profile`",
    "get_project": "`graphmem instructions show`",
    "update_project": "`client.project.update(custom_instructions=…)`",
    "get_webhooks": "`graphmem webhooks list`",
    "create_webhook": "`graphmem webhooks add`",
    "update_webhook": "`graphmem webhooks add`",
    "delete_webhook": "`graphmem webhooks remove`",
    "chat": "`graphmem ask`",
}
"""graphmem's replacements for methods that these classes lack."""


def _raise_missing(kind: str, name: str) -> NoReturn:
    if name in _INSTEAD:
        raise NotImplementedError(f"graphmem has no {name}() in the form of mem0: use {_INSTEAD[name]}.")
    raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def _merge_options(options: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options, given as a mem0 object or a mapping, merged with the arguments of the call."""
    dump = getattr(options, "model_dump", None)
    typed = dump(exclude_unset=True) if dump else options if isinstance(options, Mapping) else {}
    return {**typed, **given}


def _read_page(given: Mapping[str, Any]) -> tuple[int, int]:
    """Return the page number and the page size of a call."""
    page, size = (given.get(name) or default for name, default in (("page", 1), ("page_size", DEFAULT_PAGE_SIZE)))
    if not (isinstance(page, int) and isinstance(size, int) and page > 0 and size > 0):
        raise ValueError(f"Invalid page {page!r} or page_size {size!r}. Must be positive integers.")
    return page, size


def _read_filters(given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the filters of a call, and whether it uses an earlier version's form, whose results are lists."""
    ids = {name: given[name] for name in ID_FIELDS if given.get(name) is not None}
    filters = {**(given.get("filters") or {}), **ids}
    if given.get("metadata"):
        filters["metadata"] = given["metadata"]
    if given.get("categories"):
        filters["categories"] = {"in": given["categories"]}
    return filters, bool(ids) and not given.get("filters") and given.get("output_format") != "v1.1"
