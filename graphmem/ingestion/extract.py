"""The first model call of a batch of messages: its prompt, and the candidates from its answer or tool calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import Message, MessageRole, RunMessage
from graphmem.conversations.stored import ConversationContext
from graphmem.ingestion.answers import (
    Addressee,
    Candidate,
    DeclaredLabel,
    Extraction,
    Named,
    Screening,
    Speech,
    UpsertMemory,
    answer_schema,
    read_labels,
    read_screenings,
    render_declared_types,
)
from graphmem.ingestion.jobs import MemoryAction, shorten_reason
from graphmem.ingestion.screening import find_foreign_lines, render_foreign_lines
from graphmem.ingestion.transcript import (
    EARLIER_MESSAGES,
    WEEKDAY_NAMES,
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
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.memories.memory import DEFAULT_PREDICATES, MemoryIn
from graphmem.memories.names import may_mean_same_person, name_keys_in
from graphmem.models.language_model import (
    LanguageModel,
    PromptTemplate,
    Receipt,
    ToolCall,
    ToolCallCompletion,
    indent_continuations,
)
from graphmem.neo4j.driver import Graph
from graphmem.runtime.field_types import deduplicate, name_key
from graphmem.runtime.process import read_text
from graphmem.runtime.times import AS_OF_NOW
from graphmem.secrets.scanner import Redactor, SecretPolicy, make_redactor, render_secret_rule
from graphmem.tenants.owners import Instructions, Owner
from graphmem.tenants.profiles import OTHER_TOPIC, TenantProfiles, known_topic_tags
from graphmem.tenants.space_store import SpaceStore
from graphmem.tenants.spaces import Space
from graphmem.tenants.tenant_settings import InstructionStore
from graphmem.text.tokenising import find_words

TOOL_NAME = "upsert_memories"

TOOL_MEMORY_TYPES = ("USER_PREFERENCE", "FACTUAL_INFO", "BEHAVIORAL_PATTERN", "CONVERSATION_SUMMARY", "OPEN_LOOP")
"""The memory types that the tool accepts, parsed as in a save."""

MAX_SOURCES_PER_CALL = 3
"""Maximum lines to attribute a tool call to, since the tool does not name its messages."""

_WORD = re.compile(r"\w{4,}")

UPSERT_MEMORIES_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": "Save one memory about the user. Saving what is known already changes nothing.",
        "parameters": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(TOOL_MEMORY_TYPES)},
                "content": {"type": "string", "description": "One short sentence in the third person."},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "topic_tags": {"type": "array", "items": {"type": "string", "enum": sorted(known_topic_tags())}},
            },
            "required": ["type", "content", "confidence", "topic_tags"],
            "additionalProperties": False,
        },
    },
}
"""The tool in chat completions format."""


def make_memory_tool(*, is_screened: bool) -> dict[str, Any]:
    """Return the tool; with `is_screened`, for third-party text, it also asks about the purpose of the quoted words."""
    if not is_screened:
        return UPSERT_MEMORIES_TOOL
    function = UPSERT_MEMORIES_TOOL["function"]
    properties = {
        **function["parameters"]["properties"],
        "speech": {"type": "string", "enum": list(Speech)},
        "addressee": {"type": "string", "enum": list(Addressee)},
        "quote": {"type": "string", "description": "The words of a listed message that it rests on."},
    }
    parameters = {**function["parameters"], "properties": properties}
    return {**UPSERT_MEMORIES_TOOL, "function": {**function, "parameters": parameters}}


def render_history(lines: Sequence[TranscriptLine]) -> str:
    """Return the conversation as `[USER]: …` and `[ASSISTANT]: …` lines, in order."""
    return "\n".join(f"[{line.role.value.upper()}]: {indent_continuations(line.text)}" for line in lines)


def render_period(lines: Sequence[TranscriptLine]) -> str:
    """Return the dates of the first and the last message."""
    first, last = min(line.sent_at for line in lines), max(line.sent_at for line in lines)
    days = [f"{WEEKDAY_NAMES[day.weekday()]} {day:%Y-%m-%d}" for day in (first, last)]
    return "held on " + " to ".join(dict.fromkeys(days))


def explain_unusable_call(call: ToolCall) -> str | None:
    """Return why a call saves nothing, worded for the model, or None if it can be used."""
    if call.name != TOOL_NAME:
        return "there is no such tool"
    try:
        UpsertMemory.model_validate(call.arguments)
    except ValidationError as error:
        return f"the call does not fit the tool: {_invalid_fields(error)}"
    return None


def explain_refused_call(call: ToolCall, find_refusal: Callable[[MemoryIn], str | None]) -> str | None:
    """Return why a call saves nothing, including rejection by the policy, or None if it can be used."""
    if reason := explain_unusable_call(call):
        return reason
    given = UpsertMemory.model_validate(call.arguments)
    try:
        memory = MemoryIn(content=given.content, type=given.type, confidence=given.confidence)
    except ValidationError as error:
        return f"not saved: {error.errors()[0]['msg']}"
    reason = find_refusal(memory)
    return f"not saved: {reason}" if reason else None


def convert_tool_calls(
    calls: Sequence[ToolCall], lines: Sequence[TranscriptLine], domain: str | None = None
) -> tuple[Extraction, list[MemoryAction], dict[int, Screening]]:
    """Return the candidates from tool calls, the refusals of unusable calls, and the screenings by candidate index.

    The tool has no domain argument: candidates get the conversation's domain.
    """
    candidates: list[Candidate] = []
    refusals: list[MemoryAction] = []
    screenings: dict[int, Screening] = {}
    for call in calls:
        if reason := explain_unusable_call(call):
            refusals.append(MemoryAction.refused("tool", reason))
        else:
            saved = UpsertMemory.model_validate(call.arguments)
            if saved.screening:
                screenings[len(candidates)] = saved.screening
            candidates.append(_to_candidate(saved, lines, domain))
    extraction = Extraction(skip=not candidates, reason="", keywords=[], names=[], candidates=candidates)
    return extraction, refusals, screenings


def make_transcript(answer: ToolCallCompletion, redact: Redactor) -> list[RunMessage]:
    """Return the prompt, the calls and their results as messages without secrets, in order."""
    transcript = [RunMessage(role=MessageRole(turn["role"]), content=turn["content"]) for turn in answer.messages]
    for turn in answer.exchange:
        calls = [{"name": call.name, "arguments": _redact_values(call.arguments, redact)} for call in turn.calls]
        transcript.append(RunMessage(role=MessageRole.ASSISTANT, content=redact(turn.text), tool_calls=calls))
        transcript += [RunMessage(role=MessageRole.TOOL, content=result) for result in turn.results]
    return transcript


def _redact_values(value: Any, redact: Redactor) -> Any:
    match value:
        case str():
            return redact(value)
        case list():
            return [_redact_values(item, redact) for item in value]
        case dict():
            return {name: _redact_values(item, redact) for name, item in value.items()}
    return value


def find_source_lines(content: str, lines: Sequence[TranscriptLine]) -> list[int]:
    """Return the numbers of up to three lines that share most words with a memory, or of the last line if none does."""
    words = set(_WORD.findall(content.casefold()))
    shared = [(len(words & set(_WORD.findall(line.text.casefold()))), line.number) for line in lines]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1]))[:MAX_SOURCES_PER_CALL]
    return sorted(number for count, number in best if 2 * count >= best[0][0]) or [line.number for line in lines[-1:]]


def _find_quoted_lines(quote: str, lines: Sequence[TranscriptLine]) -> list[int]:
    """Return the numbers of the lines that contain a quote and are not by the user."""
    return [line.number for line in find_foreign_lines(lines) if quote and find_words(quote, line.text)]


def _to_candidate(call: UpsertMemory, lines: Sequence[TranscriptLine], domain: str | None) -> Candidate:
    user_lines = [line for line in lines if line.role is MessageRole.USER]
    sources = {*find_source_lines(call.content, user_lines), *_find_quoted_lines(call.quote or "", lines)}
    return Candidate(
        content=call.content,
        type=call.type,
        subject=Named(name="User", type="Person"),
        predicate=DEFAULT_PREDICATES[call.type],
        object=None,
        entities=[],
        valid_at=None,
        invalid_at=None,
        confidence=call.confidence,
        importance=0.5,
        tags=_known_topics(call.topic_tags),
        domain=domain,
        single_valued=False,
        retracts=False,
        messages=sorted(sources),
    )


def _known_topics(words: Sequence[str]) -> list[str]:
    """Return the known topic tags among words; if there are words but none is known, the tag for other topics."""
    known = [word for word in words if word.upper() in known_topic_tags()]
    return known or ([OTHER_TOPIC] if words else [])


def _invalid_fields(error: ValidationError) -> str:
    known = UpsertMemory.model_fields
    fields = [detail["loc"][0] for detail in error.errors() if detail["loc"]]
    return ", ".join(str(field) for field in fields if field in known)


MAX_KNOWN_NAMES = 80
"""Maximum known entities in a prompt: first those that the messages mention, then those with most facts."""

MAX_NOTED_INTERESTS = 50
"""Maximum interests mentioned once in a prompt."""

MAX_KNOWN_INTENTS = 30
"""Maximum intents of earlier messages in a prompt, latest sessions first."""

MAX_KNOWN_DOMAINS = 30
"""Maximum domains of known facts in a prompt, those with most facts first."""

MAX_RELATION_CHARACTERS = 120
"""Maximum characters in a prompt of the fact that says who a person is."""


class KnownName(BaseModel):
    """An entity named by the user's facts; `relation` is a fact that says who a person is."""

    name: str
    type: str
    aliases: list[str]
    is_user: bool | None = None
    relation: str | None = None


class KnownWorld(BaseModel):
    """The known context of a first call: entities, interests mentioned once, domains, intents and the user's name."""

    entities: list[KnownName] = Field(default_factory=list)
    interests: list[str] = Field(default_factory=list)
    domains: list[str] = Field(default_factory=list)
    intents: list[str] = Field(default_factory=list)
    user_name: str | None = None


class ExtractionStep(BaseModel):
    """The result of the first call; without an `extraction`, the messages of the batch have been erased.

    `has_known_entities` says whether the user had any entity before. `user_name` is the name of the user's own entity,
    None if still unknown; `user_names` are the user's other names. By candidate index, `labels` are the declared types
    and `screenings` the purposes of quoted words that are not the user's own.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str = ""
    lines: list[TranscriptLine] = Field(default_factory=list)
    has_known_entities: bool = True
    user_name: str | None = None
    user_names: list[str] = Field(default_factory=list)
    extraction: Extraction | None = None
    labels: dict[int, DeclaredLabel] = Field(default_factory=dict)
    screenings: dict[int, Screening] = Field(default_factory=dict)
    refusals: list[MemoryAction] = Field(default_factory=list)
    transcript: list[RunMessage] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)


class Extractor:
    """Makes the first call of a batch, with a structured answer or with tool calls."""

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
        self._spaces = SpaceStore(graph)
        self._find_refusal = find_refusal
        self._episodes = episodes
        self._policy = policy
        self._profiles = profiles
        self._prompts = prompts
        self._zone = zone
        self._instructions = instructions
        self._declared_types = declared_types

    async def extract(self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel) -> ExtractionStep:
        """Ask with one structured call which parts of a batch are worth remembering."""
        conversation = await self._episodes.load_conversation_context(owner, message_ids_of(parts), EARLIER_MESSAGES)
        if conversation is None:
            return ExtractionStep()
        known, instructions, types, space = await asyncio.gather(
            self._load_known_world(owner, conversation.messages),
            self._instructions.find(owner.tenant),
            self._declared_types.find(owner.tenant),
            self._find_space(owner),
        )
        allowed = self._policy.allowed_classes(owner.tenant)
        redact = make_redactor(allowed)
        lines, earlier = await self._read_conversation(conversation, parts, redact)
        user_names = [] if owner.is_space else collect_user_names(lines, known)
        foreign_lines = render_foreign_lines(lines)
        prompt = self._prompts["extract"].render(
            calendar=render_calendar(lines) if lines else "",
            previous_conversation=render_previous_conversation(conversation.previous_at, lines),
            secrets=render_secret_rule(allowed),
            known_names=_render_known_names(known, user_names, redact, speakers_in_space(owner, lines)),
            known_domains="\n".join(map(indent_continuations, known.domains)),
            known_intents=", ".join(map(indent_continuations, known.intents)),
            noted_interests="\n".join(map(indent_continuations, known.interests)),
            earlier=earlier,
            conversation=render_transcript(lines),
            conversation_domain=redact(conversation.domain or ""),
            topics=", ".join(sorted(self._profiles.for_tenant(owner.tenant).topic_tags)),
            custom_instructions=_join_instructions(instructions, space),
            declared_types=render_declared_types(types),
            foreign_lines=foreign_lines,
        )
        schema = answer_schema(types, is_screened=bool(foreign_lines))
        answer = await model.complete_structured(prompt, schema, use="gate")
        screenings = read_screenings(answer.value)
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
            screenings=screenings,
            refusals=[MemoryAction.refused("answer", reason) for reason in extraction.refused],
            receipt=answer.receipt,
        )

    async def extract_with_tools(
        self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel
    ) -> ExtractionStep:
        """Let the model save memories by calling the tool `upsert_memories`, until it makes no more calls."""
        conversation = await self._episodes.load_conversation_context(owner, message_ids_of(parts), EARLIER_MESSAGES)
        if conversation is None:
            return ExtractionStep()
        known, instructions, space = await asyncio.gather(
            self._load_known_world(owner, conversation.messages),
            self._instructions.find(owner.tenant),
            self._find_space(owner),
        )
        allowed = self._policy.allowed_classes(owner.tenant)
        redact = make_redactor(allowed)
        lines, _ = await self._read_conversation(conversation, parts, redact)
        foreign_lines = render_foreign_lines(lines)
        prompt = self._prompts["tool_extraction"].render(
            conversation_history=render_history(lines),
            period=render_period(lines),
            secrets=render_secret_rule(allowed),
            custom_instructions=_join_instructions(instructions, space),
            foreign_lines=foreign_lines,
        )
        answer = await model.call_tools(
            prompt,
            [make_memory_tool(is_screened=bool(foreign_lines))],
            use="gate",
            check=partial(explain_refused_call, find_refusal=partial(self._find_refusal, owner)),
        )
        extraction, refusals, screenings = convert_tool_calls(answer.calls, lines, conversation.domain)
        return ExtractionStep(
            session_id=conversation.messages[0].session_id,
            lines=lines,
            has_known_entities=bool(known.entities),
            user_name=known.user_name,
            user_names=[] if owner.is_space else collect_user_names(lines, known),
            extraction=extraction.model_copy(update={"reason": shorten_reason(redact(answer.text))}),
            screenings=screenings,
            refusals=refusals,
            transcript=make_transcript(answer, redact),
            receipt=answer.receipt,
        )

    async def _read_conversation(
        self, conversation: ConversationContext, parts: Sequence[MessagePart], redact: Redactor
    ) -> tuple[list[TranscriptLine], str]:
        """Return the lines of a batch and the messages before it, without secrets."""
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
            user_name=None
            if owner.is_space
            else next((e.name for e in known if e.is_user and name_key(e.name) != name_key(owner.user_id)), None),
        )

    async def _find_space(self, owner: Owner) -> Space | None:
        """Return the space of a conversation, or None for a user's own conversation."""
        return await self._spaces.find(owner) if owner.is_space else None


def collect_user_names(lines: Sequence[TranscriptLine], known: KnownWorld) -> list[str]:
    """Return the user's names, in order: those of the user's entity, and the one name on the user's lines.

    Lines with several names may be from several people, so none of those names is used. A name with nothing in common
    with the user's known names is not used either, since somebody else may be writing.
    """
    names = [alias for entity in known.entities if entity.is_user for alias in entity.aliases]
    names += [known.user_name] if known.user_name else []
    speakers = {line.speaker for line in lines if line.role is MessageRole.USER and line.speaker}
    if len(speakers) == 1:
        (speaker,) = speakers
        if not names or any(may_mean_same_person(speaker, name) for name in names):
            names.append(speaker)
    by_key = {name_key(name): name for name in names}
    return [by_key[key] for key in sorted(by_key)]


def _without_user_id(entity: KnownName, owner: Owner) -> KnownName:
    """Return the entity for a prompt, without the user id, which only graphmem uses."""
    if not entity.is_user:
        return entity
    aliases = [alias for alias in entity.aliases if name_key(alias) != name_key(owner.user_id)]
    return entity.model_copy(update={"aliases": aliases})


def speakers_in_space(owner: Owner, lines: Sequence[TranscriptLine]) -> list[str] | None:
    """Return the distinct names on user lines in a space; None for a conversation of one user."""
    if not owner.is_space:
        return None
    return deduplicate(line.speaker or "User" for line in lines if line.role is MessageRole.USER)


def _join_instructions(instructions: Instructions, space: Space | None) -> str:
    """Return the tenant's instructions on what to remember and, in a space, what belongs there."""
    if space is None:
        return instructions.text
    shared = f"The conversation belongs to {space.title}, whose members share what is remembered."
    about = f" What belongs there: {space.about}" if space.about else ""
    members = "Several people may write USER lines: name who a statement is about, as the line does."
    return "\n".join(filter(None, [instructions.text, f"{shared}{about}", members]))


def _render_known_names(
    known: KnownWorld, user_names: Sequence[str], redact: Redactor, speakers: Sequence[str] | None
) -> str:
    """Return one line per entity, the user's own first, with the fact that says who a person is.

    In a space, each of the `speakers` is the user on the lines under that name.
    """
    others = [name for name in user_names if name != known.user_name]
    also = f", also called {', '.join(others)}" if others else ""
    lines = [f"{known.user_name or 'User'} (Person): the user, who writes the USER lines{also}"]
    if speakers is not None:
        lines = [f"{speaker} (Person): the user on the lines USER {speaker}" for speaker in speakers]
    for entity in sorted(known.entities, key=lambda entity: name_key(entity.name)):
        if not entity.is_user:
            aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
            relation = f": {entity.relation[:MAX_RELATION_CHARACTERS]}" if entity.relation else ""
            lines.append(f"{entity.name} ({entity.type}){aliases}{relation}")
    return "\n".join(indent_continuations(redact(line)) for line in lines)
