"""Tables on terminals of 80 and 120 columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console

from graphmem.cli import render
from graphmem.domain.consolidation_models import ConsolidationRun, RunStatus, RunTrigger
from graphmem.domain.session import Session, SessionKind
from graphmem.domain.short_ids import complete_id
from graphmem.domain.user import UserSummary
from graphmem.errors import InvalidInput

AT = datetime(2025, 5, 1, 14, 30, tzinfo=UTC)
RUN = ConsolidationRun(
    id="8fe5657e-dd77-49bf-9c9a-d99fd1a8ad15",
    user_id="elin-from-gothenburg",
    status=RunStatus.ROLLED_BACK,
    trigger=RunTrigger.ON_DEMAND,
    reason="The loss guard stopped it",
    created_at=AT,
    executed=12,
    refused=3,
    change_count=120,
)
SESSION = Session(
    id="1",
    session_id="2026-05-planning",
    user_id="elin",
    kind=SessionKind.CONVERSATION,
    title="Moving house",
    summary="They talked about the move to Gothenburg.",
    message_count=12,
    is_active=False,
    created_at=AT,
    updated_at=AT,
    ended_at=AT,
    source_session_id=None,
    summarized_through=0,
    intent_sequence=[],
    topic_tags=[],
    sentiment_score=None,
    metadata={},
)
USER = UserSummary(user_id="elin-from-gothenburg", created_at=AT, last_write_at=AT, memory_count=10, session_count=2)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("table", [render.runs([RUN]), render.sessions([SESSION]), render.users([USER])])
def test_tables_fit_the_terminal_and_break_no_word(width: int, table: render.Renderable) -> None:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table, crop=False)
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    shown = "Gothenburg." if "planning" in captured.get() else "elin-from-gothenburg"
    assert shown in words
    assert RUN.id not in words


def test_the_beginning_of_an_id_is_completed_unless_ambiguous() -> None:
    assert complete_id("8fe5", [RUN.id]) == RUN.id
    assert complete_id("none", []) == "none"
    with pytest.raises(InvalidInput, match="Several ids begin with 8fe5"):
        complete_id("8fe5", [RUN.id, "8fe5aaaa"])
