"""The surroundings of a question's hits: messages that may be quoted, related sessions, and message times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.context.models import RelatedSession, Surroundings
from graphmem.conversations.session import TICKET_KEY
from graphmem.memories.filters import FactFilters, TagFilter, known_at_or_now
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.field_types import to_json
from graphmem.runtime.times import MAX_TIME, Clock, from_micros, parse_times
from graphmem.tenants.owners import MessageName, Owner, message_name
from graphmem.tenants.spaces import Reader, ReadScope, scope_of

SESSION_TIME_FIELDS = ("first_at", "last_at", "created_at", "updated_at")
"""The times of a related session in the order in which the query returns them."""

MIN_RELATIVE_SCORE = 0.5
"""Minimum score of a related session, as a share of the best one's."""


@dataclass(frozen=True, slots=True)
class SessionSearch:
    """The criteria for related sessions: the weight of their id plus the share of words in their description.

    A session without a summary is described by its first user messages that `may_quote` permits.
    """

    excluded_id: str | None
    weights: Mapping[str, float]
    words: Sequence[str]
    limit: int
    may_quote: Callable[[str], bool]


class SurroundingsStore:
    """Reads the surroundings of hits; every call names its user."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def load(
        self,
        reader: Reader,
        sessions: SessionSearch,
        *,
        message_ids: Sequence[str],
        dated_ids: Sequence[str],
        valid_as_of: datetime | None,
        known_as_of: datetime | None,
        tags: TagFilter | None = None,
    ) -> Surroundings:
        """Return the messages that may be quoted, the related sessions, and when the messages of `dated_ids` were said.

        A message is not quoted if it had a secret, if a memory taken from it is deleted or superseded as of the two
        times, or if `tags` exclude it. Sessions that changed after one of the times are left out.
        """
        scope = scope_of(reader)
        filters = FactFilters(valid_at=valid_as_of or self._clock(), known_at=known_at_or_now(known_as_of))
        quotable, dated, found = await self._graph.fetch_value_from_any_member(
            "context.load_surroundings",
            group_id=scope.owner.group_id,
            group_ids=scope.group_ids,
            wanted={
                "message_ids": list(message_ids),
                "dated_ids": list(dict.fromkeys(dated_ids)),
                "excluded_session_id": sessions.excluded_id,
                "words": list(sessions.words),
            },
            weights=dict(sessions.weights),
            limit=sessions.limit,
            updated_until=min(filter(None, (valid_as_of, known_as_of)), default=MAX_TIME),
            **filters.as_of_params,
        )
        related = [_related_session(columns, sessions.may_quote) for columns in found]
        return Surroundings(
            quotable=await self._select_tagged(scope, map(message_name, quotable), tags),
            sessions=[
                session
                for session in related
                if session.relevance_score >= MIN_RELATIVE_SCORE * related[0].relevance_score
            ],
            said_at={message_name(key): from_micros(micros) for key, micros in dated},
        )

    async def _select_tagged(
        self, scope: ReadScope, messages: Iterable[MessageName], tags: TagFilter | None
    ) -> frozenset[MessageName]:
        """Return the messages that pass a tag filter; a message has the tags of the memories taken from it."""
        names = frozenset(messages)
        if tags is None or not names:
            return names
        rows = await self._graph.fetch(
            "context.list_tags_of_messages",
            group_ids=scope.group_ids,
            message_ids=[message_id for _, message_id in names],
        )
        found = {message_name(row["message"]): row["tags"] for row in rows}
        excluding = TagFilter(none=tags.none)
        return frozenset(
            name
            for name in names
            if any(map(tags.passes, found.get(name, [[]]))) and all(map(excluding.passes, found.get(name, [])))
        )

    async def find_ticket_sessions(self, owner: Owner, ticket_ids: Sequence[str], *, limit: int) -> list[str]:
        """Return the ids of sessions about tickets, the latest first; ticket ids are in lower case."""
        values: list[str | int] = [value for ticket_id in ticket_ids for value in (ticket_id, f"#{ticket_id}")]
        values += [int(ticket_id) for ticket_id in ticket_ids if ticket_id.isdecimal()]
        rows = await self._graph.fetch(
            "context.find_ticket_sessions",
            group_id=owner.group_id,
            marked=[f"#{ticket_id}" for ticket_id in ticket_ids],
            fields=[to_json({TICKET_KEY: value})[1:-1] for value in values],
            limit=limit,
        )
        return [row["session_id"] for row in rows]


def _related_session(columns: Sequence[Any], may_quote: Callable[[str], bool]) -> RelatedSession:
    stored, score, microseconds, said = columns
    times: Row = {**parse_times(SESSION_TIME_FIELDS, microseconds)}
    return RelatedSession(
        session_id=stored["session_id"],
        title=stored["title"],
        summary=stored["summary"] or " / ".join(" ".join(text.split()) for text in said if may_quote(text)),
        topic_tags=stored["topic_tags"],
        started_at=times["first_at"] or times["created_at"],
        last_message_at=times["last_at"] or times["updated_at"],
        message_count=stored["message_count"],
        relevance_score=round(score, 4),
    )
