"""The first model call of a window: its prompt, and the candidates of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from graphmem.conversations.conversation import ConversationContext
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import Message, MessageRole, RunMessage
from graphmem.ingestion.candidates import Rejection
from graphmem.ingestion.declared_candidates import DeclaredLabel, answer_schema, read_labels, render_declared_types
from graphmem.ingestion.job_actions import shorten_reason
from graphmem.ingestion.llm_schemas import Extraction
from graphmem.ingestion.name_matching import may_be_same_person
from graphmem.ingestion.tool_extraction import (
    UPSERT_MEMORIES_TOOL,
    convert_tool_calls,
    explain_refused_call,
    make_transcript,
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
    render_calendar,
    render_earlier_messages,
    render_previous_conversation,
    render_transcript,
)
from graphmem.memories.declared_types_store import DeclaredTypeStore
from graphmem.memories.memory import MemoryIn
from graphmem.memories.name_linking import name_keys_in
from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import PromptTemplate, indent_continuations
from graphmem.models.receipt import Receipt
from graphmem.neo4j.driver import Graph
from graphmem.runtime.text import name_key
from graphmem.runtime.text_thread import read_text
from graphmem.runtime.times import AS_OF_NOW
from graphmem.secrets.policy import SecretPolicy
from graphmem.secrets.secret_redaction import Redactor, make_redactor, render_secret_rule
from graphmem.tenants.instructions_store import InstructionStore
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles

MAX_KNOWN_NAMES = 80
"""Names of known entities that a prompt shows: those that the messages mention first, then those with most facts."""

MAX_NOTED_INTERESTS = 50
"""Interests mentioned once that a prompt shows."""

MAX_KNOWN_INTENTS = 30
"""Intents of earlier messages that a prompt shows, those of the latest sessions first."""

MAX_KNOWN_DOMAINS = 30
"""Domains of known facts that a prompt shows, those with most facts first."""

MAX_RELATION_CHARACTERS = 120
"""Characters that a prompt shows of the fact that says who a person is."""


class KnownName(BaseModel):
    """An entity that the user's facts name; `relation` is a fact that says who a person is."""

    name: str
    type: str
    aliases: list[str]
    is_user: bool | None = None
    relation: str | None = None


class KnownWorld(BaseModel):
    """What a first call knows of the user: entities, interests mentioned once, domains, intents, the user's name."""

    entities: list[KnownName] = Field(default_factory=list)
    interests: list[str] = Field(default_factory=list)
    domains: list[str] = Field(default_factory=list)
    intents: list[str] = Field(default_factory=list)
    user_name: str | None = None


class ExtractionStep(BaseModel):
    """The result of the first call; without an `extraction` the messages of the window are erased.

    `has_known_entities` says whether the user had any entity before. `user_name` is the name of the user's own entity,
    None before it is known, and `user_names` are the user's other names. `labels` are the declared types of candidates
    by their index.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str = ""
    lines: list[TranscriptLine] = Field(default_factory=list)
    has_known_entities: bool = True
    user_name: str | None = None
    user_names: list[str] = Field(default_factory=list)
    extraction: Extraction | None = None
    labels: dict[int, DeclaredLabel] = Field(default_factory=dict)
    rejections: list[Rejection] = Field(default_factory=list)
    transcript: list[RunMessage] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)


class Extractor:
    """Makes the first call of a window, with a structured answer or with tool calls."""

    def __init__(
        self,
        graph: Graph,
        episodes: EpisodeStore,
        policy: SecretPolicy,
        instructions: InstructionStore,
        declared_types: DeclaredTypeStore,
        profiles: TenantProfiles,
        prompts: Mapping[str, PromptTemplate],
        zone: str,
        find_refusal: Callable[[Owner, MemoryIn], str | None],
    ) -> None:
        """`find_refusal` returns why the policy rejects a statement, or None."""
        self._graph = graph
        self._find_refusal = find_refusal
        self._episodes = episodes
        self._policy = policy
        self._profiles = profiles
        self._prompts = prompts
        self._zone = zone
        self._instructions = instructions
        self._declared_types = declared_types

    async def extract(self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel) -> ExtractionStep:
        """Ask what is worth remembering of a window, with one structured call."""
        conversation = await self._load_conversation(owner, parts)
        if conversation is None:
            return ExtractionStep()
        known, instructions, types = await asyncio.gather(
            self._load_known_world(owner, conversation.messages),
            self._instructions.find(owner.tenant),
            self._declared_types.find(owner.tenant),
        )
        redact = self._make_redactor(owner)
        lines, earlier = await self._read_conversation(conversation, parts, redact)
        user_names = collect_user_names(lines, known)
        prompt = self._prompts["extract"].render(
            calendar=render_calendar(lines) if lines else "",
            previous_conversation=render_previous_conversation(conversation.previous_at, lines),
            secrets=self._render_secret_rule(owner),
            known_names=_render_known_names(known, user_names, redact),
            known_domains="\n".join(map(indent_continuations, known.domains)),
            known_intents=", ".join(map(indent_continuations, known.intents)),
            noted_interests="\n".join(map(indent_continuations, known.interests)),
            earlier=earlier,
            conversation=render_transcript(lines),
            conversation_domain=redact(conversation.domain or ""),
            topics=", ".join(sorted(self._profiles.for_tenant(owner.tenant).topic_tags)),
            custom_instructions=instructions.text,
            declared_types=render_declared_types(types),
        )
        answer = await model.complete_structured(prompt, answer_schema(types), use="gate")
        extraction, labels = read_labels(answer.value, types)
        reason = shorten_reason(redact(extraction.reason))
        return ExtractionStep(
            session_id=conversation.messages[0].session_id,
            lines=lines,
            has_known_entities=bool(known.entities),
            user_name=known.user_name,
            user_names=user_names,
            extraction=extraction.model_copy(update={"reason": reason}),
            labels=labels,
            receipt=answer.receipt,
        )

    async def extract_with_tools(
        self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel
    ) -> ExtractionStep:
        """Let the model save what is worth remembering by calls of the tool `upsert_memories`, until it makes none."""
        conversation = await self._load_conversation(owner, parts)
        if conversation is None:
            return ExtractionStep()
        known, instructions = await asyncio.gather(
            self._load_known_world(owner, conversation.messages), self._instructions.find(owner.tenant)
        )
        redact = self._make_redactor(owner)
        lines, _ = await self._read_conversation(conversation, parts, redact)
        prompt = self._prompts["tool_extraction"].render(
            conversation_history=render_history(lines),
            period=render_period(lines),
            secrets=self._render_secret_rule(owner),
            custom_instructions=instructions.text,
        )
        answer = await model.call_tools(
            prompt,
            [UPSERT_MEMORIES_TOOL],
            use="gate",
            check=partial(explain_refused_call, find_refusal=partial(self._find_refusal, owner)),
        )
        extraction, rejections = convert_tool_calls(answer.calls, lines, conversation.domain)
        return ExtractionStep(
            session_id=conversation.messages[0].session_id,
            lines=lines,
            has_known_entities=bool(known.entities),
            user_name=known.user_name,
            user_names=collect_user_names(lines, known),
            extraction=extraction.model_copy(update={"reason": shorten_reason(redact(answer.text))}),
            rejections=rejections,
            transcript=make_transcript(answer, redact),
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

    async def _load_known_world(self, owner: Owner, messages: Sequence[Message]) -> KnownWorld:
        """Return the entities that messages mention and those with most facts, interests, domains and intents."""
        entities, interests, domains, intents = await self._graph.fetch_value(
            "extraction.list_known_names",
            group_id=owner.group_id,
            mentioned=sorted({key for message in messages for key in name_keys_in(message.content)}),
            name_limit=MAX_KNOWN_NAMES,
            interest_limit=MAX_NOTED_INTERESTS,
            domain_limit=MAX_KNOWN_DOMAINS,
            intent_limit=MAX_KNOWN_INTENTS,
            known_at=AS_OF_NOW,
        )
        known = [KnownName.model_validate(entity) for entity in entities]
        return KnownWorld(
            entities=[_without_user_id(entity, owner) for entity in known],
            interests=interests,
            domains=domains,
            intents=intents,
            user_name=next((e.name for e in known if e.is_user and name_key(e.name) != name_key(owner.user_id)), None),
        )

    def _make_redactor(self, owner: Owner) -> Redactor:
        return make_redactor(self._policy.allowed_classes(owner.tenant))

    def _render_secret_rule(self, owner: Owner) -> str:
        return render_secret_rule(self._policy.allowed_classes(owner.tenant))


def collect_user_names(lines: Sequence[TranscriptLine], known: KnownWorld) -> list[str]:
    """Return the names of the user, in order: those of the user's entity, and the one name on the user's lines.

    Lines with several names may be of several people, so that none of them is used; nor is one that has nothing in
    common with the user's known names, since somebody else may write.
    """
    names = [alias for entity in known.entities if entity.is_user for alias in entity.aliases]
    names += [known.user_name] if known.user_name else []
    speakers = {line.speaker for line in lines if line.role is MessageRole.USER and line.speaker}
    if len(speakers) == 1:
        (speaker,) = speakers
        if not names or any(may_be_same_person(speaker, name) for name in names):
            names.append(speaker)
    by_key = {name_key(name): name for name in names}
    return [by_key[key] for key in sorted(by_key)]


def _without_user_id(entity: KnownName, owner: Owner) -> KnownName:
    """Return the entity as a prompt shows it; only graphmem knows the user by the user id."""
    if not entity.is_user:
        return entity
    aliases = [alias for alias in entity.aliases if name_key(alias) != name_key(owner.user_id)]
    return entity.model_copy(update={"aliases": aliases})


def _render_known_names(known: KnownWorld, user_names: Sequence[str], redact: Redactor) -> str:
    """Return one line for each entity, the user's own first; a person's with the fact that says who it is."""
    others = [name for name in user_names if name != known.user_name]
    also = f", also called {', '.join(others)}" if others else ""
    lines = [f"{known.user_name or 'User'} (Person): the user, who writes the USER lines{also}"]
    for entity in sorted(known.entities, key=lambda entity: name_key(entity.name)):
        if not entity.is_user:
            aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
            relation = f": {entity.relation[:MAX_RELATION_CHARACTERS]}" if entity.relation else ""
            lines.append(f"{entity.name} ({entity.type}){aliases}{relation}")
    return "\n".join(indent_continuations(redact(line)) for line in lines)
