"""The tools for models: each makes one client call, and returns only the parts of the result that a model needs.

A model chooses between tools by their names and docstrings, and pays for every token of them and of their answers.
Stored text is fenced: in an answer, no text opens or closes a tag, and only `WHOLE_TEXTS` have several lines.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from graphmem.context.relevance import statements_first
from graphmem.memories.memory import Memory, SaveAction, SaveResult, Scope
from graphmem.runtime.errors import Forbidden, GraphmemError, InvalidInput
from graphmem.runtime.tracing import span
from graphmem.text.added_texts import fence_text, fence_values

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.search.models import MessageHit

NOTHING_FOUND = "Nothing is remembered about this: ask the user, or look in other sources."
ONLY_MESSAGES = "No memory fits; these are messages of earlier conversations."

MAX_TEXT = 600
"""Most characters of a memory or message in an answer; longer ones are cut."""

MAX_ANSWER = 16_000
"""Most characters of an answer; a longer list is cut, and the answer says so."""

MAX_SHOWN_CONFLICTS = 3
"""Most memories that a save lists as contradicted."""

WHOLE_TEXTS = frozenset({"preamble", "answer"})
"""Parts of an answer that keep their lines: contexts, which are already fenced, and text by a model."""

MEMORY_TYPES = (
    "fact, preference, plan, feeling, recommendation, open_loop, conversation_summary, persona, personal_info"
)

_NON_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")

Content = Annotated[str, Field(description="One self-contained sentence in the third person, with names.")]
MemoryId = Annotated[str, Field(description="Id of a memory, from search_memory.")]
Names = Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
"""Names; models write a single one without a list."""
Tags = Annotated[Names, Field(description="Topics.")]
Share = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=50)]
Time = Annotated[str | None, Field(description="RFC 3339 with offset.")]
AsOf = Annotated[str | None, Field(description="Answer for this time, RFC 3339; default: now.")]
MinTrust = SkipJsonSchema[str | None]
"""The least trusted source to include; for the program around the model, so that no schema shows it."""
SessionId = Annotated[str | None, Field(description="Id of this conversation, if it is stored.")]


@dataclass(frozen=True, slots=True)
class UserMemory:
    """The memory of a connection: a user, and a client in this process or over HTTP."""

    client: AsyncClient
    user_id: str


GetMemory = Callable[[ToolCall], UserMemory]
"""Returns the memory of a tool call; no tool argument names it."""

P = ParamSpec("P")


def answers(tool: Callable[P, Awaitable[Mapping[str, Any]]]) -> Callable[P, Coroutine[Any, Any, str]]:
    """Make a tool answer with compact JSON and raise tool errors, whose text the model reads."""

    @functools.wraps(tool)
    async def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            with span(f"tool {tool.__name__}"):
                return to_json(fence_answer(await tool(*args, **kwargs)))
        except GraphmemError as error:
            later = f" Try again in {error.retry_after} s." if error.retry_after else ""
            raise ToolError(f"{error.title}: {error.detail}{later}") from error

    run.__annotations__ = {**tool.__annotations__, "return": str}
    return run


class MemoryTools:
    """The tools of one server."""

    def __init__(self, get_memory: GetMemory) -> None:
        self._get_memory = get_memory

    @answers
    async def save_memory(
        self,
        call: ToolCall,
        content: Content,
        type: Annotated[str, Field(description=f"One of {MEMORY_TYPES}.")] = "fact",
        topic_tags: Tags = [],  # noqa: B006 - a schema's default, never changed
        confidence: Annotated[Share, Field(description="1: the user said so; less when you infer.")] = 1.0,
        importance: Share = 0.5,
        about: Annotated[Names, Field(description="Names of who or what it is about, besides the user.")] = [],  # noqa: B006
        domain: Annotated[str | None, Field(description="Area in which alone it matters, such as cooking.")] = None,
        scope: Annotated[
            Literal["profile", "domain", "episodic"] | None, Field(description="episodic: this conversation only.")
        ] = None,
        valid_at: Annotated[str | None, Field(description="Since when it is true, RFC 3339 with offset.")] = None,
        invalid_at: Annotated[str | None, Field(description="Until when.")] = None,
        expires_at: Annotated[str | None, Field(description="When to stop recalling it.")] = None,
        supersedes: Annotated[Names, Field(description="Ids of memories that it replaces.")] = [],  # noqa: B006
        space: Annotated[str | None, Field(description="Id of the shared space to save it in.")] = None,
    ) -> Mapping[str, Any]:
        """Save one statement worth knowing in later conversations, or what the user asks you to remember.

        Call it once for each statement. Not for small talk, temporary states or secrets. If the user asked for it, tell
        them the `confirmation`; a `reason` instead means that it was not saved. If `may_contradict` lists a memory that
        is outdated now, save again with its id in `supersedes`.
        """
        statement = {
            "content": content,
            "type": type,
            "tags": topic_tags,
            "confidence": confidence,
            "importance": importance,
            "entities": [{"name": name} for name in about],
            "domain": domain,
            "scope": scope,
            "valid_at": valid_at,
            "invalid_at": invalid_at,
            "expires_at": expires_at,
            "supersedes": supersedes,
            "space": space,
        }
        return await self._save(call, statement)

    @answers
    async def search_memory(
        self,
        call: ToolCall,
        query: Annotated[str, Field(description="What to look for, in plain words.")],
        filters: Annotated[
            dict[str, Any],
            Field(
                description="Any of: types [], tags {any, all, none}, entity, domain, scope, metadata {}, "
                "min_confidence, min_importance, created_after, created_before, valid_as_of, known_as_of, spaces []."
            ),
        ] = {},  # noqa: B006
        limit: Limit = 5,
        cut: Annotated[str, Field(description="auto: only what fits, possibly nothing; none: the nearest.")] = "none",
        min_score: Share = 0.0,
    ) -> Mapping[str, Any]:
        """Search what is remembered about the user, by meaning and words, before you answer.

        Use it whenever the answer may depend on the user, their people, plans, preferences or earlier conversations.
        Look here first, in other sources only when nothing fits.
        """
        memory = self._get_memory(call)
        given: Any = {**filters, "limit": limit, "cut": cut, "min_score": min_score, "include_messages": True}
        response = await memory.client.search(memory.user_id, query, **given)
        found = [_describe(hit.memory, score=round(hit.score, 2)) for hit in response.results]
        messages = [_describe_message(hit) for hit in statements_first(response.messages)[:limit]]
        if response.has_fitting or (found and not messages):
            return {"memories": found}
        nearest = {"memories": found} if found else {}
        return nearest | {"messages": messages, "hint": ONLY_MESSAGES if messages else NOTHING_FOUND}

    @answers
    async def lookup_entity(
        self,
        call: ToolCall,
        text: Annotated[str, Field(description="A name, or a text that names people, places or things.")],
        limit: Limit = 10,
        valid_as_of: AsOf = None,
        known_as_of: AsOf = None,
    ) -> Mapping[str, Any]:
        """Look up what is known about the people, places and things that a text names; the fastest tool."""
        memory = self._get_memory(call)
        times: Any = _given(valid_as_of=valid_as_of, known_as_of=known_as_of)
        response = await memory.client.lookup(memory.user_id, text, limit=limit, **times)
        entities = [
            _given(
                id=match.entity.id,
                name=match.entity.name,
                type=match.entity.type,
                aliases=match.entity.aliases,
                profile=match.profile and match.profile.content,
                memories=[_describe(one) for one in match.memories],
            )
            for match in response.entities
        ]
        return {"entities": entities} if entities else {"hint": NOTHING_FOUND}

    @answers
    async def update_memory(
        self,
        call: ToolCall,
        memory_id: Annotated[str | None, Field(description="Id of the memory to correct.")] = None,
        content: Annotated[str | None, Field(description="What it should say.")] = None,
        type: str | None = None,
        topic_tags: Names | None = None,
        confidence: Share | None = None,
        importance: Share | None = None,
        valid_at: Time = None,
        invalid_at: Time = None,
        key: Annotated[str | None, Field(description="Instead of memory_id: an attribute, such as server_os.")] = None,
        value: Annotated[str | None, Field(description="With key: its value from now on.")] = None,
    ) -> Mapping[str, Any]:
        """Correct a memory that is wrong or incomplete; its history stays.

        With `key` and `value` instead, set an attribute of the user. When a statement was true but the world has
        changed, use save_memory with `supersedes`.
        """
        changes: Any = _given(
            content=content,
            type=type,
            tags=topic_tags,
            confidence=confidence,
            importance=importance,
            valid_at=valid_at,
            invalid_at=invalid_at,
        )
        if memory_id is None and key and value and not changes:
            return await self._save(call, _attribute_statement(key, value))
        if memory_id is None or not changes or key or value:
            raise InvalidInput("Give memory_id and the fields to change, or only key and value.")
        memory = await self._require_own(call, memory_id)
        changed = await memory.client.update(memory.user_id, memory_id, **changes)
        if changed.status == "contested":
            return {"memory_id": changed.id, "reason": "a more trusted source says otherwise: ask the user"}
        return {"memory_id": changed.id, "confirmation": f"Noted: {_cut(changed.content)}"}

    @answers
    async def delete_memory(self, call: ToolCall, memory_id: MemoryId) -> Mapping[str, Any]:
        """End a memory when the user takes it back or asks you to forget it; only its history stays."""
        memory = await self._require_own(call, memory_id)
        return {"deleted": _describe(await memory.client.delete(memory.user_id, memory_id))}

    @answers
    async def memory_history(self, call: ToolCall, memory_id: MemoryId) -> Mapping[str, Any]:
        """Read every version of a memory, oldest first: what was believed when, why it ended, what replaced it."""
        memory = self._get_memory(call)
        return {
            "versions": [
                {
                    "version": version.version,
                    **_describe(version),
                    **_given(
                        replaces=version.supersedes,
                        ended_at=_time(version.expired_at),
                        ended_reason=version.ended_reason,
                        ended_by=version.ended_by,
                    ),
                }
                for version in await memory.client.history(memory.user_id, memory_id)
            ]
        }

    @answers
    async def get_context(
        self,
        call: ToolCall,
        question: Annotated[str | None, Field(description="What the user asks, in their words.")] = None,
        session_id: SessionId = None,
        domain: Annotated[str | None, Field(description="Area the question is about.")] = None,
        tags: Annotated[dict[str, Any], Field(description="Only memories with these: {any, all, none}.")] = {},  # noqa: B006
        token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2_000,
        valid_as_of: AsOf = None,
        known_as_of: AsOf = None,
        min_trust: MinTrust = None,
    ) -> Mapping[str, Any]:
        """Get what is known that helps with a question, as one text; without a question, what opens a conversation.

        `sufficient` says whether memory holds an answer. Greet with `greeting`, come back to `open_loops`.
        """
        memory = self._get_memory(call)
        given: Any = _given(
            session_id=session_id,
            domain=domain,
            tags=tags,
            token_budget=token_budget,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
            min_trust=min_trust,
        )
        response = await memory.client.context(memory.user_id, question, **given)
        hints = response.personalization_hints
        return _given(
            preamble=response.preamble,
            context_id=response.context_id,
            sufficient=hints.knowledge.sufficient,
            pointers=hints.knowledge.pointers,
            greeting=hints.greeting,
            open_loops=hints.open_loops,
            past_fixes=[{"content": fix.content, "outcome": fix.outcome} for fix in hints.past_solutions],
        )

    @answers
    async def ask_memory(
        self,
        call: ToolCall,
        question: Annotated[str, Field(description="One question, in full.")],
        session_id: SessionId = None,
        valid_as_of: AsOf = None,
        known_as_of: AsOf = None,
        min_trust: MinTrust = None,
    ) -> Mapping[str, Any]:
        """Ask memory a question that takes several memories together, such as how many, how long, or what changed.

        The answer quotes its sources; nothing that it does not quote is known.
        """
        memory = self._get_memory(call)
        given: Any = _given(
            session_id=session_id, valid_as_of=valid_as_of, known_as_of=known_as_of, min_trust=min_trust
        )
        response = await memory.client.ask(memory.user_id, question, **given)
        citations = [
            _given(
                memory_id=cited.memory_id,
                message_id=cited.message_id,
                quote=_cut(cited.quote),
                valid_at=_time(cited.valid_at),
            )
            for cited in response.citations
        ]
        if not response.answered:
            return {"answered": False, "hint": NOTHING_FOUND}
        return {"answered": True, "answer": response.answer, "citations": citations}

    async def _save(self, call: ToolCall, statement: Mapping[str, Any]) -> Mapping[str, Any]:
        memory = self._get_memory(call)
        (result,) = await memory.client.add(memory.user_id, _given(**statement))
        if result.memory is None:
            return {"action": result.action.value, "reason": result.reason}
        shown = {
            "action": result.action.value,
            "memory_id": result.memory.id,
            "replaced": await self._show(memory, result.superseded),
        }
        if result.action is SaveAction.CONTEST:
            return _given(**shown, reason=result.reason, contradicts=await self._show(memory, _contested(result)))
        conflicts = await self._show(memory, result.related)
        return _given(
            **shown, may_contradict=conflicts, confirmation=f"Noted, I'll remember: {_cut(result.memory.content)}"
        )

    @staticmethod
    async def _show(memory: UserMemory, memory_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the texts of memories, by which a model recognises contradictions."""
        shown = [*memory_ids][:MAX_SHOWN_CONFLICTS]
        return [_describe(await memory.client.memory(memory.user_id, memory_id)) for memory_id in shown]

    async def _require_own(self, call: ToolCall, memory_id: str) -> UserMemory:
        """Return the memory of a call; raise Forbidden for the id of a global memory, which all users read."""
        memory = self._get_memory(call)
        if (await memory.client.memory(memory.user_id, memory_id)).scope is Scope.GLOBAL:
            raise Forbidden("All users read this memory: only an administrator can change it.")
        return memory


def fence_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its texts fenced."""
    return {name: fence_text(part) if name in WHOLE_TEXTS else fence_values(part) for name, part in answer.items()}


def to_json(answer: Mapping[str, Any]) -> str:
    """Return an answer as compact JSON of at most `MAX_ANSWER` characters, cutting its longest list to fit."""
    text = _dump(answer)
    while len(text) > MAX_ANSWER:
        name, items = max(
            ((name, value) for name, value in answer.items() if isinstance(value, list)),
            key=lambda item: len(_dump(item[1])),
            default=("", []),
        )
        if not items:
            return text[:MAX_ANSWER]
        kept = items[: len(items) * MAX_ANSWER // len(text)]
        answer = {**answer, name: kept, "left_out": answer.get("left_out", 0) + len(items) - len(kept)}
        text = _dump(answer)
    return text


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}


def _describe(memory: Memory, *, score: float | None = None) -> dict[str, Any]:
    """Return the parts of a memory that a model needs; omit the tags and metadata of others' text."""
    is_of_others = memory.source.is_of_others
    return _given(
        id=memory.id,
        content=_cut(memory.content),
        type=memory.subtype or memory.type.value,
        status=None if memory.status == "active" else memory.status.value,
        tags=None if is_of_others else memory.tags,
        domain=memory.domain,
        space=memory.space,
        said_by=memory.source.said_by,
        confidence=None if memory.confidence >= 1 else round(memory.confidence, 2),
        valid_at=_time(memory.valid_at),
        invalid_at=_time(memory.invalid_at),
        told_at=_time(memory.created_at),
        metadata=None if is_of_others else memory.metadata,
        score=score,
    )


def _describe_message(hit: MessageHit) -> dict[str, Any]:
    message = hit.message
    said_by = message.said_by if message.is_of_others else message.speaker
    return _given(said_by=said_by, said_at=_time(message.timestamp), content=_cut(message.content))


def _contested(result: SaveResult) -> list[str]:
    return list(getattr(result.memory, "contests", None) or [])


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z") if moment else None


def predicate_from_key(key: str) -> str:
    """Return the predicate for an attribute's key; raise InvalidInput for an unusable key."""
    words = "_".join(word for word in _NON_ALPHANUMERIC.split(key) if word).upper()[:64]
    if not words or not words[0].isalpha():
        raise InvalidInput("key must begin with a Latin letter, as in server_os.")
    return words


def _attribute_statement(key: str, value: str) -> dict[str, Any]:
    """Return the statement that gives an attribute of the user a value."""
    return {
        "content": f"{key.replace('_', ' ').strip()}: {value.strip()}",
        "predicate": predicate_from_key(key),
        "single_valued": True,
        "confidence": 1.0,
    }
