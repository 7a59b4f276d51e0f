"""Extraction by tool calls: the model saves memories by calling `upsert_memories`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from graphmem.conversations.session import MessageRole, RunMessage
from graphmem.ingestion.candidates import Rejection
from graphmem.ingestion.llm_schemas import Candidate, Extraction, Named, UpsertMemory
from graphmem.ingestion.transcript import WEEKDAY_NAMES, TranscriptLine
from graphmem.memories.memory import DEFAULT_PREDICATES, MemoryIn
from graphmem.models.completion import ToolCall, ToolCallCompletion
from graphmem.models.prompts import indent_continuations
from graphmem.secrets.secret_redaction import Redactor
from graphmem.tenants.profiles import known_topic_tags

TOOL_NAME = "upsert_memories"

TOOL_MEMORY_TYPES = ("USER_PREFERENCE", "FACTUAL_INFO", "BEHAVIORAL_PATTERN", "CONVERSATION_SUMMARY", "OPEN_LOOP")
"""The memory types that the tool accepts; they are read like those of a save."""

MAX_SOURCES_PER_CALL = 3
"""Lines that a tool call is attributed to, since the tool does not name its messages."""

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
"""The tool, in the format of the chat completions API."""


def render_history(lines: Sequence[TranscriptLine]) -> str:
    """Return the conversation as `[USER]: …` and `[ASSISTANT]: …` lines, in order."""
    return "\n".join(f"[{line.role.value.upper()}]: {indent_continuations(line.text)}" for line in lines)


def render_period(lines: Sequence[TranscriptLine]) -> str:
    """Return the days of the first and the last message."""
    first, last = min(line.sent_at for line in lines), max(line.sent_at for line in lines)
    days = [f"{WEEKDAY_NAMES[day.weekday()]} {day:%Y-%m-%d}" for day in (first, last)]
    return "held on " + " to ".join(dict.fromkeys(days))


def explain_unusable_call(call: ToolCall) -> str | None:
    """Return why a call saves nothing, in words for the model, or None for one that saves."""
    if call.name != TOOL_NAME:
        return "there is no such tool"
    try:
        UpsertMemory.model_validate(call.arguments)
    except ValidationError as error:
        return f"the call does not fit the tool: {_invalid_fields(error)}"
    return None


def explain_refused_call(call: ToolCall, find_refusal: Callable[[MemoryIn], str | None]) -> str | None:
    """Return why a call saves nothing, also because the policy rejects the statement, or None for one that saves."""
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
) -> tuple[Extraction, list[Rejection]]:
    """Return the candidates that tool calls propose, and the rejections of calls that cannot be used.

    The tool names no domain: the candidates have that of the conversation.
    """
    user_lines = [line for line in lines if line.role is MessageRole.USER]
    candidates: list[Candidate] = []
    rejections: list[Rejection] = []
    for call in calls:
        if reason := explain_unusable_call(call):
            rejections.append(Rejection("tool", reason))
        else:
            candidates.append(_to_candidate(UpsertMemory.model_validate(call.arguments), user_lines, domain))
    return Extraction(skip=not candidates, reason="", keywords=[], names=[], candidates=candidates), rejections


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
    """Return the numbers of the lines that share most words with a memory, up to three; without any, the last line."""
    words = set(_WORD.findall(content.casefold()))
    shared = [(len(words & set(_WORD.findall(line.text.casefold()))), line.number) for line in lines]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1]))[:MAX_SOURCES_PER_CALL]
    return sorted(number for count, number in best if 2 * count >= best[0][0]) or [line.number for line in lines[-1:]]


def _to_candidate(call: UpsertMemory, lines: Sequence[TranscriptLine], domain: str | None) -> Candidate:
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
        tags=[tag for tag in call.topic_tags if tag.upper() in known_topic_tags()],
        domain=domain,
        single_valued=False,
        retracts=False,
        messages=find_source_lines(call.content, lines),
    )


def _invalid_fields(error: ValidationError) -> str:
    known = UpsertMemory.model_fields
    fields = [detail["loc"][0] for detail in error.errors() if detail["loc"]]
    return ", ".join(str(field) for field in fields if field in known)
