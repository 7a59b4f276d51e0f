"""Search and lookup on a real Neo4j with real vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.app.components import RetrievalComponents
from graphmem.conversations.session import MessageIn, MessageRole, MessagesIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.filters import FactFilters, ListFilters, MemoryFilters
from graphmem.memories.memory import MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.vectors import StoredVectors
from graphmem.runtime.errors import InvalidInput
from graphmem.search.models import LookupQuery, MessageSearchQuery, SearchQuery
from graphmem.search.source import ANN_CANDIDATES, CandidateSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.trust import DEFAULT_ORDER
from tests.conftest import FakeClock
from tests.search.sources import ask


async def save(memory: Services, owner: Owner, *given: dict[str, Any]) -> list[str]:
    results = await memory.memories.save(owner, [MemoryIn(**memory) for memory in given])
    return [result.memory.id for result in results if result.memory]


async def found(memory: Services, owner: Owner, query: str, **options: Any) -> list[str]:
    options.setdefault("reinforce", False)
    answer = await memory.retrieval.search(owner, SearchQuery(query=query, **options))
    return [hit.memory.content for hit in answer.results]


CHANNELS = ("semantic", "keyword", "graph")

GARDEN: Sequence[dict[str, Any]] = (
    {"content": "Mara is allergic to hazelnuts", "importance": 0.9, "tags": ["health"]},
    {
        "content": "Mara grows basil on the balcony",
        "type": "preference",
        "tags": ["garden", "food"],
        "domain": "garden",
    },
    {"content": "Mara's invoice code is QX-7731", "tags": ["office"]},
    {"content": "Bob plays the cello", "subject": {"name": "Bob", "type": "Person"}, "predicate": "PLAYS"},
    {
        "content": "Bob is married to Ines",
        "subject": {"name": "Bob", "type": "Person"},
        "object": {"name": "Ines", "type": "Person"},
    },
    {
        "content": "Ines teaches physics in Uppsala",
        "subject": {"name": "Ines"},
        "object": {"name": "Uppsala", "type": "Place"},
    },
)


async def test_a_vector_of_integers_is_accepted(memory: Services, owner: Owner) -> None:
    """Servers of embeddings write 1.0 as 1."""
    await save(memory, owner, *GARDEN)
    graph = memory.components.graph
    source = CandidateSource(graph, StoredVectors(graph), await Rights(graph).get_state(owner))
    vector: list[float] = [1, *[0] * (memory.components.embedder.dimension - 1)]
    for filters in (
        FactFilters(valid_at=datetime.now(UTC)),
        MemoryFilters(min_importance=0.0).resolve(None, datetime.now(UTC), DEFAULT_ORDER),
    ):
        near = await source.find_facts(ask(filters, 10, vector))
        assert {fact.content for fact in near.facts} == {memory["content"] for memory in GARDEN}


@pytest.mark.req("GO-05", "QUINN-28", "QUINN-30", "QUINN-31", "UMB-07")
async def test_a_memory_is_found_by_meaning_alone_and_by_a_rare_word_alone(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    by_meaning = await found(memory, owner, "which food would be dangerous for her?", keyword=False, graph=False)
    assert by_meaning[0] == "Mara is allergic to hazelnuts"
    by_word = await found(memory, owner, "QX-7731", semantic=False, graph=False)
    assert by_word == ["Mara's invoice code is QX-7731"]
    with pytest.raises(InvalidInput, match="switched off"):
        await found(memory, owner, "QX-7731", semantic=False, keyword=False, graph=False)


@pytest.mark.req("QUINN-31")
async def test_facts_around_a_named_entity_are_found(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    near = await found(memory, owner, "what about Bob?", semantic=False, keyword=False)
    assert {"Bob plays the cello", "Bob is married to Ines"} <= set(near)
    assert "Ines teaches physics in Uppsala" in near
    assert "Mara grows basil on the balcony" not in near


@pytest.mark.req("QUINN-22", "QUINN-17", "QUINN-28")
async def test_every_filter_holds_in_every_channel(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    query = "Mara basil allergic hazelnuts invoice Bob cello"
    for options, expected in (
        ({"types": ["preference"]}, {"Mara grows basil on the balcony"}),
        ({"tags": {"any": ["health", "office"]}}, {"Mara is allergic to hazelnuts", "Mara's invoice code is QX-7731"}),
        ({"tags": {"all": ["food", "garden"]}}, {"Mara grows basil on the balcony"}),
        ({"domain": "garden"}, {"Mara grows basil on the balcony"}),
        ({"min_importance": 0.8}, {"Mara is allergic to hazelnuts"}),
        ({"entity": "uppsala"}, {"Ines teaches physics in Uppsala"}),
        ({"created_before": "2020-01-01T00:00:00Z"}, set()),
    ):
        assert set(await found(memory, owner, query, **options)) == expected, options
        for channel in CHANNELS:
            alone = {name: name == channel for name in CHANNELS}
            assert set(await found(memory, owner, query, **options, **alone)) <= expected, (channel, options)
    for channel in CHANNELS:
        assert await found(memory, owner, query, **{name: name == channel for name in CHANNELS}), channel
    assert "Mara is allergic to hazelnuts" not in await found(memory, owner, query, tags={"none": ["health"]})


@pytest.mark.req("QUINN-24")
async def test_sixty_superseded_versions_do_not_crowd_out_the_current_one(memory: Services, owner: Owner) -> None:
    start = datetime(2019, 1, 1, tzinfo=UTC)
    moves = [
        {
            "content": f"Mara lives in house number {i} of Harbour Street",
            "predicate": "LIVES_IN",
            "single_valued": True,
            "valid_at": start + timedelta(days=30 * i),
        }
        for i in range(61)
    ]
    await save(memory, owner, *moves)
    for channel in ({"keyword": False, "graph": False}, {"semantic": False, "graph": False}, {}):
        now = await found(memory, owner, "in which house of Harbour Street does Mara live?", limit=3, **channel)
        assert now == ["Mara lives in house number 60 of Harbour Street"]
        then = await found(
            memory, owner, "in which house of Harbour Street does Mara live?", limit=3, valid_as_of=start, **channel
        )
        assert then == ["Mara lives in house number 0 of Harbour Street"]
    before = datetime.now(UTC) - timedelta(days=1)
    assert await found(memory, owner, "house of Harbour Street", known_as_of=before) == []


@pytest.mark.req("QUINN-28")
async def test_nearer_facts_of_another_domain_do_not_crowd_out_the_filtered_one(memory: Services, owner: Owner) -> None:
    near = "Mara waters the basil on the balcony"
    (vector,) = await memory.components.embedder.embed([near])
    nearer = [
        NewMemory(MemoryIn(content=f"{near} (note {number})", domain="kitchen"), vector)
        for number in range(ANN_CANDIDATES + 20)
    ]
    await memory.components.facts.save(owner, nearer, {}, None)
    await save(memory, owner, {"content": "Mara prunes the lemon tree", "domain": "garden"})
    asked = {"keyword": False, "graph": False}
    assert "Mara prunes the lemon tree" not in await found(memory, owner, near, **asked)
    assert await found(memory, owner, near, domain="garden", **asked) == ["Mara prunes the lemon tree"]


@pytest.mark.req("QUINN-28", "QUINN-41")
async def test_no_other_users_memory_is_ever_a_candidate(memory: Services, owner: Owner) -> None:
    other, query = Owner(owner.tenant, "other"), "hazelnuts basil Bob cello QX-7731"
    await save(memory, other, *GARDEN)
    await save(memory, owner, {"content": "Mara likes rain"})
    assert len(await found(memory, other, query, limit=100)) == len(GARDEN)
    assert await found(memory, owner, query, limit=100) == ["Mara likes rain"]


@pytest.mark.req("UMB-08")
async def test_search_and_lookup_reinforce_returned_memories_asynchronously(memory: Services, owner: Owner) -> None:
    (key,) = await save(
        memory, owner, {"content": "Bob plays the cello", "subject": {"name": "Bob"}, "confidence": 0.9}
    )
    await memory.retrieval.search(owner, SearchQuery(query="cello"))
    await memory.retrieval.lookup(owner, "what about Bob?")
    await memory.retrieval.flush()
    after = await memory.memories.get(owner, key)
    assert after.access_count == 2
    assert after.strength == pytest.approx(0.6)
    assert after.confidence == pytest.approx(0.94)
    assert after.last_accessed_at is not None
    for _ in range(12):
        await memory.retrieval.search(owner, SearchQuery(query="cello"))
    await memory.retrieval.flush()
    capped = await memory.memories.get(owner, key)
    assert (capped.access_count, capped.strength, capped.confidence) == (14, 1.0, 0.99)


@pytest.mark.req("UMB-07")
async def test_the_persona_weighs_types_and_tags_and_the_explanation_shows_every_factor(
    memory: Services, owner: Owner
) -> None:
    await save(memory, owner, *GARDEN)
    plain = SearchQuery(query="what does Mara like?", reinforce=False, explain=True)
    music = [{"content": f"Mara likes to {verb} jazz", "tags": [verb]} for verb in ("hear", "play")]
    await save(memory, owner, *music)
    for verb in ("hear", "play"):
        weighted = plain.model_copy(update={"persona": {verb: 50.0}})
        assert (await memory.retrieval.search(owner, weighted)).results[0].content == f"Mara likes to {verb} jazz"
    others = plain.model_copy(update={"query": "what does Mara grow on the balcony?", "persona": {"office": 100.0}})
    assert (await memory.retrieval.search(owner, others)).results[0].content == "Mara grows basil on the balcony"
    hit = (await memory.retrieval.search(owner, plain)).results[0]
    assert hit.explain
    explain = hit.explain
    assert 0 < explain.rrf <= 1
    assert explain.persona == explain.time == 1
    odds = explain.fit / (1 - explain.fit) * explain.decay * explain.importance
    assert hit.score == pytest.approx(odds / (1 + odds))
    assert explain.bm25 > 0
    assert 0 < explain.similarity < 1
    assert 0 <= hit.score <= 1
    assert explain.semantic
    assert explain.semantic.rank >= 1


@pytest.mark.req("UMB-07")
async def test_settings_weigh_what_is_found_by_meaning_against_what_is_found_by_words(
    memory: Services, owner: Owner
) -> None:
    await save(memory, owner, *GARDEN)
    query = SearchQuery(query="which nuts make her ill? QX-7731", reinforce=False)
    for weights, expected in (
        ({"semantic_weight": 10, "keyword_weight": 0.01}, "Mara is allergic to hazelnuts"),
        ({"semantic_weight": 0.01, "keyword_weight": 10}, "Mara's invoice code is QX-7731"),
    ):
        settings = memory.components.settings.model_copy(update=weights)
        search = RetrievalComponents.build(replace(memory.components, settings=settings)).search
        assert (await search.search(owner, query)).results[0].memory.content == expected


async def test_a_query_of_any_length_and_any_characters_is_answered(memory: Services, owner: Owner) -> None:
    await save(memory, owner, {"content": "Mara likes rain"})
    for query in (
        "a" * 20_000,
        "word " * 5_000,
        'group_id:"x" OR *:* AND -(]}{[ ~^"\\/&&||!',
        "मराठी 日本語 한국어 שלום مرحبا 🎻🎻",
        "日本語の質問",
        "?",
        "AND OR NOT",
        "\u202eabc\u0000\ufeff",
    ):
        answer = await memory.retrieval.search(owner, SearchQuery(query=query, include_messages=True))
        assert [hit.memory.content for hit in answer.results] == ["Mara likes rain"], query[:40]


@pytest.mark.parametrize("query", ["", "   ", "\u0000", "\n\t"])
async def test_an_empty_query_is_refused(memory: Services, owner: Owner, query: str) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        await memory.retrieval.search(owner, SearchQuery(query=query))


@pytest.mark.req("TRUE-19")
async def test_messages_are_found_with_scores_and_evidence_names_their_sources(memory: Services, owner: Owner) -> None:
    turns = [
        {"id": "m1", "role": "user", "content": "I started playing the cello in spring."},
        {"id": "m2", "role": "assistant", "content": "How nice."},
        {"id": "m3", "role": "user", "content": "My neighbour complains about the noise."},
    ]
    await memory.messages.add(owner, MessagesIn.model_validate({"messages": turns, "extract": False}))
    source = {"message_ids": ["m1"]}
    (key,) = await save(memory, owner, {"content": "Mara plays the cello", "source": source})
    answer = await memory.retrieval.search_messages(owner, MessageSearchQuery(query="cello", limit=5))
    assert answer.results[0].message.id == "m1"
    searched = await memory.retrieval.search(owner, SearchQuery(query="who plays the cello?", include_messages=True))
    assert searched.messages[0].message.id == "m1"
    assert searched.evidence[0].message_id == "m1"
    assert key in searched.evidence[0].via
    assert len(searched.evidence) <= 50
    nobody = await memory.retrieval.search_messages(Owner(owner.tenant, "nobody"), MessageSearchQuery(query="cello"))
    assert nobody.results == []


async def test_a_search_that_fits_nothing_says_that_messages_were_left_out(memory: Services, owner: Owner) -> None:
    await save(memory, owner, {"content": "Mara plays the cello"})
    fitting = await memory.retrieval.search(owner, SearchQuery(query="Which instrument does Mara play?"))
    nothing = await memory.retrieval.search(owner, SearchQuery(query="When does the ferry leave?"))
    thorough = await memory.retrieval.search(
        owner, SearchQuery(query="When does the ferry leave?", include_messages=True)
    )
    assert (fitting.hint, thorough.hint) == (None, None)
    assert "include_messages" in str(nothing.hint)


async def test_a_question_for_an_order_finds_its_topic_in_each_session(memory: Services, owner: Owner) -> None:
    talk = (
        ("user", "For my shop app I start with the {} now."),
        ("assistant", "Here is the order in which to list the different aspects of {}."),
        ("user", "The colours are wrong on {}."),
        ("assistant", "I brought up the aspects of {} in that order in our conversations."),
    )
    for month, topic in (("may", "the login page"), ("june", "payments"), ("july", "reports")):
        turns = [
            {"id": f"{month} {number}", "role": role, "content": text.format(topic)}
            for number, (role, text) in enumerate(talk, start=1)
        ]
        messages = {"session_id": month, "messages": turns, "extract": False}
        await memory.messages.add(owner, MessagesIn.model_validate(messages))
    question = "In which order did I bring up different aspects of my shop app in our conversations?"
    asked = MessageSearchQuery(query=question, limit=3)
    found = (await memory.retrieval.search_messages(owner, asked)).results
    assert {hit.message.session_id for hit in found} == {"may", "june", "july"}
    assert {hit.message.role for hit in found} == {"user"}
    searched = await memory.retrieval.search(owner, SearchQuery(query=question, include_messages=True))
    assert {evidence.message_id for evidence in searched.evidence[:3]} == {hit.message.id for hit in found}


@pytest.mark.req("TRUE-19")
async def test_a_thousand_nearer_messages_of_others_do_not_hide_the_users_own(memory: Services, owner: Owner) -> None:
    query = "When is the rent due?"
    [vector] = await memory.components.embedder.embed([query], query=True)
    nearer = [PreparedMessage(MessageIn(role=MessageRole.USER, content=query), vector) for _ in range(1000)]
    await memory.components.episodes.append_messages(Owner(owner.tenant, "busy"), "s", nearer)
    own = {"role": "user", "content": "I pay the landlord on the first of the month. " + "x" * 600}
    await memory.messages.add(owner, MessagesIn.model_validate({"messages": [own], "extract": False}))
    found = (await memory.retrieval.search_messages(owner, MessageSearchQuery(query=query))).results
    assert [hit.message.content for hit in found] == [own["content"][:500]]
    assert 0 < found[0].similarity_score < 1


@pytest.mark.req("UMB-06")
async def test_a_lookup_comes_from_the_cache_for_five_minutes(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    clock = FakeClock(datetime.now(UTC))
    lookup = RetrievalComponents.build(replace(memory.components, clock=clock)).lookup
    seen = []
    for seconds in (0, 299, 2):
        clock.advance(timedelta(seconds=seconds))
        seen.append((await lookup.lookup(owner, "what about Bob?", 5, reinforce=False)).cache)
    assert seen == ["miss", "hit", "miss"]


@pytest.mark.req("UMB-06", "GO-12", "QUINN-33")
async def test_lookup_finds_entities_by_name_alias_and_typo_without_a_vector(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    for text, name in (
        ("What do you know about Bob?", "Bob"),
        ("UPPSALA!", "Uppsala"),
        ("i uppsala igen", "Uppsala"),
        ("Upsala", "Uppsala"),
    ):
        answer = await memory.retrieval.lookup(owner, text)
        assert name in [found.entity.name for found in answer.entities], text
    assert (await memory.retrieval.lookup(owner, "the weather in Paris")).entities == []
    profile = await memory.retrieval.load_profile(owner)
    assert [core.content for core in profile.core] == ["Mara is allergic to hazelnuts"]


@pytest.mark.req("QUINN-31", "UMB-06")
async def test_an_entity_saved_since_the_last_search_is_found_by_its_name(memory: Services, owner: Owner) -> None:
    for name, town in (("Tilda", "Lund"), ("Ove", "Gävle"), ("Siri", "Falun")):
        said = f"{name} moved to {town}"
        await save(memory, owner, {"content": said, "subject": {"name": name, "type": "Person"}})
        assert said in await found(memory, owner, f"what about {name}?", semantic=False, keyword=False)


@pytest.mark.req("QUINN-28")
async def test_a_memory_is_found_by_keyword_right_after_the_write(memory: Services, owner: Owner) -> None:
    words = ["amber", "birch", "cedar", "dahlia", "elder", "fern", "gorse", "hazel", "iris", "juniper"]
    for word in words:
        said = f"Somebody plants {word}"
        await save(memory, owner, {"content": said})
        assert await found(memory, owner, word, semantic=False, graph=False) == [said]


@pytest.mark.req("UMB-06", "TRUE-25")
async def test_a_cached_answer_never_outlives_a_write(memory: Services, owner: Owner) -> None:
    (key, *_) = await save(memory, owner, {"content": "Bob plays the cello", "subject": {"name": "Bob"}})
    first = await memory.retrieval.lookup(owner, "Bob")
    second = await memory.retrieval.lookup(owner, "Bob")
    assert (first.cache, second.cache) == ("miss", "hit")
    await memory.memories.delete(owner, key)
    third = await memory.retrieval.lookup(owner, "Bob")
    assert third.cache == "miss"
    assert [known.content for entity in third.entities for known in entity.memories] == []


@pytest.mark.req("QUINN-44")
async def test_a_birthday_is_found_when_a_special_date_is_asked_for(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN, {"content": "Elin's birthday party is every year in May", "tags": ["birthday"]})
    assert (
        "Elin's birthday party is every year in May" in (await found(memory, owner, "is a special date coming up?"))[:3]
    )
    assert await found(memory, owner, "date", tags={"any": ["birthday"]}) == [
        "Elin's birthday party is every year in May"
    ]


@pytest.mark.req("QUINN-22")
async def test_metadata_filters_searches_lookups_and_lists_in_every_channel(memory: Services, owner: Owner) -> None:
    where = {"file": "plan.md", "line": 12, "done": True, "origin": {"team": "north"}}
    await save(
        memory,
        owner,
        {"content": "Bob plays the cello", "subject": {"name": "Bob"}, "metadata": where},
        {"content": "Bob plays chess", "subject": {"name": "Bob"}, "metadata": {"file": "plan.md.bak", "line": 123}},
        {"content": "Bob plays cards", "subject": {"name": "Bob"}, "metadata": {"note": '"file":"plan.md"'}},
    )
    for wanted in (
        {"file": "plan.md"},
        {"line": 12},
        {"line": "12"},
        {"done": True, "file": "plan.md"},
        {"team": "north"},
    ):
        for channel in ({}, *({name: name == channel for name in CHANNELS} for channel in CHANNELS)):
            assert await found(memory, owner, "what does Bob play?", metadata=wanted, **channel) == [
                "Bob plays the cello"
            ]
        listed = await memory.memories.page(owner, ListFilters.model_validate({"metadata": wanted}))
        assert [item.content for item in listed.items] == ["Bob plays the cello"]
    asked = LookupQuery.model_validate({"q": "Bob", "metadata.file": "plan.md"})
    answer = await memory.retrieval.lookup(owner, asked.q, filters=asked.to_memory_filters())
    assert [known.content for known in answer.entities[0].memories] == ["Bob plays the cello"]
    assert await found(memory, owner, "Bob", metadata={"file": "other.md"}) == []


@pytest.mark.req("UMB-06", "QUINN-22")
async def test_a_lookup_takes_the_filters_of_search(memory: Services, owner: Owner) -> None:
    first, second = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
    bob = {"subject": {"name": "Bob"}, "predicate": "LIVES_IN", "single_valued": True}
    await save(
        memory,
        owner,
        {"content": "Bob lives in Lund", "valid_at": first, **bob},
        {"content": "Bob lives in Falun", "valid_at": second, "tags": ["home"], "importance": 0.9, **bob},
        {"content": "Bob likes rain", "subject": {"name": "Bob"}, "type": "preference"},
    )

    async def look_up(**filters: Any) -> list[str]:
        answer = await memory.retrieval.lookup(owner, "and Bob?", filters=MemoryFilters.model_validate(filters))
        return [known.content for known in answer.entities[0].memories]

    for _ in range(2):  # from the graph, then from the cache
        assert await look_up() == ["Bob lives in Falun", "Bob likes rain"]
        assert await look_up(types=["preference"]) == ["Bob likes rain"]
        assert await look_up(tags={"all": ["home"]}) == ["Bob lives in Falun"]
        assert await look_up(min_importance=0.8) == ["Bob lives in Falun"]
        assert await look_up(valid_as_of="2021-01-01T00:00:00Z", types=["fact"]) == ["Bob lives in Lund"]
        assert await look_up(include_superseded=True, types=["fact"]) == ["Bob lives in Falun", "Bob lives in Lund"]
        assert await look_up(known_as_of="2022-01-01T00:00:00Z") == []


@pytest.mark.req("UMB-06")
async def test_two_entities_may_share_an_alias_and_both_are_found_by_it(memory: Services, owner: Owner) -> None:
    robert = {"name": "Robert Lind", "type": "Person", "aliases": ["Bobby", "the cellist"]}
    roberta = {"name": "Roberta Holm", "type": "Person", "aliases": ["Bobby"]}
    await save(
        memory,
        owner,
        {"content": "Robert Lind plays in a quartet", "subject": robert},
        {"content": "Roberta Holm bakes bread", "subject": roberta},
        {"content": "The quartet rehearses on Mondays"},
    )
    both = {"Robert Lind plays in a quartet", "Roberta Holm bakes bread"}
    answer = await memory.retrieval.lookup(owner, "What about Bobby?")
    assert {known.content for match in answer.entities for known in match.memories} == both
    assert set(await found(memory, owner, "anything new", entity="bobby")) == both
    assert set((await found(memory, owner, "What about Bobby?"))[:2]) == both
    assert (await found(memory, owner, "How is the celist?"))[0] == "Robert Lind plays in a quartet"


@pytest.mark.req("UMB-06")
async def test_a_longer_name_does_not_hide_the_name_inside_it(memory: Services, owner: Owner) -> None:
    await save(
        memory,
        owner,
        {"content": "Berlin Marathon starts at nine", "subject": {"name": "Berlin Marathon"}},
        {"content": "Ada moved to Berlin", "subject": {"name": "Ada"}, "object": {"name": "Berlin"}},
    )
    answer = await memory.retrieval.lookup(owner, "who runs the Berlin Marathon?")
    assert [match.entity.name for match in answer.entities] == ["Berlin Marathon", "Berlin"]


async def test_a_question_that_names_many_finds_the_facts_of_each(memory: Services, owner: Owner) -> None:
    names = ["Ada", "Bo", "Cleo", "Dag", "Eve", "Finn", "Gro", "Hugo"]
    towns = ["Lund", "Falun", "Gävle", "Kiruna", "Malmö", "Umeå", "Visby", "Växjö"]
    said = [
        {"content": f"{name} lives in {town}", "subject": {"name": name, "type": "Person"}, "object": {"name": town}}
        for name, town in zip(names, towns, strict=True)
    ]
    await save(memory, owner, *said)
    question = f"Where do {', '.join(names)} live?"
    near = await found(memory, owner, question, semantic=False, keyword=False)
    assert set(near) == {memory["content"] for memory in said}


async def scores(memory: Services, owner: Owner, query: str, **options: Any) -> dict[str, float]:
    answer = await memory.retrieval.search(owner, SearchQuery(query=query, reinforce=False, **options))
    return {hit.memory.content: hit.score for hit in answer.results}


@pytest.mark.req("UMB-07", "QUINN-30")
async def test_scores_compare_between_questions(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN)
    question = "what is Mara allergic to?"
    fresh = await scores(memory, owner, question)
    assert all(0 <= score <= 1 for score in fresh.values())
    assert (
        fresh["Mara is allergic to hazelnuts"] >= 0.5 > max((await scores(memory, owner, "my card number?")).values())
    )
    assert await found(memory, owner, question, min_score=0.5) == ["Mara is allergic to hazelnuts"]
    assert await found(memory, owner, "my card number?", min_score=0.5) == []


@pytest.mark.req("UMB-07")
async def test_an_automatic_cut_returns_what_fits_and_nothing_when_nothing_does(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *GARDEN, {"content": "Mara broke her wrist in the garden"})
    for query, expected in (
        ("what is my credit card number?", set()),
        ("how high is the Eiffel Tower?", set()),
        ("what is Mara allergic to?", {"Mara is allergic to hazelnuts"}),
        ("which instrument is played?", {"Bob plays the cello"}),
        ("Ines", {"Bob is married to Ines", "Ines teaches physics in Uppsala"}),
        ("Upsala", {"Ines teaches physics in Uppsala"}),
    ):
        assert set(await found(memory, owner, query, cut="auto")) == expected, query
        assert len(await found(memory, owner, query)) == len(GARDEN) + 1, query


async def test_a_fact_two_and_three_steps_from_the_thing_named_is_among_the_first(
    memory: Services, owner: Owner
) -> None:
    chain = (("Zephyr", "BUILT_BY", "Halvorsen"), ("Halvorsen", "LIVES_IN", "Tromsø"), ("Tromsø", "LIES_IN", "Norway"))
    said = ("Zephyr was built by Halvorsen", "Halvorsen lives in Tromsø", "Tromsø lies in Norway")
    linked = [
        {"content": content, "subject": {"name": start}, "predicate": predicate, "object": {"name": end}}
        for content, (start, predicate, end) in zip(said, chain, strict=True)
    ]
    others = [
        {"content": f"The boat {name} was built in the country of its owner", "subject": {"name": name}}
        for name in ("Aurora", "Boreas", "Calypso", "Doris", "Electra", "Fortuna", "Galatea", "Hera", "Iris", "Juno")
    ]
    await save(memory, owner, *linked, *others)
    best = await found(memory, owner, "in which country does the builder of the boat Zephyr live?", limit=9)
    assert set(said) <= set(best)


async def test_ten_results_hold_every_step_of_a_chain_of_four(memory: Services, owner: Owner) -> None:
    ends = ("Zephyr", "Halvorsen", "Tromsø", "Norway", "Oslo")
    relations = ("was built by", "lives in", "lies in", "has the capital")
    said = [f"{start} {relation} {end}" for start, relation, end in zip(ends, relations, ends[1:], strict=False)]
    linked = [
        {"content": content, "subject": {"name": start}, "predicate": "LEADS_TO", "object": {"name": end}}
        for content, start, end in zip(said, ends, ends[1:], strict=False)
    ]
    others = [
        {"content": f"The capital of the country in which {name} lives is rich", "subject": {"name": name}}
        for name in ("Aurora", "Boreas", "Calypso", "Doris", "Electra", "Fortuna", "Galatea", "Hera", "Iris", "Juno")
    ]
    await save(memory, owner, *linked, *others)
    best = await found(memory, owner, "what is the capital of the country in which he lies who built Zephyr?")
    assert set(said) <= set(best)


async def test_what_is_said_of_somebody_precedes_what_is_said_of_their_family(memory: Services, owner: Owner) -> None:
    mara = {"name": "Mara Elin Lindqvist", "type": "Person"}
    family = ("sister Ingrid", "brother Olav", "aunt Sigrid")
    await save(
        memory,
        Owner(owner.tenant, "mara"),
        *({"content": f"Mara Elin Lindqvist {rest}", "subject": mara} for rest in ("lives in Lund", "likes tea")),
        *({"content": f"Mara's {who} lives in Oslo", "subject": {"name": who.split()[1]}} for who in family),
    )
    for name in ("Mara", "Lindqvist", "Elin"):
        best = await found(memory, Owner(owner.tenant, "mara"), f"Where does {name} live?")
        assert best[0] == "Mara Elin Lindqvist lives in Lund", name
