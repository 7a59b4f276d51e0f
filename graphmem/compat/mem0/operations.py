"""mem0's operations over a graphmem client, shared by all four classes."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - its hook for the end of a program must be registered before ours
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from graphmem.client import AsyncClient
from graphmem.client.inputs import read_refusals, read_saves
from graphmem.compat.mem0.shapes import (
    LABELS,
    Filters,
    OwnerIds,
    find_owners,
    is_plain,
    make_history,
    make_id,
    make_item,
    matches,
    parse_expiration,
    parse_id,
    parse_messages,
    plain_metadata,
    split_owner,
    spoken_messages,
)
from graphmem.integrations.agent_memory import add_each, require_stored
from graphmem.jobs.job import Job
from graphmem.memories.memory import Memory, MemoryStatus, SaveAction, SaveResult
from graphmem.runtime.errors import NotConfigured, NotFound

MAX_SEARCHED = 100
"""Most memories of a user read by a search whose filter has conditions that the server cannot check."""

DEFAULT_THRESHOLD = 0.1
"""mem0's default threshold, which excludes hardly anything there; up to it, nothing is excluded here."""

NO_MODEL = "no language model is configured"
"""The reason of an extraction without a model."""

UNSET: Any = object()
"""The default of arguments for which None has a meaning."""

_log = logging.getLogger(__name__)


def check_search(top_k: object, threshold: object) -> None:
    """Raise ValueError for an invalid number of results or threshold."""
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise ValueError(f"Invalid top_k: {top_k!r}. Must be a non-negative integer.")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise ValueError(f"Invalid threshold: {threshold!r}. Must be between 0 and 1 (inclusive).")


class Mem0Operations:
    """mem0's methods with its result shapes. They raise ValueError where mem0 does."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def add(
        self,
        messages: object,
        ids: OwnerIds,
        *,
        infer: bool = True,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = None,
        timestamp: float | None = None,
        immutable: bool = False,
    ) -> list[dict[str, Any]]:
        """Extract memories from messages, or save each message unless `infer`; return the added and deleted memories.

        Raises NotConfigured for extraction without a language model, and NotImplementedError for immutable extracted
        memories.
        """
        if infer and immutable:
            raise NotImplementedError("Extracted memories cannot be immutable: save statements with infer=False.")
        owner = ids.owner
        if owner is None:
            raise ValueError("At least one of 'user_id', 'agent_id', 'run_id' or 'app_id' must be provided.")
        given = parse_messages(messages)
        spoken = spoken_messages(given)
        if len(spoken) < len(given):
            _log.info("%d messages are system prompts or have no text, and are left out", len(given) - len(spoken))
        said_at = {} if timestamp is None else {"timestamp": timestamp}
        fields = {
            "metadata": {**(metadata or {}), **ids.labels, **({} if infer else said_at)},
            "expires_at": parse_expiration(expiration_date),
        }
        if not spoken:
            return []
        if not infer:
            return await self._save(owner, spoken, {**fields, "immutable": immutable})
        defaults = {name: value for name, value in fields.items() if value}
        turns = [{**message, **said_at, **({"memories": defaults} if defaults else {})} for message in spoken]
        job = await self._client.add_messages(owner, turns, session_id=ids.run_id, wait=True)
        if not isinstance(job, Job):
            return []  # the messages are already stored
        if not job.status.is_final:
            reason = (job.reason or "the extraction has not ended").rstrip(".")
            message = f"The memories are extracted later: {reason}."
            _log.warning("%s Follow it with client.job(%r) of graphmem.", message, job.id)
            return [{"event": "PENDING", "status": "PENDING", "event_id": job.id, "message": message}]
        saves = [*read_saves(job)]
        self._note_refusals(read_refusals(job, is_empty=not saves))
        return [
            event
            for action, memory_id, superseded in saves
            if action is not SaveAction.REINFORCE
            for event in await self._describe_saved(owner, memory_id, superseded)
        ]

    async def _save(
        self, owner: str, messages: list[dict[str, Any]], fields: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        statements = [
            {
                "content": message["content"],
                "metadata": {
                    **fields["metadata"],
                    "role": message["role"],
                    **({"actor_id": message["name"]} if "name" in message else {}),
                },
                "expires_at": fields["expires_at"],
                "immutable": fields["immutable"],
            }
            for message in messages
        ]
        results = await add_each(self._client, owner, statements)
        require_stored(results)
        return [
            {
                "id": make_id(owner, result.memory.id),
                "memory": result.memory.content,
                "event": "NONE" if result.action is SaveAction.REINFORCE else "ADD",
                "actor_id": message.get("name"),
                "role": message["role"],
            }
            for message, result in zip(messages, results, strict=True)
            if result.memory
        ]

    async def _describe_saved(self, owner: str, memory_id: str, superseded: list[str]) -> list[dict[str, Any]]:
        """Return the events of an extracted memory and the memories that it ended."""
        memory = await self._client.memory(owner, memory_id)
        ended = [await self._client.memory(owner, ended_id) for ended_id in superseded]
        return [
            {"id": make_id(owner, memory.id), "memory": memory.content, "event": "ADD"},
            *({"id": make_id(owner, old.id), "memory": old.content, "event": "DELETE"} for old in ended),
        ]

    @staticmethod
    def _note_refusals(results: list[SaveResult]) -> None:
        for reason in dict.fromkeys(result.reason for result in results if result.memory is None and result.reason):
            if NO_MODEL in reason:
                raise NotConfigured(
                    f"The messages are stored, but nothing was extracted: {reason}, or use infer=False."
                )
            _log.warning("not saved: %s", reason)

    async def get(self, memory_id: object) -> dict[str, Any] | None:
        """Return a memory; None if it is unknown or has ended."""
        owner, key = parse_id(memory_id)
        try:
            memory = await self._client.memory(owner, key)
        except NotFound:
            return None
        return make_item(owner, memory) if memory.status is MemoryStatus.ACTIVE else None

    async def get_all(self, filters: Filters, limit: int | None) -> list[dict[str, Any]]:
        """Return the current memories that match, latest first."""
        found: list[tuple[str, Memory]] = []
        for owner in find_owners(filters):
            read = limit if is_plain(filters) else None
            memories = await self._client.get_all(owner, limit=read, metadata=plain_metadata(filters))
            found += [(owner, memory) for memory in memories]
        items = [make_item(owner, memory) for owner, memory in found]
        matching = [item for item in items if matches(filters, item)]
        return sorted(matching, key=lambda item: str(item["created_at"]), reverse=True)[:limit]

    async def search(
        self,
        query: object,
        filters: Filters,
        *,
        limit: int,
        threshold: float | None,
        rerank: bool = False,
        explain: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the memories that match and answer a query, best first, with their scores."""
        if not isinstance(query, str) or not query.strip():
            raise ValueError("Invalid query: it must be a text that is not empty.")
        owners = find_owners(filters)
        if not limit:
            return []
        responses = await asyncio.gather(
            *(
                self._client.search(
                    owner,
                    query,
                    limit=min(limit, MAX_SEARCHED) if is_plain(filters) else MAX_SEARCHED,
                    min_score=threshold if threshold and threshold > DEFAULT_THRESHOLD else None,
                    metadata=plain_metadata(filters),
                    rerank=rerank,
                    explain=explain,
                )
                for owner in owners
            )
        )
        found: list[dict[str, Any]] = []
        for owner, response in zip(owners, responses, strict=True):
            for hit in response.results:
                details = {"score_details": hit.explain.model_dump(mode="json")} if hit.explain else {}
                found.append({**make_item(owner, hit.memory), "score": hit.score, **details})
        matching = [item for item in found if matches(filters, item)]
        return sorted(matching, key=lambda item: -float(item["score"]))[:limit]

    async def update(
        self,
        memory_id: object,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = UNSET,
    ) -> dict[str, Any]:
        """Change the text, add metadata, or set or remove the end of a memory; return the new version."""
        if text is None and metadata is None and expiration_date is UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")
        owner, key = parse_id(memory_id)
        memory = await self._find(owner, key)
        changes: dict[str, Any] = {} if text is None else {"content": text}
        if metadata is not None:
            fixed = {name: value for name, value in memory.metadata.items() if name in LABELS}
            changes["metadata"] = {**memory.metadata, **metadata, **fixed}
        if expiration_date is not UNSET:
            changes["expires_at"] = parse_expiration(expiration_date)
        return make_item(owner, await self._client.update(owner, key, **changes))

    async def delete(self, memory_id: object) -> None:
        """End a memory; its history stays."""
        owner, key = parse_id(memory_id)
        await self._find(owner, key)
        await self._client.delete(owner, key)

    async def _find(self, owner: str, key: str) -> Memory:
        try:
            memory = await self._client.memory(owner, key)
        except NotFound:
            memory = None
        if memory is None or memory.status is not MemoryStatus.ACTIVE:
            raise ValueError(f"Memory with id {make_id(owner, key)} not found. Please provide a valid 'memory_id'")
        return memory

    async def delete_all(self, ids: OwnerIds) -> None:
        """Erase a user, or end the user's memories that have the other given ids."""
        owner = ids.owner
        if owner is None:
            raise ValueError(
                "At least one filter is required to delete all memories. If you want to delete all memories, use the "
                "`reset()` method."
            )
        if ids.is_owner_alone:
            await self._client.forget(owner)
            return
        for memory in await self._client.get_all(owner, metadata=ids.labels):
            await self._client.delete(owner, memory.id)

    async def history(self, memory_id: object) -> list[dict[str, Any]]:
        """Return the changes of a memory's text, oldest first; empty for an unknown memory."""
        owner, key = parse_id(memory_id)
        try:
            return make_history(owner, await self._client.history(owner, key))
        except NotFound:
            return []

    async def list_owners(self) -> list[str]:
        """Return all users of the tenant."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await self._client.users(limit=200, cursor=cursor)
            found += [user.user_id for user in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def erase_kinds(self, names: Sequence[str]) -> None:
        """Erase all users that stand for a `user_id`, an `agent_id` and so on."""
        for owner in await self.list_owners():
            if f"{split_owner(owner)[0]}_id" in names:
                await self._client.forget(owner)

    async def reset(self) -> None:
        """Erase all users of the tenant."""
        for owner in await self.list_owners():
            await self._client.forget(owner)

    async def forget(self, owner: str) -> None:
        """Erase a user."""
        await self._client.forget(owner)

    async def set_instructions(self, text: str) -> None:
        """Set the tenant's instructions on what to remember."""
        await self._client.set_instructions(text)


T = TypeVar("T")


class LoopThread:
    """Runs coroutines until the program ends; resources registered with it are closed before."""

    _shared: ClassVar[LoopThread | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closes: list[Callable[[], Awaitable[None]]] = []
        threading.Thread(target=self._loop.run_forever, name="graphmem-mem0", daemon=True).start()
        # `atexit` runs when threads can no longer be started, but closing starts some.
        register = getattr(threading, "_register_atexit", None)
        if register is not None:
            register(self._end)

    @classmethod
    def of_process(cls) -> LoopThread:
        """Return this process's instance."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close_at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` when the program ends, unless `close_now` has called it."""
        self._closes.append(close)

    def close_now(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call a function passed to `close_at_end`, at most once."""
        if close in self._closes:
            self._closes.remove(close)
            self.run(_call(close))

    def _end(self) -> None:
        for close in [*self._closes]:
            self.close_now(close)
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _call(close: Callable[[], Awaitable[None]]) -> None:
    await close()
