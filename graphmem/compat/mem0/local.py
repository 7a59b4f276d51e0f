"""mem0's `Memory` and `AsyncMemory` over graphmem in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from weakref import WeakKeyDictionary

from graphmem.client import AsyncClient
from graphmem.compat.mem0.operations import DEFAULT_THRESHOLD, UNSET, LoopThread, Mem0Operations, check_search
from graphmem.compat.mem0.shapes import ID_FIELDS, OwnerIds

if TYPE_CHECKING:
    from graphmem.runtime.settings import Settings


_PROVIDERS = {"anthropic": "anthropic", "gemini": "google", "groq": "groq", "mistral": "mistral", "ollama": "ollama"}
"""graphmem's providers by their mem0 names; `openai` has no name here."""

_ADDRESSES = {
    "xai": "https://api.x.ai/v1",
    "deepseek": "https://api.deepseek.com",
    "together": "https://api.together.xyz/v1",
}
"""Base URLs of OpenAI-compatible providers."""

_KEY_VARIABLES = {"xai": "XAI_API_KEY", "deepseek": "DEEPSEEK_API_KEY", "together": "TOGETHER_API_KEY"}
"""Environment variables in which mem0 looks for the providers' keys."""


def settings_of(config: object, settings: Settings | None) -> Settings | None:
    """Return settings with the language model of a mem0 configuration; None to use the environment alone.

    Other parts of the configuration are logged as unused: graphmem has its own database and embeddings.
    """
    given = _as_mapping(config)
    ignored = sorted(name for name, value in given.items() if name not in ("llm", "version") and value is not None)
    if ignored:
        _log.warning("graphmem uses its own settings instead of mem0's %s", ", ".join(ignored))
    changes = read_model(_as_mapping(given.get("llm")))
    if not changes:
        return settings
    from graphmem.runtime.settings import Settings

    return (settings or Settings()).model_copy(update=changes)


def read_model(llm: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for a language model in mem0's form; empty for an unknown provider."""
    import os

    from pydantic import SecretStr

    provider, config = llm.get("provider"), _as_mapping(llm.get("config"))
    model = config.get("model")
    if provider is None or model is None:
        return {}
    if provider in _PROVIDERS:
        return {"llm_model": f"{_PROVIDERS[provider]}:{model}"}
    address = next((value for name, value in config.items() if name.endswith("base_url") and value), None)
    address = address or _ADDRESSES.get(provider)
    if provider != "openai" and address is None:
        _log.warning("the language model of %s is not used: set GRAPHMEM_LLM_MODEL and its key", provider)
        return {}
    key = config.get("api_key") or os.environ.get(_KEY_VARIABLES.get(provider, ""))
    return {
        "llm_model": model,
        **({"openai_base_url": address} if address else {}),
        **({"openai_api_key": SecretStr(key)} if key else {}),
    }


def _as_mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    return dump() if dump else {}


T = TypeVar("T")

DEFAULT_TOP_K = 20
"""Default number of results of a search or a list."""

PROCEDURAL = "procedural_memory"

_log = logging.getLogger(__name__)


class _OpenedMemory:
    """A `GraphMemory` opened and closed by one task and shared by all users of an event loop and settings.

    A process runs the jobs of one memory only, and programs often make a `Memory` wherever they need one.
    """

    _open: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _OpenedMemory]]] = WeakKeyDictionary()

    def __init__(self, settings: Settings | None) -> None:
        self._users = 0
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[AsyncClient] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold_open(settings))

    @classmethod
    def join(cls, settings: Settings | None) -> _OpenedMemory:
        """Return the memory with these settings in the running loop, and add a user to its count."""
        key = "" if settings is None else settings.model_dump_json()
        opened = cls._open.setdefault(asyncio.get_running_loop(), {})
        if key not in opened or opened[key].has_ended:
            opened[key] = cls(settings)
        opened[key]._users += 1
        return opened[key]

    @property
    def has_ended(self) -> bool:
        """Whether it failed to open or is being closed."""
        return self._closing.is_set() or self._task.done()

    async def operations(self) -> Mem0Operations:
        """Return the operations of the memory; raise the error with which it failed to open."""
        return Mem0Operations(await asyncio.shield(self._opened))

    def leave(self) -> None:
        """Remove a user from the count; the last one closes the memory in the background."""
        self._users -= 1
        if not self._users:
            self._closing.set()

    async def wait_closed(self) -> None:
        """Wait until the memory is closed, if its last user has left."""
        if self._closing.is_set():
            with suppress(asyncio.CancelledError):
                await self._task

    async def _hold_open(self, settings: Settings | None) -> None:
        from graphmem.graph_memory import GraphMemory  # not part of the light client

        try:
            async with GraphMemory.open(settings) as memory:
                self._opened.set_result(memory)
                await self._closing.wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)


def read_filters(filters: Mapping[str, Any] | None, given: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the filters of a call, including ids given as arguments, which are removed from `given`.

    Raises TypeError for other arguments.
    """
    ids = {name: given.pop(name) for name in ID_FIELDS if name in given}
    if given:
        raise TypeError(f"{method}() got an unexpected keyword argument {next(iter(given))!r}")
    return {**(filters or {}), **{name: id for name, id in ids.items() if id is not None}}


class AsyncMem0:
    """mem0's `AsyncMemory` over graphmem in this process, opened at the first call.

    Of mem0's `config`, the language model is used; the database, embeddings and storage follow graphmem's settings.
    """

    def __init__(self, config: object = None, *, settings: Settings | None = None) -> None:
        self._settings = settings_of(config, settings)
        self._joined: _OpenedMemory | None = None

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory for a mem0 configuration."""
        return cls(config_dict)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the memory, unless others with the same settings are open."""
        joined = self._joined
        self.close()
        if joined is not None:
            await joined.wait_closed()

    def close(self) -> None:
        """Close the memory in the background; `aclose` waits for it."""
        if self._joined is not None:
            self._joined.leave()
        self._joined = None

    async def _operations(self) -> Mem0Operations:
        if self._joined is None or self._joined.has_ended:
            self._joined = _OpenedMemory.join(self._settings)
        return await self._joined.operations()

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
        """Extract memories from messages, or save each message unless `infer`.

        Messages of one `run_id` form a graphmem session. Raises ValueError without any id, and NotConfigured for
        extraction without a language model.
        """
        if memory_type == PROCEDURAL:
            raise NotImplementedError("graphmem has no procedural memories: summarize a session instead.")
        if memory_type is not None:
            raise ValueError(f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.")
        if prompt is not None:
            _log.warning("`prompt` is not used: set what is to be remembered with `graphmem instructions set`")
        operations = await self._operations()
        ids = OwnerIds.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        results = await operations.add(
            messages, ids, infer=infer, metadata=metadata, expiration_date=expiration_date, timestamp=timestamp
        )
        return {"results": results}

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory; None if it is unknown or has ended."""
        return await (await self._operations()).get(memory_id)

    async def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = DEFAULT_TOP_K,
        show_expired: bool = False,
        limit: int | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the memories that match, latest first; pass ids in `filters` or as arguments.

        Expired memories are never listed, whatever `show_expired` says.
        """
        wanted = top_k if limit is None else limit
        check_search(wanted, None)
        asked = read_filters(filters, kwargs, "get_all")
        return {"results": await (await self._operations()).get_all(asked, wanted)}

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
        """Return the memories that match and answer a query; pass ids in `filters` or as arguments.

        Scores differ from mem0's: relevant memories have 0.5 or more, and the right one for a vague question may have
        less than 0.1. A `threshold` of 0.1 or less therefore excludes nothing. `rerank=True` raises InvalidInput unless
        GRAPHMEM_RERANK_MODEL is set.

        Expired memories are never found, whatever `show_expired` says; instead of passing `reference_date`, name the
        time in the query.
        """
        wanted = top_k if limit is None else limit
        check_search(wanted, threshold)
        asked = read_filters(filters, kwargs, "search")
        operations = await self._operations()
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
        """Change a memory in a new version; given metadata is added. `data` is an earlier name of `text`."""
        operations = await self._operations()
        await operations.update(memory_id, data if text is None else text, metadata, expiration_date)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """End a memory; its history stays."""
        await (await self._operations()).delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase all data of a user, or end the user's memories that have the other given ids."""
        ids = OwnerIds.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        await (await self._operations()).delete_all(ids)
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory's text, oldest first."""
        return await (await self._operations()).history(memory_id)

    async def reset(self) -> None:
        """Erase all users of the tenant."""
        await (await self._operations()).reset()

    async def chat(self, query: str) -> None:
        """Raise NotImplementedError, as mem0 does."""
        raise NotImplementedError("Chat function not implemented yet.")


class BlockingMem0:
    """mem0's `Memory` over graphmem in this process; until closed, a thread runs its database and jobs."""

    def __init__(self, config: object = None, *, settings: Settings | None = None) -> None:
        self._memory = AsyncMem0(config, settings=settings)
        self._thread = LoopThread.of_process()
        self._is_closed = False
        self._thread.close_at_end(self._memory.aclose)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory for a mem0 configuration."""
        return cls(config_dict)

    def close(self) -> None:
        """Close the memory, unless others with the same settings are open."""
        self._is_closed = True
        self._thread.close_now(self._memory.aclose)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            coroutine.close()
            raise RuntimeError("The memory is closed: make another one.")
        return self._thread.run(coroutine)

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
        """Extract memories from messages, or save each message unless `infer`."""
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
        """Return a memory; None if it is unknown or has ended."""
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
        """Return the memories that match, latest first; pass ids in `filters` or as arguments."""
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
        """Return the memories that match and answer a query; pass ids in `filters` or as arguments."""
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
        """Change a memory in a new version; given metadata is added. `data` is an earlier name of `text`."""
        return self._run(self._memory.update(memory_id, text, metadata, expiration_date, data))

    def delete(self, memory_id: str) -> dict[str, str]:
        """End a memory; its history stays."""
        return self._run(self._memory.delete(memory_id))

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase all data of a user, or end the user's memories that have the other given ids."""
        return self._run(self._memory.delete_all(user_id, agent_id, run_id))

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory's text, oldest first."""
        return self._run(self._memory.history(memory_id))

    def reset(self) -> None:
        """Erase all users of the tenant."""
        self._run(self._memory.reset())

    def chat(self, query: str) -> None:
        """Raise NotImplementedError, as mem0 does."""
        raise NotImplementedError("Chat function not implemented yet.")
