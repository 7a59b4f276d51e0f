"""The first model call of a window: its prompt, and the candidates of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from graphmem.domain.conversation import ConversationContext
from graphmem.domain.identity import Owner
from graphmem.domain.job import Receipt
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import MessageRole
from graphmem.domain.text import name_key
from graphmem.ingestion.candidates import Rejection
from graphmem.ingestion.job_actions import shorten_reason
from graphmem.ingestion.llm_schemas import Extraction
from graphmem.ingestion.secret_redaction import Redactor, make_redactor
from graphmem.ingestion.tool_extraction import (
    UPSERT_MEMORIES_TOOL,
    convert_tool_calls,
    explain_unusable_call,
    render_history,
    render_period,
)
from graphmem.ingestion.transcript import (
    EARLIER_MESSAGES,
    MessagePart,
    TranscriptLine,
    build_transcript,
    message_ids_of,
    part_length,
    render_earlier_messages,
    render_transcript,
)
from graphmem.llm.model import LanguageModel
from graphmem.llm.prompts import PromptTemplate, indent_continuations
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore
from graphmem.store.instructions import InstructionStore
from graphmem.text_thread import read_text

MAX_KNOWN_NAMES = 80
"""Names of known entities that a prompt shows, those with most facts first."""

MAX_NOTED_INTERESTS = 50
"""Interests mentioned once that a prompt shows."""


class KnownName(BaseModel):
    """An entity that the user's facts name."""

    name: str
    type: str
    aliases: list[str]
    is_user: bool | None = None


class ExtractionStep(BaseModel):
    """The result of the first call; without an `extraction` the messages of the window are erased.

    `has_known_entities` says whether the user had any entity before, `user_names` are the user's other names.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str = ""
    lines: list[TranscriptLine] = Field(default_factory=list)
    has_known_entities: bool = True
    user_names: list[str] = Field(default_factory=list)
    extraction: Extraction | None = None
    rejections: list[Rejection] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)


class Extractor:
    """Makes the first call of a window, with a structured answer or with tool calls."""

    def __init__(
        self,
        graph: Graph,
        episodes: EpisodeStore,
        policy: SecretPolicy,
        prompts: Mapping[str, PromptTemplate],
        zone: str,
    ) -> None:
        self._graph = graph
        self._episodes = episodes
        self._policy = policy
        self._prompts = prompts
        self._zone = zone
        self._instructions = InstructionStore(graph)

    async def extract(self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel) -> ExtractionStep:
        """Ask what is worth remembering of a window, with one structured call."""
        conversation, (known, interests), instructions = await asyncio.gather(
            self._load_conversation(owner, parts),
            self._load_known_names(owner),
            self._instructions.find(owner.tenant),
        )
        if conversation is None:
            return ExtractionStep()
        redact = self._make_redactor(owner)
        lines, earlier = await self._read_conversation(conversation, parts, redact)
        user_names = collect_user_names(lines, known)
        prompt = self._prompts["extract"].render(
            known_names=_render_known_names(known, user_names, redact),
            noted_interests="\n".join(map(indent_continuations, interests)),
            earlier=earlier,
            conversation=render_transcript(lines),
            custom_instructions=instructions.text,
        )
        answer = await model.complete_structured(prompt, Extraction, use="gate")
        reason = shorten_reason(redact(answer.value.reason))
        return ExtractionStep(
            session_id=conversation.messages[0].session_id,
            lines=lines,
            has_known_entities=bool(known),
            user_names=user_names,
            extraction=answer.value.model_copy(update={"reason": reason}),
            receipt=answer.receipt,
        )

    async def extract_with_tools(
        self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel
    ) -> ExtractionStep:
        """Let the model save what is worth remembering with the tool `upsert_memories`, in one call.

        A model whose calls do not fit the tool is told once, and may correct them.
        """
        conversation, (known, _), instructions = await asyncio.gather(
            self._load_conversation(owner, parts),
            self._load_known_names(owner),
            self._instructions.find(owner.tenant),
        )
        if conversation is None:
            return ExtractionStep()
        redact = self._make_redactor(owner)
        lines, _ = await self._read_conversation(conversation, parts, redact)
        prompt = self._prompts["tool_extraction"].render(
            conversation_history=render_history(lines),
            period=render_period(lines),
            custom_instructions=instructions.text,
        )
        answer = await model.call_tools(prompt, [UPSERT_MEMORIES_TOOL], use="gate", check=explain_unusable_call)
        extraction, rejections = convert_tool_calls(answer.calls, lines)
        return ExtractionStep(
            session_id=conversation.messages[0].session_id,
            lines=lines,
            has_known_entities=bool(known),
            user_names=collect_user_names(lines, known),
            extraction=extraction.model_copy(update={"reason": shorten_reason(redact(answer.text))}),
            rejections=rejections,
            receipt=answer.receipt,
        )

    async def _load_conversation(self, owner: Owner, parts: Sequence[MessagePart]) -> ConversationContext | None:
        return await self._episodes.load_conversation_context(owner, message_ids_of(parts), EARLIER_MESSAGES)

    async def _read_conversation(
        self, conversation: ConversationContext, parts: Sequence[MessagePart], redact: Redactor
    ) -> tuple[list[TranscriptLine], str]:
        """Return the lines of a window and the messages before it, without secrets."""
        characters = part_length(parts) + sum(len(message.content) for message in conversation.preceding)
        zones = (conversation.timezone, self._zone)
        return await read_text(
            characters,
            lambda: (
                build_transcript(parts, conversation.messages, *zones, redact),
                render_earlier_messages(conversation.preceding, *zones, redact),
            ),
        )

    async def _load_known_names(self, owner: Owner) -> tuple[list[KnownName], list[str]]:
        """Return the entities with most facts, and the interests mentioned once."""
        entities, interests = await self._graph.fetch_value(
            "extraction.list_known_names",
            group_id=owner.group_id,
            name_limit=MAX_KNOWN_NAMES,
            interest_limit=MAX_NOTED_INTERESTS,
        )
        return [KnownName.model_validate(entity) for entity in entities], interests

    def _make_redactor(self, owner: Owner) -> Redactor:
        return make_redactor(self._policy.allowed_classes(owner.tenant))


def collect_user_names(lines: Sequence[TranscriptLine], known: Sequence[KnownName]) -> list[str]:
    """Return the user's other names, in order: the aliases of the user's entity, and the one name on the user's lines.

    Lines with several names may be of several people, so that none of them is used.
    """
    speakers = {line.speaker for line in lines if line.role is MessageRole.USER and line.speaker}
    aliases = [alias for entity in known if entity.is_user for alias in entity.aliases]
    names = {name_key(name): name for name in [*aliases, *(speakers if len(speakers) == 1 else ())]}
    return [names[key] for key in sorted(names)]


def _render_known_names(known: Sequence[KnownName], user_names: Sequence[str], redact: Redactor) -> str:
    also = f", also called {', '.join(user_names)}" if user_names else ""
    lines = [f"User (Person): who writes the USER lines{also}"]
    for entity in sorted(known, key=lambda entity: name_key(entity.name)):
        if not entity.is_user:
            aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
            lines.append(f"{entity.name} ({entity.type}){aliases}")
    return "\n".join(indent_continuations(redact(line)) for line in lines)
