"""Earlier sessions in the graph that a question is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from graphmem.context.models import RelatedSession
from graphmem.conversations.session import TICKET_KEY
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.neo4j.driver import Graph, Row
from graphmem.neo4j.json_text import to_json
from graphmem.runtime.times import MAX_TIME, Clock
from graphmem.tenants.owners import Owner


class RelatedSessionStore:
    """Finds sessions by words, weights and tickets."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def find_related_sessions(
        self,
        owner: Owner,
        *,
        excluded_session_id: str | None,
        weights: Mapping[str, float],
        words: Sequence[str],
        limit: int,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
        may_quote: Callable[[str], bool] = lambda text: True,
    ) -> list[RelatedSession]:
        """Return other sessions, best first: by the weight of their id plus the share of words in their description.

        Sessions that changed after one of the two times are left out. One without a summary is described by its first
        user messages that `may_quote` permits: none that had a secret, none of which a memory is deleted or superseded.
        """
        filters = FactFilters(valid_at=valid_as_of or self._clock(), known_at=known_at_or_now(known_as_of))
        rows = await self._graph.fetch(
            "context.find_related_sessions",
            group_id=owner.group_id,
            excluded_session_id=excluded_session_id,
            weights=dict(weights),
            words=list(words),
            limit=limit,
            updated_until=min(filter(None, (valid_as_of, known_as_of)), default=MAX_TIME),
            **filters.as_of_params,
        )
        return [_related_session(row, may_quote) for row in rows]

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


def _related_session(row: Row, may_quote: Callable[[str], bool]) -> RelatedSession:
    stored = row["session"]
    return RelatedSession(
        session_id=stored["session_id"],
        title=stored["title"],
        summary=stored["summary"] or " / ".join(" ".join(text.split()) for text in row["said"] if may_quote(text)),
        topic_tags=list(stored["topic_tags"]),
        started_at=row["first_at"] or stored["created_at"],
        last_message_at=row["last_at"] or stored["updated_at"],
        message_count=stored["message_count"],
        relevance_score=round(row["score"], 4),
    )
