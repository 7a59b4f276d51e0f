"""The pure parts of retrieval: names in texts, BM25, score factors, the order of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.memories.entity import NamedEntity
from graphmem.memories.fact import INITIAL_STRENGTH
from graphmem.memories.names import NameIndex, question_focus
from graphmem.search.bm25 import Scores, TextIndex, bm25_scores
from graphmem.search.candidates import FactNumbers, FactRow, Times
from graphmem.search.evidence import NO_SUPPORT, FactSupport, MessageText, MessageTexts, overview_topic, rank_messages
from graphmem.search.fit import CHANNEL_WEIGHTS, FIT_WEIGHTS, FitFeatures, FitWeights, fit
from graphmem.search.ranking import (
    decay_factors,
    importance_factors,
    persona_factors,
    score_factors,
    time_factors,
)
from graphmem.tenants.trust import DEFAULT_ORDER
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import split_words, tokenize
from graphmem.text.word_lists import LANGUAGES, load_words

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY = 86_400_000


def entity(key: str, name: str, *aliases: str, kind: str = "Person", is_user: bool = False) -> NamedEntity:
    return NamedEntity(key, name, kind, aliases, is_user)


NAMES = NameIndex(
    [
        entity("user", "mara", is_user=True),
        entity("bob", "Bob Ostrander", "Bobby"),
        entity("ana", "Ana Prado"),
        entity("anna", "Anna Prado-Lind"),
        entity("nyc", "New York City", "NYC", kind="Place"),
        entity("york", "York", kind="Place"),
        entity("tokyo", "東京", kind="Place"),
        entity("moscow", "Москва", kind="Place"),
        entity("cafe", "Café Zoë", kind="Place"),
        entity("cairo", "القاهرة", kind="Place"),
    ]
)


@pytest.mark.req("UMB-06")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("what does bob ostrander like?", ["bob"]),
        ("BOBBY!", ["bob"]),
        ("did Ostrander call", ["bob"]),
        ("is it far from New York City", ["nyc", "york"]),
        ("is it far from York", ["york"]),
        ("a table at cafe zoe", ["cafe"]),
        ("明日東京に行きます", ["tokyo"]),
        ("сколько времени в москва", ["moscow"]),
        ("ماذا عن القاهرة اليوم", ["cairo"]),
        ("Bob Ostrandr again", ["bob"]),
        ("Ana and NYC", ["nyc", "ana"]),
        ("nothing of the kind", []),
        ("what do I like?", ["user"]),
        ("what do I like about Bobby?", ["bob"]),
        ("", []),
    ],
)
def test_entities_are_found_by_whole_names_parts_and_typos(text: str, meant: list[str]) -> None:
    assert [mention.id for mention in NAMES.find(text)] == meant


def test_a_short_name_is_not_found_with_a_typo() -> None:
    assert NAMES.find("an umbrella") == []


def test_a_first_name_shared_by_many_matches_none_of_them() -> None:
    many = NameIndex([entity(str(number), f"Kim Number{number}") for number in range(5)])
    assert many.find("where is Kim") == []


@given(st.text(max_size=300))
def test_any_text_can_be_searched_and_names_each_entity_once(text: str) -> None:
    mentions = NAMES.find(f"{text} Bob and Bobby")
    assert [mention.id for mention in mentions].count("bob") == 1
    assert len({mention.id for mention in mentions}) == len(mentions)


def test_the_question_focus_leaves_out_people_and_stop_words() -> None:
    text = "What did Bob Ostrander say about the harbour?"
    assert question_focus(text, NAMES.find(text)) == "say about harbour"


def test_bm25_weighs_rare_words_more() -> None:
    texts = [tokenize("a boat"), tokenize("boats"), tokenize("harbour")]
    scores = bm25_scores(tokenize("boat in the harbour"), texts)
    assert scores[2] > scores[0] == scores[1] > 0


@given(st.lists(st.text("ab c", max_size=20), max_size=6), st.text("ab c", max_size=20))
def test_a_text_without_a_word_of_the_question_scores_nothing(texts: list[str], question: str) -> None:
    asked = tokenize(question)
    for text, score in zip(texts, bm25_scores(asked, [tokenize(text) for text in texts]), strict=True):
        assert (score > 0) == bool(set(asked) & set(tokenize(text)))


def fact(content: str = "c", **changes: Any) -> FactRow:
    fields: dict[str, Any] = {
        "uuid": "f", "memory_id": "m", "content": content, "context": "", "type": "fact", "tags": ["tea"],
        "message_ids": [], "entity_ids": [], **changes,
    }  # fmt: skip
    return FactRow(**fields)


def column(*values: float) -> Scores:
    return np.array(values, np.float64)


def times(*values: int) -> Times:
    return np.array(values, np.int64)


def decay(strength: float, *days: int) -> list[float]:
    """The multipliers of one strength after each number of days."""
    accessed = times(*(-day * DAY for day in days))
    factors: list[float] = decay_factors(column(strength), column(0.05), accessed, 0).tolist()
    return factors


@pytest.mark.req("UMB-09", "QUINN-11")
def test_decay_lowers_the_score_a_little() -> None:
    factors_of_age = decay(1.0, 0, 10, 100, 10_000)
    assert factors_of_age == sorted(factors_of_age, reverse=True)
    assert factors_of_age[0] > 1.0 > factors_of_age[-1] > 0.9
    assert decay(INITIAL_STRENGTH, 0) == [1.0], "a new memory has no advantage"
    assert decay(1.0, -5) == factors_of_age[:1], "an access in the future raises it no further"


@pytest.mark.req("QUINN-19", "UMB-07")
def test_importance_persona_and_time_multiply_the_odds_within_bounds() -> None:
    high, neutral, low = importance_factors(column(0.9, 0.5, 0.1)).tolist()
    assert high > neutral == 1.0 > low
    tagged = [fact(tags=["tea", "home"])]
    weights = [persona_factors(tagged, {"tea": weight, "other": 9.0}).item() for weight in (0, 0.5, 1, 2, 100)]
    assert weights == sorted(weights)
    assert weights[2] == 1.0 < weights[3] < 3.0
    both = persona_factors(tagged, {"tea": 2.0, "fact": 1.5})
    assert both == persona_factors([fact(tags=["tea"])], {"tea": 3.0})
    starts, later, has_ended, still_holds, ended_before = time_factors(
        times(5, 10, 0, 0, 0), times(99, 99, 7, 99, 5), [TimeRange(5, 10)], 50
    ).tolist()
    assert starts > later == 1.0
    assert has_ended > still_holds == ended_before == 1.0
    numbers = FactNumbers(column(1.0), column(1.0), column(0.01), times(0), times(0), times(2))
    whole = score_factors([fact()], numbers, {"tea": 100.0}, [TimeRange(0, 1)], 0, DEFAULT_ORDER)
    never, middle, high, always = whole.apply(column(0.0, 0.5, 0.99, 1.0)).tolist()
    assert high > 0.99
    assert 0.04 < middle - 0.5 < 0.05
    assert (never, always) == (0.0, 1.0)


def test_the_weights_of_channels_weigh_meaning_against_words_in_the_fit() -> None:
    none, no = column(0.0, 0.0), np.zeros(2, np.bool_)
    features = FitFeatures(column(0.8, 0.4), column(0.2, 0.8), none, column(0.2, 0.8), no, no)
    assert FitWeights.for_channels(CHANNEL_WEIGHTS) == pytest.approx(FIT_WEIGHTS)
    by_meaning = FitWeights.for_channels({**CHANNEL_WEIGHTS, "semantic": 5.0})
    by_words = FitWeights.for_channels({**CHANNEL_WEIGHTS, "keyword": 10.0})
    similar, shared = fit(features, by_meaning).tolist()
    assert similar > shared
    similar, shared = fit(features, by_words).tolist()
    assert similar < shared


@dataclass(frozen=True)
class Said:
    """A message and its similarity to the question."""

    text: MessageText
    similarity: float


def message(key: str, text: str, *, similarity: float = 0.0, **changes: Any) -> Said:
    fields: dict[str, Any] = {"speaker": None, "role": "user", "session_id": key, "position": 1, **changes}
    return Said(MessageText(key, text, **fields), similarity)


def rank(
    question: str, messages: Sequence[Said], support: FactSupport = NO_SUPPORT, *, is_overview: bool = False
) -> dict[str, float]:
    """The scores of messages by their ids, best first."""
    texts = MessageTexts([said.text for said in messages], column(*(said.similarity for said in messages)))
    return texts.keys_with_scores(rank_messages(question, support, texts, is_overview=is_overview))


def test_evidence_lists_the_messages_behind_the_best_facts() -> None:
    support = FactSupport(
        facts=[
            fact("Bob likes the harbour", memory_id="likes", message_ids=["m1", "m2"]),
            fact("Bob owns a dog", memory_id="owns", message_ids=["m3"]),
        ],
        similarities=column(0.9, 0.1),
        focus_similarities=column(0.9, 0.1),
        is_later=np.zeros(2, np.bool_),
    )
    messages = [
        message("m3", "a dog", similarity=0.1),
        message("m1", "the harbour at night", similarity=0.5, speaker="Harbour"),
        message("m2", "so true"),
    ]
    found = rank("who likes the harbour", messages, support)
    assert [*found] == ["m1", "m2", "m3"]
    assert all(0 <= score <= 1 for score in found.values())
    assert rank("who likes the harbour", []) == {}


def test_what_the_user_says_comes_before_a_reply_that_repeats_it() -> None:
    asked = message("asked", "my sprint ends on Friday", session_id="s", position=1)
    reply = message("reply", "your sprint ends on Friday", role="assistant", session_id="s", position=2)
    assert [*rank("when does my sprint end", [reply, asked])] == ["asked", "reply"]


def test_a_message_next_to_one_that_fits_comes_before_one_far_from_it() -> None:
    messages = [
        message("far", "Sure.", session_id="s", position=9),
        message("elsewhere", "Sure.", session_id="t", position=2),
        message("after", "Sure.", session_id="s", position=2),
        message("next", "Sure.", session_id="s", position=3),
        message("harbour", "I like the harbour", similarity=0.9, session_id="s", position=1),
    ]
    assert [*rank("the harbour", messages)][:3] == ["harbour", "after", "next"]


def test_an_overview_prefers_the_messages_that_open_sessions() -> None:
    messages = [
        message(f"{session} {position}", "my app", similarity=0.5, session_id=session, position=position)
        for session in ("may", "june", "july")
        for position in (30, 1, 15)
    ]
    assert set([*rank("my app", messages, is_overview=True)][:3]) == {"may 1", "june 1", "july 1"}


@given(
    st.lists(
        st.builds(
            message,
            st.text("abc", min_size=1, max_size=3),
            st.text("ab c", max_size=9),
            similarity=st.floats(-1, 1),
            speaker=st.sampled_from(["a", None]),
            role=st.sampled_from(["user", "assistant"]),
            session_id=st.sampled_from("st"),
            position=st.integers(1, 50),
        ),
        unique_by=lambda one: one.text.message_id,
        max_size=9,
    ),
    st.booleans(),
)
def test_scores_of_evidence_are_from_zero_to_one(messages: list[Said], is_overview: bool) -> None:
    found = rank("a b c", messages, is_overview=is_overview)
    assert sorted(found) == sorted(said.text.message_id for said in messages)
    assert all(0 <= score <= 1 for score in found.values())


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Can you list the order in which I brought up different aspects of my budget tracker?", "budget tracker"),
        ("In which order did I visit Lisbon and Porto?", "visit Lisbon Porto"),
        ("Give me a complete summary of how my essay developed over time.", "essay developed"),
        ("SUMMARIZE", "SUMMARIZE"),
        ("What did I order in Lisbon?", None),
        ("Who works overtime in order to pay the rent?", None),
        ("", None),
    ],
)
def test_a_question_for_an_overview_is_known_by_its_form_and_has_a_topic(question: str, topic: str | None) -> None:
    assert overview_topic(question) == topic


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_phrases_that_ask_for_an_overview_are_no_topic(language: str) -> None:
    for phrase in load_words(language).overview_phrases:
        assert overview_topic(f"{phrase} xylophon", [language]) is not None


def test_a_question_for_an_overview_is_understood_in_other_languages() -> None:
    assert overview_topic("Fasse zusammen, was ich über Lissabon gesagt habe", ("de",)) is not None
    assert overview_topic("Dans quel ordre ai-je visité Lisbonne ?", ("fr",)) is not None


@given(st.text(max_size=80))
def test_the_topic_of_any_question_consists_of_its_words(question: str) -> None:
    topic = overview_topic(f"A summary of {question}")
    assert topic is not None
    assert set(topic.split()) <= {*split_words(question), "A", "summary", "of", *question.split()}


def test_a_text_index_scores_what_it_holds_whatever_it_held_before() -> None:
    texts = [("a blue kite", "toys"), ("tea with milk", ""), ("the kite festival in spring", "toys kite")]
    edited, made = TextIndex(fields=2), TextIndex(fields=2)
    before = [("a kite and a kite", "kite"), texts[1], ("", "kite")]
    for fields in before:
        edited.append(*fields)
    for row, (old, new) in enumerate(zip(before, texts, strict=True)):
        edited.replace(row, old, new)
        made.append(*new)
    for words in (["kite"], ["tea", "toys"], ["and"]):
        assert edited.scores(words).tolist() == made.scores(words).tolist()
    assert edited.postings == made.postings
