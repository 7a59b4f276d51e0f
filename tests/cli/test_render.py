"""Tables on terminals of 80 and 120 columns, with long texts, scripts without spaces, emoji and long names."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from rich.cells import cell_len, split_graphemes
from rich.console import Console, RenderableType

from graphmem.changes.models import ChangeKind, MemoryChange, Webhook, WebhookStatus
from graphmem.cli import views
from graphmem.cli.tables import add_row, make_table
from graphmem.consolidation.models import ConsolidationRun, RunStatus, RunTrigger, UserContradiction
from graphmem.context.models import (
    BehaviorPattern,
    ContextItem,
    ContextResponse,
    ConversationSummary,
    LearnedPreference,
    PersonalizationHints,
    PreferenceSource,
    PreferenceType,
)
from graphmem.conversations.session import Session, SessionArchive, SessionKind
from graphmem.ingestion.quarantined_statement import QuarantinedMemory, QuarantinedStatement
from graphmem.memories.entity import Entity, EntityProfile, EntityRef, ProfileSentence
from graphmem.memories.memory import (
    MemorySource,
    MemoryStatus,
    MemoryType,
    MemoryVersion,
    Scope,
)
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import Page
from graphmem.runtime.short_ids import complete_id, shorten_id
from graphmem.search.models import ChannelRank, EntityMemories, Explanation, LookupResponse, SearchHit
from graphmem.tenants.access import ApiKey, KeyRole
from graphmem.tenants.owners import UserSummary
from graphmem.tenants.profiles import PatternType

AT = datetime(2025, 5, 1, 14, 30, tzinfo=UTC)
ID = "8fe5657e-dd77-49bf-9c9a-d99fd1a8ad15"
OTHER_ID = "1c0ffee1-2222-4333-8444-555566667777"
TEXTS = (
    "Elin moved from Malmö to Gothenburg in September because of her new position at the observatory, and took the cat",
    "日本語の長い文章には単語の間に空白がないので、行はどの文字の後でも折り返すことができます。それでも幅は守られます。",
    "👩‍👩‍👧‍👦 Emoji 🎉🎉 of several code points 🏳️‍🌈 take two cells 👍🏽 and are never divided 🧑‍🚀",
    "https://example.com/a/very/long/address/that/no/terminal/shows/in/one/line?with=parameters&and=more#and-a-fragment",
)
LONG_NAME = "elin.svensson-lindqvist@observatory.example.com"


def make_version(content: str) -> MemoryVersion:
    person = EntityRef(id=OTHER_ID, name="Elin", type="Person")
    return MemoryVersion(
        id=ID, version=2, user_id=LONG_NAME, content=content, type=MemoryType.CONVERSATION_SUMMARY, scope=Scope.PROFILE,
        domain=None, subject=person, predicate="LIVES_IN", object=None, entities=[person], tags=["moving", "work"],
        confidence=0.9, importance=0.5, strength=1.0, decay_rate=0.01, access_count=0, last_accessed_at=None,
        valid_at=AT, invalid_at=AT, created_at=AT, expired_at=AT, updated_at=AT, status=MemoryStatus.SUPERSEDED,
        superseded_by=OTHER_ID, supersedes=[], associations=[], source=MemorySource(session_id=LONG_NAME),
        immutable=False, single_valued=True, expires_at=None, metadata={"file": "plan.md"}, content_hash="0",
        ended_reason="superseded", ended_by=OTHER_ID, actor=OTHER_ID,
    )  # fmt: skip


def make_hit(content: str) -> SearchHit:
    rank = ChannelRank(rank=12, score=0.5)
    explain = Explanation(
        source="memory", semantic=rank, keyword=rank, graph=rank, similarity=0.5, words=0.5, named=0.5, rrf=0.02,
        persona=1.0, decay=0.98, importance=1.0, time=1.0,
    )  # fmt: skip
    return SearchHit(memory=make_version(content), score=0.8312, explain=explain)


def make_run(reason: str) -> ConsolidationRun:
    return ConsolidationRun(
        id=ID, user_id=LONG_NAME, status=RunStatus.ROLLED_BACK, trigger=RunTrigger.ON_DEMAND, reason=reason,
        created_at=AT, executed=12, refused=3, change_count=120,
    )  # fmt: skip


def make_session(summary: str, name: str = ID) -> Session:
    return Session(
        id="1", session_id=name, user_id="elin", kind=SessionKind.CONVERSATION, title="Moving house", summary=summary,
        message_count=12, is_active=False, created_at=AT, updated_at=AT, ended_at=AT, source_session_id=None,
        summarized_through=0, intent_sequence=[], topic_tags=[], sentiment_score=None, metadata={},
    )  # fmt: skip


def make_webhook(error: str) -> Webhook:
    return Webhook(
        id=ID, url=TEXTS[3], users=[LONG_NAME, "ada"], kinds=[ChangeKind.INSERTED, ChangeKind.SUPERSEDED], since=AT,
        created_at=AT, status=WebhookStatus.DISABLED, last_delivered_at=AT, last_status=500, last_error=error,
        failures=9, failing_since=AT, disabled_at=AT, disabled_reason=None,
    )  # fmt: skip


def make_change(content: str) -> MemoryChange:
    return MemoryChange(
        id="c", at=AT, kind=ChangeKind.SUPERSEDED, memory_id=ID, memory=make_version(content), reason="superseded",
        actor=OTHER_ID,
    )  # fmt: skip


def make_context(value: str) -> ContextItem:
    return ContextItem(
        id=ID, session_id=LONG_NAME, user_id="elin", context_type="preference", context_key="favourite_observatory",
        context_value=value, relevance_score=0.8, expires_at=AT, created_at=AT,
    )  # fmt: skip


def make_key(name: str) -> ApiKey:
    return ApiKey(id=ID, name=name, role=KeyRole.ANALYST, users=[LONG_NAME, "ada"], created_at=AT, tenant="default")


def make_quarantined(text: str) -> QuarantinedStatement:
    return QuarantinedStatement(
        id=ID,
        user_id=LONG_NAME,
        reason=text,
        first_seen_at=AT,
        last_seen_at=AT,
        memory=QuarantinedMemory(content=text, type=MemoryType.FACT, confidence=0.9, importance=0.5),
    )


USER = UserSummary(user_id=LONG_NAME, created_at=AT, last_write_at=AT, memory_count=10, session_count=2)
TABLES = {
    "memories": views.MEMORIES.table([make_version(text) for text in TEXTS]),
    "memory": views.memory_details(make_version(TEXTS[3]))[0],
    "history": views.VERSIONS.table([make_version(text) for text in TEXTS]),
    "search": views.HITS.table([make_hit(text) for text in TEXTS]),
    "changes": views.CHANGES.table([make_change(text) for text in TEXTS]),
    "sessions": views.SESSIONS.table([make_session(text) for text in TEXTS]),
    "users": views.USERS.table([USER]),
    "runs": views.RUNS.table([make_run(text) for text in TEXTS]),
    "quarantine": views.QUARANTINE.table([make_quarantined(text) for text in TEXTS]),
    "webhooks": views.WEBHOOKS.table([make_webhook(text) for text in TEXTS]),
    "keys": views.KEYS.table([make_key(text) for text in TEXTS]),
    "contexts": views.CONTEXT_ITEMS.table([make_context(text) for text in TEXTS]),
}
WITHOUT_ID = {"users"}


def print_lines(table: RenderableType, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table, crop=False)
    return captured.get().splitlines()


def cells_between(line: str, start: int, end: int) -> str:
    """The part of a line between two cells of the terminal."""
    found, place = "", 0
    for first, last, cells in split_graphemes(line)[0]:
        if start <= place < end:
            found += line[first:last]
        place += cells
    return found


def test_a_table_fits_the_terminal_and_shows_whole_ids() -> None:
    for name, width in product(TABLES, (80, 120)):
        lines = print_lines(TABLES[name], width)
        assert max(map(cell_len, lines)) <= width, name
        shown = {word.strip("()") for line in lines for word in line.split()}
        assert name in WITHOUT_ID or {ID, shorten_id(ID), shorten_id(OTHER_ID)} & shown, name


def test_nothing_of_a_text_is_left_out() -> None:
    for text, width, columns in product(TEXTS, (80, 120), (views.MEMORIES, views.CHANGES)):
        table = columns.table([make_version(text) if columns is views.MEMORIES else make_change(text)])
        place = [str(column.header) for column in table.columns].index("statement")
        head, _, *lines = print_lines(table, width)
        start = head.index("statement")
        end = head.index(str(table.columns[place + 1].header))
        column = "".join(cells_between(line, start, end) for line in lines)
        assert "".join(column.split()) == "".join(text.split())


def test_a_column_that_is_optional_is_left_out_where_nothing_is_in_it() -> None:
    plain = make_hit("Elin lives in Malmö").model_copy(update={"explain": None})
    assert "space" not in print_lines(views.HITS.table([plain]), 120)[0]
    shared = make_hit("Elin lives in Malmö")
    assert "meaning #12" in print_lines(views.HITS.table([plain, shared]), 240)[-1]


def test_a_page_says_how_to_go_on_and_an_empty_one_that_there_is_nothing() -> None:
    assert views.USERS(Page[UserSummary](items=[], next_cursor=None)) == ["There are no such users."]
    [_, following] = views.USERS(Page[UserSummary](items=[USER], next_cursor="c2"))
    assert following == "There is more: --cursor c2"


def test_a_version_that_ended_is_shown_as_ended_only() -> None:
    first = make_version("Elin lives in Malmö").model_copy(update={"status": MemoryStatus.ACTIVE})
    shown = print_lines(views.VERSIONS.table([first]), 160)[-1]
    assert ("active" in shown, f"superseded (by {shorten_id(OTHER_ID)})" in shown) == (False, True)


@pytest.mark.req("QUINN-27")
def test_the_history_of_a_memory_names_what_it_replaced() -> None:
    current = {"status": MemoryStatus.ACTIVE, "expired_at": None, "ended_by": None, "supersedes": [OTHER_ID]}
    shown = print_lines(views.VERSIONS.table([make_version("Elin lives in Lund").model_copy(update=current)]), 160)[-1]
    assert f"active (replaces {shorten_id(OTHER_ID)})" in shown


@pytest.mark.parametrize("width", [80, 120])
def test_names_and_ordinary_words_are_whole_at_both_widths(width: int) -> None:
    for name in ("memories", "history", "search", "sessions", "runs"):
        shown = " ".join(print_lines(TABLES[name], width)).split()
        assert "observatory," in shown, name
    assert ID in " ".join(print_lines(TABLES["sessions"], width)).split()
    assert width == 80 or LONG_NAME in " ".join(print_lines(TABLES["users"], width)).split()


def test_a_narrow_text_is_not_padded_to_the_width_of_the_terminal() -> None:
    table = make_table("id", "name")
    add_row(table, "1", "ada")
    assert [line.rstrip() for line in print_lines(table, 120)] == ["id  name", "────────", "1   ada"]


def test_markup_in_a_cell_is_shown_as_it_is() -> None:
    table = make_table("id", "name")
    add_row(table, "1", "[bold]ada[/bold]")
    assert "[bold]ada[/bold]" in print_lines(table, 120)[-1]


def test_the_beginning_of_an_id_is_completed_unless_ambiguous() -> None:
    assert complete_id("8fe5", [ID]) == ID
    assert complete_id("none", []) == "none"
    with pytest.raises(InvalidInput, match="Several ids begin with 8fe5"):
        complete_id("8fe5", [ID, "8fe5aaaa"])


def test_a_lookup_shows_the_profile_above_the_memories() -> None:
    entity = Entity(id=OTHER_ID, name="Elin", type="Person", created_at=AT, updated_at=AT)
    sentence = ProfileSentence(content="Elin is an astronomer.", memory_ids=[ID])
    profile = EntityProfile(
        id=ID, version=1, entity_id=OTHER_ID, content=sentence.content, sentences=[sentence], written_at=AT
    )
    found = EntityMemories(entity=entity, profile=profile, memories=[make_version("Elin lives in Malmö")])
    console = Console(width=80, record=True)
    console.print(*views.lookup_response(LookupResponse(entities=[found], cache="miss", took_ms=1.0)))
    shown = console.export_text()
    assert shown.index("Elin is an astronomer.") < shown.index("Elin lives in Malmö")


def test_what_was_learned_is_shown_as_tables() -> None:
    at = AT
    preference = LearnedPreference(
        id="p", user_id="mara", preference_type=PreferenceType.VISUALIZATION, preference_key="visualization",
        preference_value={"format": "chart"}, confidence_score=0.7, frequency=2, learned_from=PreferenceSource(),
        last_observed=at, created_at=at, updated_at=at,
    )  # fmt: skip
    pattern = BehaviorPattern(
        id="b", user_id="mara", pattern_type=PatternType.SPENDING_CONCERN, pattern_description="Asks about food",
        pattern_data={}, confidence_score=0.3, occurrence_count=3, first_detected=at, last_detected=at, is_active=True,
    )  # fmt: skip
    contradiction = UserContradiction(memory_ids=["m1", "m2"], reason="two birthdays", run_id="run-1", reported_at=at)
    archive = SessionArchive(
        session_id="s", summary="They spoke of maps.", message_count=12, started_at=at, ended_at=at, archived_at=at
    )
    text = "\n".join(
        line
        for columns, model in (
            (views.PREFERENCES, preference),
            (views.PATTERNS, pattern),
            (views.CONTRADICTIONS, contradiction),
            (views.ARCHIVES, archive),
        )
        for line in print_lines(columns.table([model]), 160)
    )
    for shown in ('{"format": "chart"}', "Asks about food", "m1, m2", "two birthdays", "They spoke of maps.", "12"):
        assert shown in text


def test_a_context_of_a_user_of_whom_nothing_is_known_says_so() -> None:
    nothing = ContextResponse(
        context_id="c",
        preamble="",
        token_count=0,
        conversation_summary=ConversationSummary(),
        recent_messages=[],
        active_contexts=[],
        user_preferences=[],
        behavioral_patterns=[],
        related_sessions=[],
        personalization_hints=PersonalizationHints(),
        memories=[],
    )
    assert views.context(nothing)[0] == "Nothing is remembered that belongs in this context."
