"""mem0's `Memory` and `AsyncMemory`: graphmem in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from graphmem.client import AsyncClient
from graphmem.compat.mem0.filters import ID_FIELDS, OwnerIds
from graphmem.compat.mem0.loop_thread import LoopThread
from graphmem.compat.mem0.model_settings import settings_of
from graphmem.compat.mem0.operations import UNSET, Mem0Operations

if TYPE_CHECKING:
    from graphmem.runtime.settings import Settings

T = TypeVar("T")

DEFAULT_TOP_K = 20
"""Memories that a search or a list returns unless the caller says otherwise."""

DEFAULT_THRESHOLD = 0.1
"""Least score of a result unless the caller says otherwise."""

PROCEDURAL = "procedural_memory"

_log = logging.getLogger(__name__)


class _OpenedMemory:
    """A `GraphMemory` that one task opens and closes, at the first operation and at the end."""

    def __init__(self, settings: Settings | None) -> None:
        self._settings = settings
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[AsyncClient] | None = None
        self._task: asyncio.Task[None] | None = None

    async def operations(self) -> Mem0Operations:
        """Return the operations of the memory; raise the error that prevented its opening."""
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._hold_open(self._opened))
        return Mem0Operations(await asyncio.shield(self._opened))

    def begin_closing(self) -> None:
        """Close what is open in the background."""
        self._closing.set()

    async def aclose(self) -> None:
        """Close what is open."""
        self._closing.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def _hold_open(self, opened: asyncio.Future[AsyncClient]) -> None:
        from graphmem.graph_memory import GraphMemory  # the light client has none

        try:
            async with GraphMemory.open(self._settings) as memory:
                opened.set_result(memory)
                await self._closing.wait()
        except Exception as error:
            if opened.done():
                raise
            self._opened = None  # the next operation tries again
            opened.set_exception(error)


def check_search(top_k: object, threshold: object) -> None:
    """Raise ValueError for a number of results or a score that cannot be one."""
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise ValueError(f"Invalid top_k: {top_k!r}. Must be a non-negative integer.")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise ValueError(f"Invalid threshold: {threshold!r}. Must be between 0 and 1 (inclusive).")


def read_filters(filters: Mapping[str, Any] | None, given: dict[str, Any], method: str) -> dict[str, Any]:
    """Return filters with the ids that are arguments of their own, which are taken out of `given`.

    Raises TypeError for other arguments.
    """
    ids = {name: given.pop(name) for name in ID_FIELDS if name in given}
    if given:
        raise TypeError(f"{method}() got an unexpected keyword argument {next(iter(given))!r}")
    return {**(filters or {}), **{name: id for name, id in ids.items() if id is not None}}


class AsyncMem0:
    """mem0's `AsyncMemory` over graphmem in this process, which opens at the first call.

    `config` is mem0's: its language model is used; the database, the embeddings and what is stored where are those of
    graphmem's settings.
    """

    def __init__(self, config: object = None, *, settings: Settings | None = None) -> None:
        self._memory = _OpenedMemory(settings_of(config, settings))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory with mem0's configuration."""
        return cls(config_dict)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the memory."""
        await self._memory.aclose()

    def close(self) -> None:
        """Close the memory in the background; `aclose` waits for it."""
        self._memory.begin_closing()

    async def add(
        self,
        messages: str | Mapping[str, Any] | list[Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: float | None = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Extract memories from messages, or save each message as it is unless `infer`.

        Messages of one `run_id` are a session of graphmem. Raises ValueError without any id, and NotConfigured where
        memories are to be extracted and no language model is configured.
        """
        if memory_type == PROCEDURAL:
            raise NotImplementedError("graphmem has no procedural memories: summarize a session instead.")
        if memory_type is not None:
            raise ValueError(f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.")
        if prompt is not None:
            _log.warning("`prompt` is not used: set what is to be remembered with `graphmem instructions set`")
        operations = await self._memory.operations()
        ids = OwnerIds.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        results = await operations.add(
            messages, ids, infer=infer, metadata=metadata, expiration_date=expiration_date, timestamp=timestamp
        )
        return {"results": results}

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory; None for one that is unknown or has ended."""
        return await (await self._memory.operations()).get(memory_id)

    async def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = DEFAULT_TOP_K,
        show_expired: bool = False,
        limit: int | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the memories that match, the latest first; ids may be in `filters` or arguments of their own.

        Memories that have expired are not listed, whatever `show_expired` says.
        """
        wanted = top_k if limit is None else limit
        check_search(wanted, None)
        asked = read_filters(filters, kwargs, "get_all")
        return {"results": await (await self._memory.operations()).get_all(asked, wanted)}

    async def search(
        self,
        query: str,
        *,
        top_k: int = DEFAULT_TOP_K,
        filters: dict[str, Any] | None = None,
        threshold: float | None = DEFAULT_THRESHOLD,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        limit: int | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the memories that match and answer a query; ids may be in `filters` or arguments of their own.

        Memories that have expired are not found, whatever `show_expired` says; a query names the time it is about
        itself, in the place of `reference_date`.
        """
        wanted = top_k if limit is None else limit
        check_search(wanted, threshold)
        asked = read_filters(filters, kwargs, "search")
        operations = await self._memory.operations()
        found = await operations.search(query, asked, limit=wanted, threshold=threshold, rerank=rerank, explain=explain)
        return {"results": found}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory in a new version; metadata is added to what it has. `data` is an earlier name of `text`."""
        operations = await self._memory.operations()
        await operations.update(memory_id, data if text is None else text, metadata, expiration_date)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """End a memory, whose history stays."""
        await (await self._memory.operations()).delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase everything of a user, or end the memories of a user that have the other ids too."""
        ids = OwnerIds.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        await (await self._memory.operations()).delete_all(ids)
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory's text, the oldest first."""
        return await (await self._memory.operations()).history(memory_id)

    async def reset(self) -> None:
        """Erase all users of the tenant."""
        await (await self._memory.operations()).reset()

    async def chat(self, query: str) -> None:
        """Raise NotImplementedError, as mem0 does."""
        raise NotImplementedError("Chat function not implemented yet.")


class _SharedMem0:
    """The memory of all `BlockingMem0` with the same settings, since a process runs the jobs of one memory only."""

    _open: ClassVar[dict[str, _SharedMem0]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, key: str, settings: Settings | None) -> None:
        self._key = key
        self._users = 0
        self.memory = AsyncMem0(settings=settings)
        self.thread = LoopThread(self.memory.aclose)

    @classmethod
    def join(cls, settings: Settings | None) -> _SharedMem0:
        """Return the memory with these settings, and count one more user."""
        key = "" if settings is None else settings.model_dump_json()
        with cls._lock:
            shared = cls._open.get(key) or cls._open.setdefault(key, cls(key, settings))
            shared._users += 1
            return shared

    def leave(self) -> None:
        """Count one user less; close the memory after the last."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self._open.pop(self._key, None)
        self.thread.close()


class BlockingMem0:
    """mem0's `Memory` over graphmem in this process; its database and jobs run in a thread until it is closed."""

    def __init__(self, config: object = None, *, settings: Settings | None = None) -> None:
        self._shared: _SharedMem0 | None = _SharedMem0.join(settings_of(config, settings))
        self._memory, self._thread = self._shared.memory, self._shared.thread

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory with mem0's configuration."""
        return cls(config_dict)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._shared is None:
            coroutine.close()
            raise RuntimeError("The memory is closed: make another one.")
        return self._thread.run(coroutine)

    def close(self) -> None:
        """Close the memory, unless another one with the same settings is still open."""
        if self._shared is not None:
            self._shared.leave()
        self._shared = None

    def add(
        self,
        messages: str | Mapping[str, Any] | list[Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: float | None = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Extract memories from messages, or save each message as it is unless `infer`."""
        return self._run(
            self._memory.add(
                messages,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                metadata=metadata,
                timestamp=timestamp,
                expiration_date=expiration_date,
                infer=infer,
                memory_type=memory_type,
                prompt=prompt,
            )
        )

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory; None for one that is unknown or has ended."""
        return self._run(self._memory.get(memory_id))

    def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = DEFAULT_TOP_K,
        show_expired: bool = False,
        limit: int | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the memories that match, the latest first; ids may be in `filters` or arguments of their own."""
        return self._run(
            self._memory.get_all(filters=filters, top_k=top_k, show_expired=show_expired, limit=limit, **kwargs)
        )

    def search(
        self,
        query: str,
        *,
        top_k: int = DEFAULT_TOP_K,
        filters: dict[str, Any] | None = None,
        threshold: float | None = DEFAULT_THRESHOLD,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        limit: int | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the memories that match and answer a query; ids may be in `filters` or arguments of their own."""
        return self._run(
            self._memory.search(
                query,
                top_k=top_k,
                filters=filters,
                threshold=threshold,
                rerank=rerank,
                explain=explain,
                reference_date=reference_date,
                show_expired=show_expired,
                limit=limit,
                **kwargs,
            )
        )

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory in a new version; metadata is added to what it has. `data` is an earlier name of `text`."""
        return self._run(self._memory.update(memory_id, text, metadata, expiration_date, data))

    def delete(self, memory_id: str) -> dict[str, str]:
        """End a memory, whose history stays."""
        return self._run(self._memory.delete(memory_id))

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase everything of a user, or end the memories of a user that have the other ids too."""
        return self._run(self._memory.delete_all(user_id, agent_id, run_id))

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory's text, the oldest first."""
        return self._run(self._memory.history(memory_id))

    def reset(self) -> None:
        """Erase all users of the tenant."""
        self._run(self._memory.reset())

    def chat(self, query: str) -> None:
        """Raise NotImplementedError, as mem0 does."""
        raise NotImplementedError("Chat function not implemented yet.")
