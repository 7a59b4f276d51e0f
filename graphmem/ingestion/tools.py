"""The tool form of extraction: a model saves by calling `upsert_memories`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from graphmem.domain.actions import Candidate, Extraction, Named, UpsertMemory
from graphmem.domain.memory import DEFAULT_PREDICATES, TOPIC_TAGS
from graphmem.domain.session import Role
from graphmem.ingestion.claims import Refusal
from graphmem.ingestion.window import DAYS, Line
from graphmem.llm.prompts import within_line

NAME = "upsert_memories"

TYPES = ("USER_PREFERENCE", "FACTUAL_INFO", "BEHAVIORAL_PATTERN", "CONVERSATION_SUMMARY", "OPEN_LOOP")
"""The types as the tool names them (CASH-09)."""

MOST_SOURCES = 3
_WORD = re.compile(r"\w{4,}")

UPSERT_MEMORIES: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Save one memory about the user. Saving what is known already changes nothing.",
        "parameters": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(TYPES)},
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


def render_history(lines: Sequence[Line]) -> str:
    """Return the conversation as `[USER]: …` and `[ASSISTANT]: …` lines, in order."""
    return "\n".join(f"[{line.role.value.upper()}]: {within_line(line.text)}" for line in lines)


def period_of(lines: Sequence[Line]) -> str:
    """Return the days on which a conversation was held."""
    first, last = min(line.told_at for line in lines), max(line.told_at for line in lines)
    days = [f"{DAYS[each.weekday()]} {each:%Y-%m-%d}" for each in (first, last)]
    return "held on " + " to ".join(dict.fromkeys(days))


def extraction_of(calls: Sequence[Mapping[str, Any]], lines: Sequence[Line]) -> tuple[Extraction, list[Refusal]]:
    """Return tool calls as the candidates they propose; unusable calls are refused."""
    told = [line for line in lines if line.role is Role.USER]
    candidates: list[Candidate] = []
    refusals: list[Refusal] = []
    for call in calls:
        if call["name"] != NAME:
            refusals.append(Refusal("tool", "there is no such tool"))
            continue
        try:
            candidates.append(_candidate(UpsertMemory.model_validate(call["arguments"]), told))
        except ValidationError as error:
            refusals.append(Refusal("tool", f"the call does not fit the tool: {_places(error)}"))
    return Extraction(skip=not candidates, reason="", keywords=[], names=[], candidates=candidates), refusals


def sources_of(content: str, told: Sequence[Line]) -> list[int]:
    """Return the lines a memory rests on: the tool does not say, so up to three that share most words with it."""
    words = set(_WORD.findall(content.casefold()))
    shared = [(len(words & set(_WORD.findall(line.text.casefold()))), line.number) for line in told]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1]))[:MOST_SOURCES]
    return sorted(number for count, number in best if 2 * count >= best[0][0]) or [line.number for line in told[-1:]]


def _candidate(told: UpsertMemory, lines: Sequence[Line]) -> Candidate:
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
        messages=sources_of(told.content, lines),
    )


def _places(error: ValidationError) -> str:
    known = UpsertMemory.model_fields
    return ", ".join(str(each["loc"][0]) for each in error.errors() if each["loc"] and each["loc"][0] in known)
