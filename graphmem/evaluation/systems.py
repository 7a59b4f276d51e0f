"""The compared systems, which give a reader the context for a question about a stored conversation.

`CONTEXT_SYSTEMS` has those that find a context, from which a reader then answers; to add one, write a class with the
method `find` and add an entry there. `ask` answers by itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta

from graphmem.client.async_client import AsyncClient
from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation
from graphmem.evaluation.compared_system import (
    MAX_HITS,
    ContextSystem,
    OpenExtractingSystem,
    OpenSystem,
    SystemResources,
)
from graphmem.evaluation.context_lines import (
    FoundLine,
    describe_fact,
    describe_message,
    fill_context,
    find_quoted,
    make_context,
)
from graphmem.evaluation.graphiti_system import (
    GraphitiBaseline,
    describe_edges,
    open_graphiti_baseline,
    open_graphiti_system,
)
from graphmem.evaluation.mem0_system import describe_unusable_mem0, find_mem0, open_mem0_system
from graphmem.evaluation.plan import ASK, CONTEXT, FULL_CONTEXT, GRAPHITI, GRAPHITI_SEARCH, MEM0, SEARCH
from graphmem.evaluation.run_folder import AnswerContext, GivenAnswer
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import missing_modules
from graphmem.tenants.owners import Owner
from graphmem.text.token_counts import count_tokens

AFTER_THE_END = timedelta(minutes=1)
"""Time between the last message of a conversation and the question."""

NOT_KNOWN = "not known"
"""The answer of a system without one; readers use the same words."""


class GraphmemContext:
    """graphmem's `context`; a profile in it covers the messages that its sentences were derived from."""

    def __init__(self, memory: AsyncClient) -> None:
        self._memory = memory

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget, not counting the question."""
        contexts = []
        for budget in budgets:
            started = time.perf_counter()
            built = await self._memory.context(
                conversation.id, question.text, token_budget=budget + count_tokens(question.text)
            )
            seconds = time.perf_counter() - started
            cited = {memory_id for profile in built.profiles for memory_id in profile.memory_ids}
            shown = [*built.memories, *[await self._memory.memory(conversation.id, key) for key in sorted(cited)]]
            sources = (message_id for memory in shown for message_id in memory.source.message_ids)
            covered = dict.fromkeys([*sources, *find_quoted(conversation, built.preamble)])
            memories = [memory.id for memory in built.memories]
            contexts.append(make_context(question, CONTEXT, budget, built.preamble, seconds, list(covered), memories))
        return contexts


class GraphmemSearch:
    """The hits of graphmem's `search` as lines; for a user without memories, messages."""

    def __init__(self, memory: AsyncClient) -> None:
        self._memory = memory

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget."""
        started = time.perf_counter()
        found = await self._memory.search(
            conversation.id, question.text, limit=MAX_HITS, include_messages=True, reinforce=False
        )
        seconds = time.perf_counter() - started
        lines = [
            FoundLine(
                describe_fact(hit.memory.content, hit.memory.valid_at, hit.memory.invalid_at),
                hit.memory.source.message_ids,
                hit.memory.id,
            )
            for hit in found.results
        ]
        by_id = {message.id: message for message in conversation.messages}
        if not lines:
            messages = [by_id[hit.message.id] for hit in found.messages if hit.message.id in by_id]
            lines = [FoundLine(describe_message(message), [message.id]) for message in messages]
        return [fill_context(question, SEARCH, budget, lines, seconds) for budget in budgets]


class FullContext:
    """All messages of the conversation, in order, regardless of the budget."""

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return one context."""
        text = "\n".join(map(describe_message, conversation.messages))
        covered = [message.id for message in conversation.messages]
        return [make_context(question, FULL_CONTEXT, None, text, 0.0, covered, [])]


class GraphitiSearch:
    """Graphiti's search over facts extracted by graphmem, or over its episodes if there are no facts."""

    def __init__(self, resources: SystemResources, baseline: GraphitiBaseline) -> None:
        self._resources = resources
        self._baseline = baseline
        self._ids: dict[str, dict[str, str]] = {}

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget."""
        owner = Owner(self._resources.tenant, conversation.id)
        ids = await self._message_ids(owner, conversation)
        started = time.perf_counter()
        edges = await self._baseline.find_edges(owner, question.text, MAX_HITS)
        episodes = [] if edges else await self._baseline.search_episodes(owner, question.text, MAX_HITS)
        seconds = time.perf_counter() - started
        lines = describe_edges(edges, ids)
        by_id = {message.id: message for message in conversation.messages}
        lines += [FoundLine(describe_message(by_id[ids[episode]]), [ids[episode]]) for episode in episodes]
        return [fill_context(question, GRAPHITI_SEARCH, budget, lines, seconds) for budget in budgets]

    async def _message_ids(self, owner: Owner, conversation: BenchmarkConversation) -> dict[str, str]:
        """Return the ids of the messages of a conversation by the uuids of their episodes."""
        if conversation.id not in self._ids:
            rows = await self._resources.graph.fetch(
                "episodes.fetch_texts",
                group_id=owner.group_id,
                message_ids=[message.id for message in conversation.messages],
            )
            self._ids[conversation.id] = {row["uuid"]: row["message_id"] for row in rows}
        return self._ids[conversation.id]


async def ask_memory(
    memory: AsyncClient, conversation: BenchmarkConversation, question: AskedQuestion, budget: int
) -> tuple[AnswerContext, GivenAnswer]:
    """Return the answer of graphmem's `ask`, with its citations as context; the tokens are those of its prompts.

    The question is asked as of the end of the conversation, since `ask` answers as of the day of asking.
    """
    started = time.perf_counter()
    ended_at = max((message.timestamp for message in conversation.messages if message.timestamp), default=None)
    given = await memory.ask(
        conversation.id,
        question.text,
        token_budget=budget + count_tokens(question.text),
        valid_as_of=ended_at and ended_at + AFTER_THE_END,
    )
    memories = [citation.memory_id for citation in given.citations if citation.memory_id]
    stored = [await memory.memory(conversation.id, memory_id) for memory_id in dict.fromkeys(memories)]
    quoted = [citation.message_id for citation in given.citations if citation.message_id]
    covered = [*(message_id for cited in stored for message_id in cited.source.message_ids), *quoted]
    context = AnswerContext(
        question_id=question.id,
        system=ASK,
        budget=budget,
        text="\n".join(citation.quote for citation in given.citations),
        tokens=given.receipt.prompt_tokens,
        seconds=time.perf_counter() - started,
        covered=list(dict.fromkeys(covered)),
        memories=list(dict.fromkeys(memories)),
    )
    answer = GivenAnswer(
        question_id=question.id,
        system=ASK,
        budget=budget,
        answer=given.answer or NOT_KNOWN,
        receipt=given.receipt,
    )
    return context, answer


@asynccontextmanager
async def _open_graphiti_search(resources: SystemResources) -> AsyncIterator[ContextSystem]:
    async with open_graphiti_baseline(resources.settings, resources.embedder) as baseline:
        yield GraphitiSearch(resources, baseline)


EXTRACTING_SYSTEMS: Mapping[str, OpenExtractingSystem] = {GRAPHITI: open_graphiti_system, MEM0: open_mem0_system}
"""The systems with their own extraction, by name."""

CONTEXT_SYSTEMS: Mapping[str, OpenSystem] = {
    CONTEXT: lambda resources: nullcontext(GraphmemContext(resources.memory)),
    SEARCH: lambda resources: nullcontext(GraphmemSearch(resources.memory)),
    FULL_CONTEXT: lambda resources: nullcontext(FullContext()),
    GRAPHITI_SEARCH: _open_graphiti_search,
    **EXTRACTING_SYSTEMS,
}
"""The systems that find a context, by name; every run includes `context`."""

SYSTEMS = (*CONTEXT_SYSTEMS, ASK)
"""The names of all systems."""


def ensure_usable(systems: Sequence[str], *, has_model: bool) -> None:
    """Raise ConfigurationError if a system lacks its package or an extraction model."""
    if not has_model and (extracting := [system for system in systems if system in EXTRACTING_SYSTEMS]):
        raise ConfigurationError(
            f"--against {extracting[0]} needs a model to extract: set OPENAI_API_KEY or OPENAI_BASE_URL, or give "
            "--replay with the recordings of a run."
        )
    for system in {GRAPHITI, GRAPHITI_SEARCH}.intersection(systems):
        if missing := missing_modules("graphiti"):
            raise ConfigurationError(
                f"--against {system} needs {', '.join(missing)}: run pip install 'graphmem[graphiti]'."
            )
    if MEM0 in systems and (why := describe_unusable_mem0(find_mem0())):
        raise ConfigurationError(f"--against {MEM0} {why}")
