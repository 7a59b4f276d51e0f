"""Documents of other systems as statements: mem0, Graphiti and chat logs. Pure.

A log is a list or JSONL of `{role, content}`, `{"messages": […]}`, or a list of the latter, one per conversation.

A live graph is read as such a document too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from graphmem.conversations.session import (
    MessageIn,
    MessageRole,
    MessagesIn,
    split_into_batches,
)
from graphmem.memories.entity import parse_entity_type
from graphmem.memories.fact import ImportProvenance
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import Id
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import describe_field_errors, field_errors
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.models import ImportFormat, ParsedStatements, RejectedEntry

ROLE_ALIASES = {"developer": "system", "function": "tool"}
"""Roles of OpenAI's API by the name that graphmem gives them."""

DocumentPath = tuple[str | int, ...]


class _ChatMessage(BaseModel):
    role: str
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    name: str | None = None
    timestamp: str | None = None
    created_at: str | int | float | None = None


class _ChatConversation(BaseModel):
    messages: list[Any]
    session_id: Id | None = None
    conversation_id: Id | None = None
    id: Id | None = None


@dataclass(slots=True)
class ParsedChatLog:
    """The messages of a chat log in batches of one session each, and the messages that were rejected."""

    batches: list[MessagesIn] = field(default_factory=list)
    rejected: list[RejectedEntry] = field(default_factory=list)


def parse_chat_log(document: Any) -> ParsedChatLog:
    """Return the conversations of a chat log; raise InvalidInput for another format.

    Missing ids of sessions and messages are derived from the content, so that a second import finds the same ones.
    """
    parsed = ParsedChatLog()
    for path, conversation in _split_conversations(document):
        session = (
            conversation.session_id
            or conversation.conversation_id
            or conversation.id
            or _derive_session_id(conversation.messages)
        )
        messages = list(_parse_messages(conversation, path, session, parsed.rejected))
        parsed.batches += (MessagesIn(session_id=session, messages=batch) for batch in split_into_batches(messages))
    if not parsed.batches and not parsed.rejected:
        raise InvalidInput("The chat log contains no messages.")
    return parsed


def derive_message_id(session: str, message: dict[str, Any], seen_contents: Counter[str]) -> str:
    """Return an id derived from a message.

    `seen_contents` counts the equal messages of a session, which get different ids.
    """
    content = json.dumps([session, message], sort_keys=True, ensure_ascii=False)
    seen_contents[content] += 1
    return (
        "line-" + hashlib.sha256(f"{seen_contents[content]}{content}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    )


def _split_conversations(document: Any) -> Iterator[tuple[DocumentPath, _ChatConversation]]:
    """Yield each conversation with the path of its messages."""
    whole = [document] if isinstance(document, dict) and "messages" not in document else document
    if isinstance(whole, list) and not any(isinstance(item, dict) and "messages" in item for item in whole):
        yield (), _ChatConversation(messages=whole)
        return
    several = isinstance(whole, list)
    for index, item in enumerate(whole if several else [whole]):
        path: DocumentPath = (index,) if several else ()
        try:
            yield (*path, "messages"), _ChatConversation.model_validate(item)
        except ValidationError as error:
            raise to_invalid_input(error, path, "a chat log") from None


def _parse_messages(
    conversation: _ChatConversation, path: DocumentPath, session: str, rejected: list[RejectedEntry]
) -> Iterator[MessageIn]:
    seen_contents: Counter[str] = Counter()
    for index, raw in enumerate(conversation.messages):
        at = (*path, index)
        try:
            turn = _ChatMessage.model_validate(raw)
            text = _join_text_parts(turn.content)
            if not text.strip():
                rejected.append(RejectedEntry(loc=list(at), id=turn.id, reason="it has no text"))
                continue
            message = {
                "role": ROLE_ALIASES.get(turn.role, turn.role),
                "content": text,
                "name": turn.name,
                "timestamp": turn.timestamp or _to_rfc3339(turn.created_at),
            }
            message = {key: value for key, value in message.items() if value is not None}
            message["id"] = turn.id or derive_message_id(session, message, seen_contents)
            yield MessageIn.model_validate(message)
        except ValidationError as error:
            raise to_invalid_input(error, at, "a chat log") from None


def _join_text_parts(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a message; content may be a list of parts, of which only some have text."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or []]
    parts = [text.get("value") if isinstance(text, dict) else text for text in texts]
    return "\n".join(text for text in parts if isinstance(text, str))


def _to_rfc3339(value: str | float | None) -> str | None:
    """Return a creation time as RFC 3339; OpenAI's API gives seconds since 1970."""
    if not isinstance(value, int | float):
        return value
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return str(value)


def _derive_session_id(messages: list[Any]) -> str:
    serialized = json.dumps(messages, sort_keys=True, ensure_ascii=False)
    return "import-" + hashlib.sha256(serialized.encode("utf-8", "surrogatepass")).hexdigest()[:16]


EPISODES_SESSION = "graphiti"
"""The session of the messages that Graphiti's episodes become."""

_NON_PREDICATE_CHARS = re.compile(r"[^A-Z0-9]+")


class _Node(BaseModel):
    uuid: str = Field(min_length=1)
    name: str
    labels: list[str] = Field(default_factory=list)
    summary: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)


class _Episode(BaseModel):
    uuid: str = Field(min_length=1)
    content: str
    name: str = ""
    source: str = "message"
    source_description: str = ""
    valid_at: Instant | None = None
    created_at: Instant | None = None


class _Edge(BaseModel):
    uuid: str = Field(min_length=1)
    fact: str
    name: str = ""
    source_node_uuid: str
    target_node_uuid: str
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    created_at: Instant | None = None
    expired_at: Instant | None = None
    episodes: list[str] | None = None
    attributes: dict[str, Any] | None = None


class _GraphitiGraph(BaseModel):
    nodes: list[_Node]
    edges: list[_Edge]
    episodes: list[_Episode] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """The summary and the attributes of an entity; `path` is its place in the document."""

    path: tuple[str | int, ...]
    id: str
    name: str
    summary: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedGraph:
    """The facts of a Graphiti graph, the details of its entities, and its episodes in batches of messages."""

    statements: ParsedStatements
    details: list[NodeDetails]
    batches: list[MessagesIn]


def parse_graphiti(document: Any) -> ParsedGraph:
    """Return the facts of a Graphiti export with valid and known times; raise InvalidInput for another format.

    Nodes without an edge are not imported. Episodes become messages of the session `graphiti`, whose ids are the
    message ids of the facts that rest on them.
    """
    try:
        graph = _GraphitiGraph.model_validate(document)
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export of Graphiti") from None
    nodes = {node.uuid: node for node in graph.nodes}
    statements = ParsedStatements()
    for index, edge in enumerate(graph.edges):
        path = ("edges", index)
        if not {edge.source_node_uuid, edge.target_node_uuid} <= nodes.keys():
            statements.reject(path, edge.uuid, "a node at one of its ends is not in the export")
            continue
        provenance = ImportProvenance(
            f"{ImportFormat.GRAPHITI}:{edge.uuid}", edge.created_at, edge.created_at, edge.expired_at
        )
        statements.add(path, edge.uuid, provenance, _edge_fields(edge, nodes))
    named = {key for edge in graph.edges for key in (edge.source_node_uuid, edge.target_node_uuid)}
    details = [
        NodeDetails(("nodes", index), node.uuid, node.name, node.summary, node.attributes)
        for index, node in enumerate(graph.nodes)
        if node.uuid in named and (node.summary.strip() or node.attributes)
    ]
    return ParsedGraph(statements, details, list(_to_batches(graph.episodes, statements)))


def _to_batches(episodes: Sequence[_Episode], statements: ParsedStatements) -> Iterator[MessagesIn]:
    """Yield the episodes as messages of one session, in their order; those without a usable text are rejected."""
    messages: list[MessageIn] = []
    for index, episode in enumerate(episodes):
        try:
            messages.append(MessageIn.model_validate(_to_message_fields(episode)))
        except ValidationError as error:
            statements.reject(("episodes", index), episode.uuid, describe_field_errors(field_errors(error)[:1]))
    for batch in split_into_batches(messages):
        yield MessagesIn(session_id=EPISODES_SESSION, messages=batch, extract=False)


def _to_message_fields(episode: _Episode) -> dict[str, Any]:
    described = {"name": episode.name, "source": episode.source, "source_description": episode.source_description}
    return {
        "id": episode.uuid,
        "role": MessageRole.USER if episode.source == "message" else MessageRole.TOOL,
        "content": episode.content,
        "timestamp": episode.valid_at or episode.created_at,
        "metadata": {name: value for name, value in described.items() if value},
    }


def _edge_fields(edge: _Edge, nodes: dict[str, _Node]) -> dict[str, Any]:
    subject, target = nodes[edge.source_node_uuid], nodes[edge.target_node_uuid]
    return {
        "content": edge.fact,
        "subject": _to_entity_fields(subject),
        "object": None if target is subject else _to_entity_fields(target),
        "predicate": _to_predicate(edge.name),
        "valid_at": edge.valid_at,
        "invalid_at": edge.invalid_at,
        "metadata": edge.attributes or {},
        "source": {"message_ids": edge.episodes} if edge.episodes else None,
    }


def _to_entity_fields(node: _Node) -> dict[str, Any]:
    kinds = [label for label in node.labels if label != "Entity"]
    try:
        kind = parse_entity_type(kinds[0]) if kinds else None
    except ValueError:
        kind = None
    return {"name": node.name, "type": kind}


def _to_predicate(name: str) -> str | None:
    """Return the name of an edge as a predicate; None when it has no letter."""
    word = _NON_PREDICATE_CHARS.sub("_", name.upper()).strip("_0123456789")
    return word[:64] or None


_NON_TAG_CHARS = re.compile(r"[^\w:./-]+")


def _parse_expiration_date(value: object) -> object:
    """Return the end of a date in UTC; return other values unchanged."""
    try:
        day = datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC) if isinstance(value, str) else None
        return day + timedelta(days=1) if day else value
    except (ValueError, OverflowError):
        return value


class _Mem0Memory(BaseModel):
    id: str = Field(min_length=1)
    memory: str
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: Instant | None = None
    updated_at: Instant | None = None
    expiration_date: Annotated[Instant | None, BeforeValidator(_parse_expiration_date)] = None
    user_id: str | None = None
    run_id: str | None = None
    immutable: bool | None = None


_MEMORIES: TypeAdapter[list[_Mem0Memory]] = TypeAdapter(list[_Mem0Memory])


def parse_mem0(document: Any, user_id: str) -> ParsedStatements:
    """Return the memories of a mem0 export for one user; raise InvalidInput for another format.

    If the export has several users, the memories of the others are rejected.
    """
    path: tuple[str | int, ...] = () if isinstance(document, list) else ("results",)
    try:
        memories = _MEMORIES.validate_python(document if isinstance(document, list) else _results(document))
    except ValidationError as error:
        raise to_invalid_input(error, path, "an export of mem0") from None
    statements = ParsedStatements()
    users = {memory.user_id for memory in memories if memory.user_id is not None}
    for index, memory in enumerate(memories):
        at = (*path, index)
        if len(users) > 1 and memory.user_id != user_id:
            statements.reject(at, memory.id, "it belongs to another user")
            continue
        provenance = ImportProvenance(f"{ImportFormat.MEM0}:{memory.id}", memory.created_at, memory.updated_at)
        statements.add(at, memory.id, provenance, _memory_fields(memory))
    relations = document.get("relations") if isinstance(document, dict) else None
    for index, _ in enumerate(relations if isinstance(relations, list) else []):
        statements.reject(("relations", index), None, "a relation has neither a sentence nor a time")
    return statements


def _results(document: Any) -> Any:
    return document.get("results") if isinstance(document, dict) else document


def _memory_fields(memory: _Mem0Memory) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "content": memory.memory,
        "metadata": memory.metadata or {},
        "tags": [tag for category in memory.categories or [] if (tag := _NON_TAG_CHARS.sub("-", category).strip("-"))],
        "expires_at": memory.expiration_date,
        "immutable": bool(memory.immutable),
    }
    if memory.run_id:
        statement["source"] = {"session_id": memory.run_id}
    return statement
