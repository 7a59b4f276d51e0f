"""The tool form of extraction: a model saves by calling `upsert_memories`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from graphmem.domain.memory import DEFAULT_PREDICATES
from graphmem.domain.session import MessageRole
from graphmem.domain.types import TOPIC_TAGS
from graphmem.ingestion.candidates import Rejection
from graphmem.ingestion.llm_schemas import Candidate, Extraction, Named, UpsertMemory
from graphmem.ingestion.transcript import WEEKDAY_NAMES, TranscriptLine
from graphmem.llm.prompts import indent_continuations

TOOL_NAME = "upsert_memories"

TOOL_MEMORY_TYPES = ("USER_PREFERENCE", "FACTUAL_INFO", "BEHAVIORAL_PATTERN", "CONVERSATION_SUMMARY", "OPEN_LOOP")
"""The types as the tool names them (CASH-09)."""

MAX_SOURCES_PER_CALL = 3
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
                "topic_tags": {"type": "array", "items": {"type": "string", "enum": sorted(TOPIC_TAGS)}},
            },
            "required": ["type", "content", "confidence", "topic_tags"],
            "additionalProperties": False,
        },
    },
}
"""The one tool the model gets, in the shape of the chat completions API."""


def render_history(lines: Sequence[TranscriptLine]) -> str:
    """Return the conversation as `[USER]: …` and `[ASSISTANT]: …` lines, in order."""
    return "\n".join(f"[{line.role.value.upper()}]: {indent_continuations(line.text)}" for line in lines)


def render_period(lines: Sequence[TranscriptLine]) -> str:
    """Return the days on which a conversation was held."""
    first, last = min(line.sent_at for line in lines), max(line.sent_at for line in lines)
    days = [f"{WEEKDAY_NAMES[each.weekday()]} {each:%Y-%m-%d}" for each in (first, last)]
    return "held on " + " to ".join(dict.fromkeys(days))


def convert_tool_calls(
    calls: Sequence[Mapping[str, Any]], lines: Sequence[TranscriptLine]
) -> tuple[Extraction, list[Rejection]]:
    """Return tool calls as the candidates they propose; unusable calls are refused."""
    told = [line for line in lines if line.role is MessageRole.USER]
    candidates: list[Candidate] = []
    rejections: list[Rejection] = []
    for call in calls:
        if call["name"] != TOOL_NAME:
            rejections.append(Rejection("tool", "there is no such tool"))
            continue
        try:
            candidates.append(_to_candidate(UpsertMemory.model_validate(call["arguments"]), told))
        except ValidationError as error:
            rejections.append(Rejection("tool", f"the call does not fit the tool: {_invalid_fields(error)}"))
    return Extraction(skip=not candidates, reason="", keywords=[], names=[], candidates=candidates), rejections


def find_source_lines(content: str, told: Sequence[TranscriptLine]) -> list[int]:
    """Return the lines a memory rests on: the tool does not say, so up to three that share most words with it."""
    words = set(_WORD.findall(content.casefold()))
    shared = [(len(words & set(_WORD.findall(line.text.casefold()))), line.number) for line in told]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1]))[:MAX_SOURCES_PER_CALL]
    return sorted(number for count, number in best if 2 * count >= best[0][0]) or [line.number for line in told[-1:]]


def _to_candidate(told: UpsertMemory, lines: Sequence[TranscriptLine]) -> Candidate:
    return Candidate(
        content=told.content,
        type=told.type,
        subject=Named(name="User", type="Person"),
        predicate=DEFAULT_PREDICATES[told.type],
        object=None,
        entities=[],
        valid_at=None,
        invalid_at=None,
        confidence=told.confidence,
        importance=0.5,
        tags=[tag for tag in told.topic_tags if tag.upper() in TOPIC_TAGS],
        single_valued=False,
        retracts=False,
        messages=find_source_lines(told.content, lines),
    )


def _invalid_fields(error: ValidationError) -> str:
    known = UpsertMemory.model_fields
    return ", ".join(str(each["loc"][0]) for each in error.errors() if each["loc"] and each["loc"][0] in known)
