"""The first step: what is put before the model, and its answer as JSON that outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from graphmem.domain.conversation import ConversationContext
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import MessageRole
from graphmem.domain.text import name_key
from graphmem.ingestion.candidates import Rejection
from graphmem.ingestion.llm_schemas import Extraction
from graphmem.ingestion.secret_redaction import Redactor, make_redactor
from graphmem.ingestion.tool_extraction import UPSERT_MEMORIES_TOOL, convert_tool_calls, render_history, render_period
from graphmem.ingestion.transcript import (
    EARLIER_MESSAGES,
    MessagePart,
    TranscriptLine,
    build_transcript,
    render_earlier_turns,
    render_transcript,
)
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import PromptTemplate, indent_continuations
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore

MAX_KNOWN_NAMES = 80
MAX_NOTED_INTERESTS = 50
MAX_REASON_CHARACTERS = 300

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExtractionStep:
    """What a window was read as; `lines` is empty when its messages are gone.

    `has_known_entities` says whether anything was known of the user by then.
    """

    lines: list[TranscriptLine]
    session_id: str = ""
    has_known_entities: bool = True
    user_names: tuple[str, ...] = ()
    extraction: Extraction | None = None
    rejections: tuple[Rejection, ...] = ()
    cost: LlmReceipt = field(default_factory=LlmReceipt)


class Extractor:
    """Makes the first call of a window, in either form."""

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

    async def extract(self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel) -> Json:
        """Ask what is worth keeping of some parts: one structured call."""
        loaded, (known, interests) = await asyncio.gather(
            self._load_window(owner, parts), self._load_known_entities(owner)
        )
        if loaded is None:
            return {"lines": []}
        conversation, lines, redact = loaded
        user_names = _user_names(lines, known)
        prompt = self._prompts["extract"].render(
            known_names=_render_known_names(known, user_names, redact),
            noted_interests="\n".join(map(indent_continuations, interests)) or "(none)",
            earlier=render_earlier_turns(conversation.preceding, conversation.timezone, self._zone, redact),
            conversation=render_transcript(lines),
        )
        answer = await model.complete_structured(prompt, Extraction, use="gate")
        extraction = answer.value.model_copy(update={"reason": redact(answer.value.reason)[:MAX_REASON_CHARACTERS]})
        return self._step_result(conversation, lines, known, extraction, [], answer.receipt)

    async def extract_with_tools(self, owner: Owner, parts: Sequence[MessagePart], model: LanguageModel) -> Json:
        """Let the model save what is worth keeping by the tool `upsert_memories`: one call with tools."""
        loaded, (known, _) = await asyncio.gather(self._load_window(owner, parts), self._load_known_entities(owner))
        if loaded is None:
            return {"lines": []}
        conversation, lines, redact = loaded
        prompt = self._prompts["tool_extraction"].render(
            conversation_history=render_history(lines), period=render_period(lines)
        )
        answer = await model.call_tools(prompt, [UPSERT_MEMORIES_TOOL], use="gate")
        calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
        extraction, rejections = convert_tool_calls(calls, lines)
        reason = " ".join(redact(answer.text).split())[:MAX_REASON_CHARACTERS]
        extraction = extraction.model_copy(update={"reason": reason})
        return self._step_result(conversation, lines, known, extraction, rejections, answer.receipt)

    async def _load_window(
        self, owner: Owner, parts: Sequence[MessagePart]
    ) -> tuple[ConversationContext, list[TranscriptLine], Redactor] | None:
        conversation = await self._episodes.load_conversation_context(
            owner, list(dict.fromkeys(part.message_id for part in parts)), EARLIER_MESSAGES
        )
        if conversation is None:
            return None
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        return (
            conversation,
            build_transcript(parts, conversation.messages, conversation.timezone, self._zone, redact),
            redact,
        )

    async def _load_known_entities(self, owner: Owner) -> tuple[list[Json], list[str]]:
        """Return the entities a user's facts speak of most, and the interests shown once."""
        entities, interests = await self._graph.fetch_value(
            "extraction.list_known_names",
            group_id=owner.group_id,
            name_limit=MAX_KNOWN_NAMES,
            interest_limit=MAX_NOTED_INTERESTS,
        )
        return entities, interests

    def _step_result(
        self,
        conversation: ConversationContext,
        lines: Sequence[TranscriptLine],
        known: Sequence[Json],
        extraction: Extraction,
        rejections: Sequence[Rejection],
        receipt: LlmReceipt,
    ) -> Json:
        return {
            "session_id": conversation.messages[0].session_id,
            "lines": [_dump_line(line, conversation.timezone) for line in lines],
            "has_known_entities": bool(known),
            "user_names": _user_names(lines, known),
            "extraction": extraction.model_dump(mode="json"),
            "rejections": [asdict(refusal) for refusal in rejections],
            "receipt": asdict(receipt),
        }


def load_extraction_step(stored: Json) -> ExtractionStep:
    """Return a recorded first step."""
    if not stored["lines"]:
        return ExtractionStep([])
    return ExtractionStep(
        lines=[_load_line(line) for line in stored["lines"]],
        session_id=stored["session_id"],
        has_known_entities=stored.get("has_known_entities", True),
        user_names=tuple(stored["user_names"]),
        extraction=Extraction.model_validate(stored["extraction"]),
        rejections=tuple(Rejection(**refusal) for refusal in stored["rejections"]),
        cost=LlmReceipt(**stored["receipt"]),
    )


def _user_names(lines: Sequence[TranscriptLine], known: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, in order, what the user is called: by the one name on their lines, by the aliases of their own entity."""
    speakers = {line.speaker for line in lines if line.role is MessageRole.USER and line.speaker}
    told = sorted(speakers) if len(speakers) == 1 else []
    aliases = [alias for entity in known if entity["is_user"] for alias in entity["aliases"]]
    called = {name_key(name): name for name in [*aliases, *told]}
    return [called[key] for key in sorted(called)]


def _render_known_names(known: Sequence[Mapping[str, Any]], user_names: Sequence[str], redact: Redactor) -> str:
    also = f", also called {', '.join(user_names)}" if user_names else ""
    told = [f"User (Person): who writes the USER lines{also}"]
    for entity in sorted(known, key=lambda each: name_key(each["name"])):
        if not entity["is_user"]:
            aliases = f", also {', '.join(entity['aliases'])}" if entity["aliases"] else ""
            told.append(f"{entity['name']} ({entity['type']}){aliases}")
    return "\n".join(indent_continuations(redact(line)) for line in told)


def _dump_line(line: TranscriptLine, user_zone: str | None) -> Json:
    offset = line.sent_at.utcoffset() or timedelta()
    zone = user_zone or getattr(line.sent_at.tzinfo, "key", None) or int(offset.total_seconds())
    return {**asdict(line), "sent_at": line.sent_at.isoformat(), "zone": zone}


def _load_line(stored: Json) -> TranscriptLine:
    zone = stored["zone"]
    tz = ZoneInfo(zone) if isinstance(zone, str) else timezone(timedelta(seconds=zone))
    sent_at = datetime.fromisoformat(stored["sent_at"]).astimezone(tz)
    return TranscriptLine(
        stored["number"], stored["message_id"], MessageRole(stored["role"]), stored["speaker"], sent_at, stored["text"]
    )
