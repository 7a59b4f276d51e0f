"""Questions to memory: a model answers from a context, and may ask for one more search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from graphmem.ask.models import AskRequest, AskResponse, Citation, ModelAnswer
from graphmem.ask.sources import ShownSources, Source
from graphmem.context.answer_lines import quote_line
from graphmem.context.composition import BuiltContext
from graphmem.context.conversation_summary import to_single_line
from graphmem.context.relevance import refers_to_past_session
from graphmem.context.service import ContextService
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import Message
from graphmem.ingestion.transcript import is_dialogue
from graphmem.models.language_model import CUT_OFF, LanguageModel, Prompt, Receipt, load_prompts
from graphmem.runtime.errors import ModelAnswerUnusable, NotConfigured
from graphmem.runtime.retries import DEFAULT_RETRY_AFTER_SECONDS
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, ReadScope, scope_of
from graphmem.text.token_counts import count_tokens, truncate_to_tokens

MAX_LOOKS = 2
"""Most contexts shown to the model for one question, each with one call."""

MAX_PAST_MESSAGES = 50
"""Most messages shown of an earlier session, from its beginning."""

MAX_MESSAGE_TOKENS = 100
"""Tokens shown of each message of an earlier session."""

MAX_SEARCH_LENGTH = 1_000
"""Characters read of the search that the model asks for."""


@dataclass(slots=True)
class _Inquiry:
    """The sources shown for one question and their cost so far; one context per look."""

    shown: ShownSources = field(default_factory=ShownSources)
    contexts: list[BuiltContext] = field(default_factory=list)
    receipt: Receipt = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True)
class _CheckedAnswer:
    """An answer whose citations occur in the sources shown."""

    text: str
    citations: Sequence[Citation]


class AskService:
    """Answers questions from the memory of a user."""

    def __init__(
        self, contexts: ContextService, episodes: EpisodeStore, model: LanguageModel | None, clock: Clock, zone: str
    ) -> None:
        self._contexts = contexts
        self._episodes = episodes
        self._model = model
        self._clock = clock
        self._zone = zone
        self._prompt = load_prompts()["ask"]

    @property
    def has_model(self) -> bool:
        """Whether a model is configured; questions require one."""
        return self._model is not None

    async def ask(self, reader: Reader, request: AskRequest) -> AskResponse:
        """Return the answer to a question with its citations, or that memory has none.

        If the request reinforces, the memories shown by each look count as retrieved, as for contexts. The model is not
        called without sources, or without new ones. Raises NotConfigured without a model, InvalidInput if the question
        alone exceeds the budget, ModelUnavailable if the model fails or its answer is cut off.
        """
        if self._model is None:
            raise NotConfigured(
                "Answering questions requires a language model: set GRAPHMEM_LLM_MODEL and its provider's key, or use "
                "search or context."
            )
        inquiry = _Inquiry()
        answer = await self._find_answer(reader, request, self._model, inquiry)
        if request.reinforce:
            self._contexts.record(reader, inquiry.contexts, request.session_id)
        return AskResponse(
            answer=answer.text if answer else None,
            answered=answer is not None,
            citations=list(answer.citations) if answer else [],
            context_id=inquiry.contexts[0].context.context_id,
            llm_calls=inquiry.receipt.llm_calls,
            receipt=inquiry.receipt,
        )

    async def _find_answer(
        self, reader: Reader, request: AskRequest, model: LanguageModel, inquiry: _Inquiry
    ) -> _CheckedAnswer | None:
        """Return the first answer that cites a source, in up to `MAX_LOOKS` looks; None without one."""
        scope, searched = scope_of(reader), request.question
        for look in range(1, MAX_LOOKS + 1):
            built = await self._contexts.gather(reader, request.to_context_request(searched))
            inquiry.contexts.append(built)
            before = len(inquiry.shown.sources)
            found = _shown_sources(scope, request, built)
            if look == 1:
                found += await self._load_past_session(scope.owner, request, built)
            inquiry.shown = inquiry.shown.extended(found)
            if len(inquiry.shown.sources) == before:
                return None  # the model has seen every source
            prompt = await self._render(scope.owner, request, inquiry, look, searched)
            completion = await model.complete_structured(prompt, ModelAnswer, use="main")
            inquiry.receipt += completion.receipt
            text = (completion.value.answer or "").strip()
            citations = inquiry.shown.check(completion.value.sources)
            if text and citations:
                return _CheckedAnswer(text, citations)
            searched = (completion.value.search or "").strip()[:MAX_SEARCH_LENGTH]
            if not searched and CUT_OFF in completion.value.refused:
                raise ModelAnswerUnusable(
                    "The language model's answer was cut off. Repeating the question may help.",
                    retry_after=DEFAULT_RETRY_AFTER_SECONDS,
                )
            if not searched:
                return None
        return None

    async def _load_past_session(self, owner: Owner, request: AskRequest, built: BuiltContext) -> list[Source]:
        """Return the messages of the earlier session that a question refers to, as many as fit into the budget left.

        This is the session most related to the question, else the latest. For a request as of an earlier time, nothing
        is returned: a session does not record which messages were stored by then.
        """
        if request.is_past or not refers_to_past_session(request.question):
            return []
        session_id = next((session.session_id for session in built.context.related_sessions), None)
        if session_id is None:
            latest = await self._episodes.list_sessions(owner, active=None, after=None, limit=2)
            session_id = next((item.session_id for item in latest if item.session_id != request.session_id), None)
        if session_id is None:
            return []
        messages = await self._episodes.list_session_messages(owner, session_id, limit=MAX_PAST_MESSAGES)
        left, sources = request.token_budget - built.context.token_count, list[Source]()
        for message in messages:
            if not is_dialogue(message) or not _may_be_source(message, request, built):
                continue
            line = quote_line(message, truncate_to_tokens(to_single_line(message.content), MAX_MESSAGE_TOKENS), {})
            left -= count_tokens(line.text)
            if left < 0:
                break
            sources.append(Source.of_message(message, line, owner.user_id, {}))
        return sources

    async def _render(self, owner: Owner, request: AskRequest, inquiry: _Inquiry, look: int, searched: str) -> Prompt:
        zone = ZoneInfo(await self._episodes.get_timezone(owner) or self._zone)
        today = (request.valid_as_of or self._clock()).astimezone(zone)
        return self._prompt.render(
            today=f"{today:%A, %Y-%m-%d}",
            look=look,
            looks=MAX_LOOKS,
            question=request.question,
            user_name=inquiry.contexts[0].context.personalization_hints.name or "",
            searched=searched if look > 1 else "",
            sources=inquiry.shown.render(),
        )


def _shown_sources(scope: ReadScope, request: AskRequest, built: BuiltContext) -> list[Source]:
    """Return the memories and messages that a context shows."""
    user_id, titles = scope.owner.user_id, scope.titles
    return [
        *(Source.of_memory(memory, scope.owner.entity_name, titles) for memory in built.context.memories),
        *(
            Source.of_message(shown.message, shown.line, user_id, titles)
            for shown in built.messages
            if _may_be_source(shown.message, request, built)
        ),
    ]


def _may_be_source(message: Message, request: AskRequest, built: BuiltContext) -> bool:
    """Return whether an answer may cite a message: it has no caught statements and is trusted enough."""
    order = built.trust_order
    return not message.is_caught and order.passes(order.least_trusted(message.stated_by), request.min_trust)
