"""mem0 with its own extraction, as a compared system (package `mem0ai`, which no extra installs).

It receives two messages at a time, with their time in the metadata, and its reader receives memories with that time, as
in mem0's own evaluation on LoCoMo. Its prompts go to graphmem's extraction model through graphmem's client, its texts
to the same embedder. It stores its vectors in Qdrant files in the run folder.

The package accepts no message time: its prompt gives today as the day of the conversation, from which the model is to
resolve "yesterday". Here the prompt gives the day of the messages, which mem0's service accepts as `timestamp`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation, BenchmarkMessage, single_line
from graphmem.evaluation.compared_system import (
    CONVERSATIONS_AT_ONCE,
    MAX_HITS,
    NUMBER_BYTES,
    ExtractingSystem,
    SystemResources,
    complete_usably,
)
from graphmem.evaluation.context_lines import FoundLine, fill_context
from graphmem.evaluation.plan import MEM0
from graphmem.evaluation.run_folder import AnswerContext, StoredSize
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import ChatMessage, Completion, LanguageModel, Receipt
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.process import environment_defaults

T = TypeVar("T")

MESSAGES_PER_ADD = 2
"""Messages sent to mem0 at a time, as in its own evaluation on LoCoMo."""

OLDEST_MAJOR_VERSION = 2
"""The first major version of the package with the methods called here."""

MOST_STORED = 1_000_000
"""Most memories and entities of a conversation that are measured."""

_DAYS_OF_PROMPT = re.compile(r"(?m)^(## (?:Observation|Current) Date\n)\d{4}-\d{2}-\d{2}$")


class Mem0StatedMemory(BaseModel):
    """A memory in an answer to mem0's prompt."""

    id: str
    text: str
    attributed_to: Literal["user", "assistant"]
    linked_memory_ids: list[str] = Field(default_factory=list)


class Mem0StatedMemories(BaseModel):
    """An answer to mem0's prompt, in the form that the prompt describes."""

    memory: list[Mem0StatedMemory]


def find_mem0() -> str | None:
    """Return the installed version of mem0; None without one."""
    try:
        return version("mem0ai")
    except PackageNotFoundError:
        return None


def describe_unusable_mem0(installed: str | None) -> str | None:
    """Return why an installed version of mem0, or none, is unusable, as the end of a sentence; None if usable. Pure."""
    advice = f"run pip install 'mem0ai>={OLDEST_MAJOR_VERSION}'"
    if installed is None:
        return f"needs mem0: {advice}, in a separate environment, because it needs an older protobuf."
    if int(installed.partition(".")[0]) < OLDEST_MAJOR_VERSION:
        return f"cannot use mem0 {installed}: {advice}."
    return None


def to_mem0_messages(messages: Sequence[BenchmarkMessage]) -> list[ChatMessage]:
    """Return messages in mem0's form; those with a name begin with it."""
    return [
        {
            "role": "assistant" if message.role == "assistant" else "user",
            "content": f"{message.name}: {message.content}" if message.name else message.content,
        }
        for message in messages
    ]


def date_prompt(text: str, day: date) -> str:
    """Return a mem0 prompt with the day of its messages instead of today, which also makes it repeatable."""
    return _DAYS_OF_PROMPT.sub(rf"\g<1>{day:%Y-%m-%d}", text)


def describe_memory(text: str, timestamp: str | None) -> str:
    """Return a memory as a line with the day of its messages."""
    day = f"{timestamp[:10]}: " if timestamp else ""
    return f"- {day}{single_line(text)}"


class Mem0System:
    """mem0's `add` and `search`; each conversation has its own store, used by its own thread."""

    messages_per_add = MESSAGES_PER_ADD
    conversations_at_once = CONVERSATIONS_AT_ONCE

    def __init__(self, resources: SystemResources, model: LanguageModel) -> None:
        self._resources = resources
        self._model = model
        self._stores: dict[str, _Mem0Store] = {}

    async def add(self, conversation: BenchmarkConversation, messages: Sequence[BenchmarkMessage]) -> Receipt:
        """Store messages and extract from them; return the cost of the requests."""
        return await (await self._open_store(conversation)).add(messages)

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget: the memories found, with the days of their messages."""
        store = await self._open_store(conversation)
        started = time.perf_counter()
        found = await store.search(question.text)
        seconds = time.perf_counter() - started
        lines = []
        for memory in found:
            metadata = memory.get("metadata") or {}
            line = describe_memory(memory["memory"], metadata.get("timestamp"))
            lines.append(FoundLine(line, metadata.get("message_ids") or [], memory["id"]))
        return [fill_context(question, MEM0, budget, lines, seconds) for budget in budgets]

    async def measure(self, conversation: BenchmarkConversation) -> StoredSize:
        """Return the stored size of a conversation."""
        return await (await self._open_store(conversation)).measure()

    async def remove(self, conversations: Sequence[BenchmarkConversation]) -> None:
        """Do nothing: all data is in the run folder."""

    async def aclose(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            await store.aclose()

    async def _open_store(self, conversation: BenchmarkConversation) -> _Mem0Store:
        if conversation.id not in self._stores:
            self._stores[conversation.id] = _Mem0Store(conversation, self._resources, self._model)
        store = self._stores[conversation.id]
        await store.open()
        return store


@asynccontextmanager
async def open_mem0_system(resources: SystemResources) -> AsyncIterator[ExtractingSystem]:
    """Open mem0 with graphmem's extraction model; needs its package."""
    async with resources.open_model() as model:
        memory = Mem0System(resources, model)
        try:
            yield memory
        finally:
            await memory.aclose()


class _Mem0Store:
    """The memories of a conversation, opened and used in one thread, because Qdrant's files belong to that thread."""

    def __init__(self, conversation: BenchmarkConversation, resources: SystemResources, model: LanguageModel) -> None:
        self._conversation = conversation
        self._embedder = resources.embedder
        self._folder = resources.folder / "mem0" / hashlib.sha256(conversation.id.encode()).hexdigest()[:24]
        self._filters = {"user_id": conversation.id}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mem0")
        self._in_use = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._model = _Mem0Model(model, self._loop)
        self._vectors = _Mem0Embedder(resources.embedder, self._loop)
        self._memory: Any = None

    async def open(self) -> None:
        """Open the files, unless already open."""
        async with self._in_use:
            if self._memory is None:
                self._memory = await self._run(self._open)

    async def add(self, messages: Sequence[BenchmarkMessage]) -> Receipt:
        """Store messages and extract from them; return the cost of the requests."""
        said_at = messages[0].timestamp or datetime.now(UTC)
        metadata = {"timestamp": said_at.isoformat(), "message_ids": [message.id for message in messages]}
        self._model.begin(said_at.date())
        self._vectors.failure = None
        try:
            await self._run(
                lambda: self._memory.add(to_mem0_messages(messages), user_id=self._conversation.id, metadata=metadata)
            )
        except Exception as error:
            if isinstance(error.__cause__, GraphmemError):
                raise error.__cause__ from None
            raise
        if self._vectors.failure is not None:  # mem0 continues without the memory
            raise self._vectors.failure
        return sum(self._model.receipts, Receipt())

    async def search(self, question: str) -> list[Mapping[str, Any]]:
        """Return the memories found, best first."""
        found = await self._run(lambda: self._memory.search(question, top_k=MAX_HITS, filters=self._filters))
        results: list[Mapping[str, Any]] = found["results"]
        return results

    async def measure(self) -> StoredSize:
        """Return the stored size."""

        def list_stored(store: Any) -> list[Mapping[str, Any]]:
            rows = store.list(filters=self._filters, top_k=MOST_STORED)[0]
            return [row.payload for row in rows]

        memories = await self._run(lambda: list_stored(self._memory.vector_store))
        entities = await self._run(lambda: list_stored(self._memory.entity_store))
        stored = [*memories, *entities]
        values = json.dumps(stored, ensure_ascii=False, default=str)
        return StoredSize(
            system=MEM0,
            conversation=self._conversation.id,
            facts=len(memories),
            entities=len(entities),
            messages=0,
            size=len(values.encode()) + len(stored) * self._embedder.dimension * NUMBER_BYTES,
        )

    async def aclose(self) -> None:
        """Close the files, cancelling a pending request."""
        self._model.cancel()
        if self._memory is not None:
            await self._run(self._close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._thread, work)

    def _open(self) -> Any:
        self._folder.mkdir(parents=True, exist_ok=True)
        with environment_defaults(MEM0_TELEMETRY="False", MEM0_DIR=str(self._folder)):
            from mem0 import Memory
        logging.getLogger("mem0").setLevel(logging.CRITICAL)  # errors that it logs are also raised
        memory = Memory.from_config(_mem0_config(self._folder, self._embedder.dimension))
        memory.llm = self._model
        memory.embedding_model = self._vectors
        return memory

    def _close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


def _mem0_config(folder: Path, dimension: int) -> dict[str, Any]:
    """Return mem0's configuration; the provider clients, which it always opens, are replaced later."""
    unused = {"api_key": "unused"}
    store = {"collection_name": "memories", "path": str(folder / "qdrant"), "embedding_model_dims": dimension}
    return {
        "llm": {"provider": "openai", "config": unused},
        "embedder": {"provider": "openai", "config": unused},
        "vector_store": {"provider": "qdrant", "config": {**store, "on_disk": True}},
        "history_db_path": str(folder / "history.db"),
    }


class _Mem0Model:
    """The language model for mem0, called in the thread of a store."""

    def __init__(self, model: LanguageModel, loop: asyncio.AbstractEventLoop) -> None:
        self._model = model
        self._loop = loop
        self._day = date.min
        self._asked: Future[Completion[Mem0StatedMemories]] | None = None
        self.receipts: list[Receipt] = []

    def begin(self, day: date) -> None:
        """Start counting the cost of the next messages, said on `day`."""
        self._day = day
        self.receipts = []

    def cancel(self) -> None:
        """Cancel a pending request."""
        if self._asked is not None:
            self._asked.cancel()

    def generate_response(self, messages: Sequence[ChatMessage], **_: Any) -> str:
        """Return the answer to a prompt as JSON."""
        dated = [{**message, "content": date_prompt(message["content"], self._day)} for message in messages]
        request = complete_usably(self._model, dated, Mem0StatedMemories)
        self._asked = asyncio.run_coroutine_threadsafe(request, self._loop)
        answer = self._asked.result()
        self.receipts.append(answer.receipt)
        return answer.value.model_dump_json()


class _Mem0Embedder:
    """The embedder for mem0, called in the thread of a store."""

    def __init__(self, embedder: Embedder, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder = embedder
        self._loop = loop
        self.failure: GraphmemError | None = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text."""
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        """Return the vectors of texts."""
        asked = self._embedder.embed(list(texts), query=memory_action == "search")
        try:
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        except GraphmemError as error:
            self.failure = error
            raise
