"""Documents of other systems: parsing JSON, JSONL or YAML, detecting the format, reading chat logs and mem0. Pure.

A chat log is a list or JSONL of `{role, content}`, `{"messages": […]}`, or a list of the latter, one per conversation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from graphmem.conversations.session import MessageIn, MessagesIn, read_timestamp, split_into_batches
from graphmem.memories.fact import ImportProvenance
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import (
    MAX_JSON_DEPTH,
    MAX_REQUEST_TEXT,
    Id,
    SessionId,
    UnstorableValue,
    check_json_value,
    text_length,
)
from graphmem.runtime.times import Instant, ZonedDatetime
from graphmem.runtime.validation import invalid_input_from
from graphmem.user_data.models import (
    MAX_REPORTED_ERRORS,
    DocumentPath,
    ElementId,
    ImportFormat,
    ParsedEntries,
    ParsedStatements,
    UnreadableLine,
    is_empty,
)


def parse_document(raw: bytes, source_format: ImportFormat = ImportFormat.AUTO) -> tuple[ImportFormat, Any]:
    """Return the format of a document and its value; raise InvalidInput if it cannot be read.

    Entries are not checked here, but one by one when parsed in their format.
    """
    document = _parse_text(raw)
    return (detect_format(document) if source_format is ImportFormat.AUTO else source_format), document


def parse_structured_text(raw: bytes) -> Any:
    """Return the value of JSON, JSONL (as a list) or YAML.

    Raises InvalidInput for any other text, and for values that are not JSON types or cannot be stored.
    """
    value = _parse_text(raw)
    if isinstance(value, list) and (lines := [item for item in value if isinstance(item, UnreadableLine)]):
        raise InvalidInput(f"Line {lines[0].number} is not JSON.")
    try:
        check_json_value(value)
    except UnstorableValue as error:
        raise InvalidInput(
            "The import contains a value that cannot be stored.", errors=[{"loc": list(error.path), "msg": str(error)}]
        ) from None
    return value


def detect_format(document: Any) -> ImportFormat:
    """Return the format of a document by its structure; raise InvalidInput if none matches."""
    if isinstance(document, dict):
        if document.get("format") == "graphmem-export":
            return ImportFormat.GRAPHMEM
        if "edges" in document:
            return ImportFormat.GRAPHITI
        if "records" in document:
            return ImportFormat.RECORDS
        if "messages" in document or "role" in document:
            return ImportFormat.CHAT
        if "results" in document:
            return ImportFormat.MEM0
        if "content" in document:
            return ImportFormat.RECORDS
    if isinstance(document, list):
        for entry in document:
            if not isinstance(entry, dict):
                continue
            if "memory" in entry:
                return ImportFormat.MEM0
            if {"role", "messages"} & entry.keys():
                return ImportFormat.CHAT
            if "content" in entry:
                return ImportFormat.RECORDS
    raise InvalidInput(
        "Unknown import format: give an export of graphmem (`format: graphmem-export`), records (`records`, "
        "or `content` without a role), an export of mem0 (`results`) or of Graphiti (`nodes` and `edges`), or a chat "
        "log (`role` and `content`)."
    )


def to_invalid_input(error: ValidationError, path: Sequence[str | int], what: str) -> InvalidInput:
    """Return a validation error as InvalidInput, without quoting values."""
    detail = f"The import does not have the form of {what}."
    return invalid_input_from(error, detail, path=path, max_errors=MAX_REPORTED_ERRORS)


def _parse_text(raw: bytes) -> Any:
    """Return the value of a text; bytes that are not UTF-8 become lone surrogates, which entries must not contain."""
    text = raw.decode("utf-8-sig", "surrogateescape")
    if not text.lstrip().startswith(("{", "[")):
        return parse_yaml(text)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InvalidInput(f"The import is nested deeper than {MAX_JSON_DEPTH} levels.") from error
    except json.JSONDecodeError as error:
        if lines := _parse_lines(text):
            return lines
        problem = {"loc": [], "msg": f"is not valid JSON at line {error.lineno}, column {error.colno}"}
        raise InvalidInput(f"The import is not JSON: see line {error.lineno}.", errors=[problem]) from error
    except ValueError as error:  # an integer with more digits than Python reads
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error


def _parse_lines(text: str) -> list[Any]:
    """Return the values of JSONL lines; empty for other texts, whose lines are not objects."""
    values = [_parse_line(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    objects = [isinstance(value, dict) for value in values]
    is_jsonl = len(values) > 1 and (objects[0] or 2 * sum(objects) > len(objects))
    return values if is_jsonl else []


def _parse_line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return UnreadableLine(number)


_TAG_PREFIX = "tag:yaml.org,2002:"
_JSON_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")


MAX_YAML_EVENTS = 10_000_000
"""Names, values, and ends of lists and objects in YAML, at 7 µs each; an export of 25,000 vectors has as many."""


def parse_yaml(text: str) -> Any:
    """Return the value of YAML.

    Raises InvalidInput for invalid YAML, for aliases and deep nesting, which make small texts expensive, and for more
    values than people write.
    """
    loader = _json_types_loader()
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, loader)):
            if number > MAX_YAML_EVENTS:
                raise InvalidInput(f"The import has more than {MAX_YAML_EVENTS:,} names and values in YAML: use JSON.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_JSON_DEPTH or isinstance(event, yaml.AliasEvent):
                raise InvalidInput(f"The import has aliases or more than {MAX_JSON_DEPTH} levels.")
        return yaml.load(text, loader)
    except (yaml.YAMLError, ValueError, LookupError) as error:  # `!!bool x` is a KeyError, `!!int ""` an IndexError
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error


def _json_types_loader() -> type[yaml.SafeLoader]:
    """Return a loader of JSON types, which reads times as text and refuses tags such as `!!binary` and `!!set`."""
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    known = {None, *(_TAG_PREFIX + name for name in _JSON_TYPES)}
    return type(
        "JsonTypesLoader",
        (base,),
        {
            "yaml_constructors": {tag: make for tag, make in base.yaml_constructors.items() if tag in known},
            "yaml_implicit_resolvers": {
                first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG_PREFIX + "timestamp"]
                for first, resolvers in base.yaml_implicit_resolvers.items()
            },
        },
    )


_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)


def parse_time(value: object, *, days: int = 0) -> object:
    """Return another system's time as one with an offset; return other values unchanged, to be refused.

    Numbers count seconds, milliseconds, microseconds or nanoseconds since 1970. A date means its first moment in UTC
    plus `days`; a time without an offset is in UTC. Numbers of nine or more digits may be written as text.
    """
    try:
        moment = read_timestamp(value)
        return _from_text(moment.strip(), days) if isinstance(moment, str) else moment
    except (ValueError, OverflowError):
        return value


def _from_text(text: str, days: int) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        if text.isdigit():  # a year, otherwise read as seconds
            raise
        moment = _DATETIME.validate_python(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return datetime.combine(day, time(), UTC) + timedelta(days=days)


ImportedTime = Annotated[Instant, BeforeValidator(parse_time)]
"""A time in UTC, read by `parse_time`."""

ImportedEnd = Annotated[Instant, BeforeValidator(lambda value: parse_time(value, days=1))]
"""A time in UTC like `ImportedTime`, except that a date means its end, so that it is included."""

ImportedLocalTime = Annotated[ZonedDatetime, BeforeValidator(parse_time)]
"""A time with its offset, read by `parse_time`."""


NO_PLACE = "graphmem has no place for it"
"""Why a part of a document is not imported."""


class _ChatMessage(BaseModel):
    """A message; unknown members become metadata."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)

    role: str
    content: Annotated[str, Field(coerce_numbers_to_str=False)] | list[dict[str, Any]] | None = None
    id: Id | None = None
    name: str | None = None
    timestamp: ImportedLocalTime | None = None
    created_at: ImportedLocalTime | None = None
    session_id: SessionId | None = None
    conversation_id: SessionId | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class _ChatConversation(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    messages: list[Any]
    session_id: SessionId | None = None
    conversation_id: SessionId | None = None
    id: SessionId | None = None


_FIELDS_OF_MESSAGES = MessageIn.model_fields.keys() - _ChatMessage.model_fields.keys()
"""Fields of a graphmem message that chat logs in general lack."""


@dataclass(slots=True)
class ParsedChatLog(ParsedEntries):
    """The messages of a chat log in batches of one session each, and the rejected entries."""

    batches: list[MessagesIn] = field(default_factory=list)


def parse_chat_log(document: Any) -> ParsedChatLog:
    """Return the conversations of a chat log; raise InvalidInput for another format.

    Missing session and message ids are derived from the content, so that importing again finds the same ones.
    """
    parsed = ParsedChatLog("a chat log")
    for path, conversation in _split_conversations(document, parsed):
        session = (
            conversation.session_id
            or conversation.conversation_id
            or conversation.id
            or _derive_session_id(conversation.messages)
        )
        messages = _parse_messages(conversation, path, session, parsed)
        for session_id, turns in groupby(messages, key=lambda entry: entry[0]):
            for batch in split_into_batches([message for _, message in turns]):
                parsed.batches.append(MessagesIn(session_id=session_id, messages=batch))
    parsed.refuse_if_malformed(unless=bool(parsed.batches))
    if not parsed.batches and not parsed.rejected:
        raise InvalidInput("The chat log contains no messages.")
    return parsed


def derive_message_id(session: str, message: dict[str, Any], seen_contents: Counter[str]) -> str:
    """Return an id derived from a message.

    `seen_contents` counts equal messages of a session, so that they get different ids.
    """
    content = json.dumps([session, message], sort_keys=True, ensure_ascii=False)
    seen_contents[content] += 1
    return (
        "line-" + hashlib.sha256(f"{seen_contents[content]}{content}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    )


def _split_conversations(document: Any, parsed: ParsedChatLog) -> Iterator[tuple[DocumentPath, _ChatConversation]]:
    """Yield each conversation with the path of its messages."""
    whole = [document] if isinstance(document, dict) and "messages" not in document else document
    if isinstance(whole, list) and not any(isinstance(item, dict) and "messages" in item for item in whole):
        yield (), _ChatConversation(messages=whole)
        return
    several = isinstance(whole, list)
    for index, item in enumerate(whole if several else [whole]):
        path: DocumentPath = (index,) if several else ()
        outer = {**item, "messages": []} if isinstance(item, dict) and isinstance(item.get("messages"), list) else item
        conversation = parsed.parse(path, _ChatConversation, outer)
        if conversation is not None:
            parsed.reject_members(item, _ChatConversation.model_fields.keys(), NO_PLACE, path)
            yield (*path, "messages"), conversation.model_copy(update={"messages": item["messages"]})


def _parse_messages(
    conversation: _ChatConversation, path: DocumentPath, session: str, parsed: ParsedChatLog
) -> Iterator[tuple[str, MessageIn]]:
    """Yield messages with their session ids."""
    seen_contents: Counter[str] = Counter()
    for index, raw in enumerate(conversation.messages):
        at = (*path, index)
        turn = parsed.parse(at, _ChatMessage, raw)
        if turn is None:
            continue
        text = _join_text_parts(turn.content)
        if not text.strip():
            parsed.reject(at, turn.id, "it has no text")
            continue
        for part, content in enumerate(turn.content if isinstance(turn.content, list) else []):
            if not _join_text_parts([content]):
                parsed.reject((*at, "content", part), turn.id, "a part without text is not imported")
        session_id = turn.session_id or turn.conversation_id or session
        message = _to_message_fields(turn, text)
        message["id"] = turn.id or derive_message_id(session_id, _identifying(turn, message), seen_contents)
        valid = parsed.validate(at, MessageIn, message, turn.id)
        if valid is not None and text_length(valid) > MAX_REQUEST_TEXT:
            parsed.reject(at, turn.id, f"it has more than {MAX_REQUEST_TEXT} characters")
        elif valid is not None:
            yield session_id, valid


def _to_message_fields(turn: _ChatMessage, text: str) -> dict[str, Any]:
    extra = {name: value for name, value in (turn.model_extra or {}).items() if not is_empty(value)}
    fields = {name: extra.pop(name) for name in _FIELDS_OF_MESSAGES & extra.keys()}
    return {
        "role": turn.role,
        "content": text,
        "name": turn.name or None,
        "timestamp": turn.timestamp or turn.created_at,
        "metadata": {**extra, **turn.metadata},
        **fields,
    }


def _identifying(turn: _ChatMessage, message: dict[str, Any]) -> dict[str, Any]:
    """Return the content from which a missing message id is derived."""
    moment = message["timestamp"]
    known = {name: message[name] for name in ("role", "content", "name")}
    known["timestamp"] = moment.isoformat() if moment else None
    return {name: value for name, value in known.items() if value is not None}


def _join_text_parts(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a message; its content may be a list of parts, some without text."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or []]
    parts = [text.get("value") if isinstance(text, dict) else text for text in texts]
    return "\n".join(text for text in parts if isinstance(text, str))


def _derive_session_id(messages: list[Any]) -> str:
    readable = [message for message in messages if not isinstance(message, UnreadableLine)]
    try:
        serialized = json.dumps(readable, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError):  # YAML has keys of other types, and longer integers
        serialized = repr(readable)
    return "import-" + hashlib.sha256(serialized.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_NON_TAG_CHARS = re.compile(r"[^\w:./-]+")

_COMPUTED_BY_MEM0 = frozenset({"hash", "score"})
"""Values that mem0 computes from a memory's text or for a search."""


class _Mem0Memory(BaseModel):
    """A memory; unknown members become metadata."""

    model_config = ConfigDict(extra="allow")

    id: ElementId
    memory: str
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: ImportedTime | None = None
    updated_at: ImportedTime | None = None
    expiration_date: ImportedEnd | None = None
    user_id: str | None = None
    run_id: SessionId | None = None
    immutable: bool | None = None


class _Mem0Page(BaseModel):
    results: list[Any]


def parse_mem0(document: Any, user_id: str) -> ParsedStatements:
    """Return the memories of a mem0 export for one user; raise InvalidInput for another format.

    If the export has several users, memories of other users are rejected.
    """
    path: DocumentPath = () if isinstance(document, list) else ("results",)
    try:
        entries = document if isinstance(document, list) else _Mem0Page.model_validate(document).results
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export of mem0") from None
    statements = ParsedStatements("an export of mem0")
    memories = [
        ((*path, index), memory)
        for index, entry in enumerate(entries)
        if (memory := statements.parse((*path, index), _Mem0Memory, entry))
    ]
    statements.refuse_if_malformed(unless=bool(memories))
    users = {memory.user_id for _, memory in memories if memory.user_id is not None}
    for at, memory in memories:
        if len(users) > 1 and memory.user_id != user_id:
            statements.reject(at, memory.id, "it belongs to another user")
            continue
        provenance = ImportProvenance(f"{ImportFormat.MEM0}:{memory.id}", memory.created_at, memory.updated_at)
        statements.add(at, memory.id, provenance, _memory_fields(at, memory, statements))
    if isinstance(document, dict):
        _reject_rest_of_page(document, statements)
    return statements


def _reject_rest_of_page(page: dict[str, Any], statements: ParsedStatements) -> None:
    """Report the members of a page besides its memories, and that more pages follow."""
    relations = page.get("relations")
    for index, _ in enumerate(relations if isinstance(relations, list) else []):
        statements.reject(("relations", index), None, "a relation has neither a sentence nor a time")
    if not is_empty(page.get("next")):
        statements.reject(("next",), None, "the export has further pages: import them too")
    statements.reject_members(page, ("results", "relations", "count", "next", "previous"), NO_PLACE)


def _memory_fields(path: DocumentPath, memory: _Mem0Memory, statements: ParsedStatements) -> dict[str, Any]:
    metadata = dict(memory.metadata or {})
    given = {**(memory.model_extra or {}), "run_id": memory.run_id}
    for name, value in given.items():
        if is_empty(value) or name in _COMPUTED_BY_MEM0:
            continue
        if metadata.setdefault(name, value) != value:
            statements.reject((*path, name), memory.id, "its metadata has another value of that name")
    statement: dict[str, Any] = {
        "content": memory.memory,
        "metadata": metadata,
        "tags": [tag for category in memory.categories or [] if (tag := _NON_TAG_CHARS.sub("-", category).strip("-"))],
        "expires_at": memory.expiration_date,
        "immutable": bool(memory.immutable),
    }
    if memory.run_id:
        statement["source"] = {"session_id": memory.run_id}
    return statement
