"""What of memory a context puts first for a question: facts that fit, then what was said, nothing twice."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from graphmem.context.hints import DATA_INSTRUCTION
from graphmem.context.models import ContextResponse
from graphmem.context.preamble import MEMORIES_HEADING, PreambleSection
from graphmem.conversations.session import MessageIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.tenants.trust import SourceKind
from tests.context.conftest import ContextHarness

QUOTES = PreambleSection.QUOTES.value


def bullets(context: ContextResponse) -> list[str]:
    return [line[2:] for line in context.preamble.splitlines() if line.startswith("- ")]


def quotes(context: ContextResponse) -> list[str]:
    """Return the quoted messages, without their days."""
    _, heading, rest = context.preamble.partition(QUOTES)
    return [line.partition(", ")[2] for line in rest.split("\n\n")[0].splitlines() if line] if heading else []


async def test_what_answers_the_question_precedes_what_is_important(harness: ContextHarness) -> None:
    await harness.save_memories(
        *(MemoryIn(content=f"Mara passed exam number {n} of her studies", importance=0.9) for n in range(30)),
        MemoryIn(content="Mara's cat is called Herr Pixel", importance=0.2),
    )
    context = await harness.build_context("What is the name of Mara's cat?", token_budget=100)
    assert bullets(context)[0] == "Mara's cat is called Herr Pixel"


async def test_citing_is_asked_for_with_sources_only_and_not_in_a_small_context(harness: ContextHarness) -> None:
    await harness.save_memories(*(f"Mara knows fact number {number} about the harbour" for number in range(40)))
    small, large, cited = [
        await harness.build_context("What does Mara know about the harbour?", token_budget=budget, sources=sources)
        for budget, sources in ((250, False), (1000, False), (1000, True))
    ]
    assert [line for line in small.preamble.splitlines() if not line.startswith("- ")] == [MEMORIES_HEADING]
    assert "say so in passing" not in large.preamble
    assert "say so in passing" in cited.preamble


async def test_a_bullet_says_when_a_fact_held_unless_its_text_does(harness: ContextHarness) -> None:
    since, until = datetime.fromisoformat("2025-03-01T00:00:00Z"), datetime.fromisoformat("2030-05-01T00:00:00Z")
    await harness.save_memories(
        MemoryIn(content="Mara rents a flat in Ottensen", valid_at=since, invalid_at=until),
        MemoryIn(content="Mara moved to Hamburg in May 2024", valid_at=datetime.fromisoformat("2024-05-01T00:00:00Z")),
        MemoryIn(content="Mara owns a boat in Hamburg"),
    )
    assert set(bullets(await harness.build_context("What do you know about Mara in Hamburg and Ottensen?"))) == {
        "Mara rents a flat in Ottensen (2025-03-01 until 2030-05-01)",
        "Mara moved to Hamburg in May 2024",
        "Mara owns a boat in Hamburg",
    }


async def test_a_message_is_quoted_where_no_fact_was_made_of_it(harness: ContextHarness) -> None:
    said = MessageIn(role="user", name="Mara", content="The boiler is in the cellar, behind the wine shelf")
    await harness.add_messages("house", said, "Noted.")
    context = await harness.build_context("Where is the boiler?", session_id="today")
    assert context.preamble.split("\n\n")[0] == (
        f"{QUOTES}\n2026-06-01, Mara: The boiler is in the cellar, behind the wine shelf"
    )
    assert DATA_INSTRUCTION in context.preamble
    other = await harness.build_context("Who won the chess tournament?", session_id="today")
    assert quotes(other) == ["Mara: The boiler is in the cellar, behind the wine shelf"], "there is budget"
    assert not other.personalization_hints.knowledge.sufficient


async def test_questions_greetings_and_thanks_are_not_quoted(harness: ContextHarness) -> None:
    said = ("Good morning!", "Where is my boiler?", "Thanks!", "It is in the cellar, near the wine shelf")
    await harness.add_messages("house", *(MessageIn(role="user", content=text) for text in said))
    context = await harness.build_context("Where is the boiler?", session_id="today")
    assert quotes(context) == ["the user: It is in the cellar, near the wine shelf"]


async def test_a_reply_does_not_bring_back_what_is_superseded(harness: ContextHarness) -> None:
    told, *_ = await harness.add_messages(
        "home", "I live in Bergen, near the harbour", "Bergen, near the harbour: how nice to live there!"
    )
    (home,) = await harness.save_memories(
        MemoryIn(content="Mara lives in Bergen", source={"session_id": "home", "message_ids": [told.id]})
    )
    await harness.save_memories(MemoryIn(content="Mara lives in Oslo", supersedes=[home.id]))
    harness.clock.advance(timedelta(minutes=1))
    preamble = (await harness.build_context("In which city do I live?", session_id="today")).preamble
    assert "Oslo" in preamble
    assert "Bergen" not in preamble


async def test_quotes_are_in_the_order_in_which_they_were_said(harness: ContextHarness) -> None:
    for days, step in ((3, "sanded"), (2, "primed"), (1, "painted")):
        at = harness.clock() - timedelta(days=days)
        await harness.add_messages(
            f"day {days}", MessageIn(role="user", name="Mara", content=f"Today I {step} the boat's hull", timestamp=at)
        )
    context = await harness.build_context("In which order did I work on the boat's hull?", session_id="today")
    assert quotes(context) == [f"Mara: Today I {step} the boat's hull" for step in ("sanded", "primed", "painted")]


async def test_a_repeated_message_is_quoted_once(harness: ContextHarness) -> None:
    said = MessageIn(role="user", name="Mara", content="I put the key of the boat house under the mat")
    await harness.add_messages("one", said)
    await harness.add_messages("two", said)
    assert len(quotes(await harness.build_context("Where is the key of the boat house?"))) == 1


async def test_messages_of_the_conversation_are_not_quoted_again(harness: ContextHarness) -> None:
    await harness.add_messages("today", "The boiler is in the cellar, behind the wine shelf")
    context = await harness.build_context("Where is the boiler?", session_id="today")
    assert context.preamble.count("boiler") == 1


async def test_a_secret_is_not_quoted(harness: ContextHarness) -> None:
    said = MessageIn(role="user", content="The code of the boat house is on file, write to mara@example.org for it")
    (vector,) = await harness.embedder.embed([said.content])
    hidden = PreparedMessage(said, vector, redacted="The code of the boat house is on file, write to [email] for it")
    await harness.episodes.append_messages(harness.owner, "one", [hidden])
    context = await harness.build_context("Where is the code of the boat house?", session_id="today")
    assert "boat house" not in context.preamble
    earlier = await harness.build_context("What did we talk about last time, the boat house?", session_id="today")
    assert "[email]" not in earlier.model_dump_json()


@pytest.mark.req("CASH-12")
async def test_a_state_of_the_moment_does_not_come_back_as_a_quote(harness: ContextHarness) -> None:
    await harness.add_messages("bank", "My current balance is $4,512.37 on the savings account", "Noted.")
    for question in ("What is on my savings account?", "What did we discuss last time about my savings account?"):
        context = await harness.build_context(question, session_id="today")
        assert "4,512.37" not in context.model_dump_json(exclude={"active_contexts"})


async def test_the_echo_of_a_question_is_not_quoted(harness: ContextHarness) -> None:
    question = "What is my dog called?"
    await harness.add_messages("one", question, "You asked what your dog is called. I do not know.")
    await harness.add_messages("two", question, "Your dog is called Rex.")
    assert quotes(await harness.build_context(question)) == ["the assistant: Your dog is called Rex."]


@pytest.mark.parametrize("ending", ["deleted", "superseded"])
async def test_what_is_no_longer_believed_does_not_come_back_as_a_quote(harness: ContextHarness, ending: str) -> None:
    (message,) = await harness.add_messages("house", "My boiler is in the cellar of the house")
    (memory,) = await harness.save_memories(
        MemoryIn(content="Mara's boiler is in the cellar", source={"session_id": "house", "message_ids": [message.id]})
    )
    assert "boiler is in the cellar" in (await harness.build_context("Where is my boiler?")).preamble
    if ending == "deleted":
        facts = FactStore(harness.graph, EntityStore(harness.graph), harness.clock)
        await facts.update_memory(harness.owner, memory.id, lambda ledger: ledger.delete(memory.id), actor="test")
    else:
        await harness.save_memories(MemoryIn(content="Mara's boiler is in the attic", supersedes=[memory.id]))
    harness.clock.advance(timedelta(minutes=1))
    assert "cellar" not in (await harness.build_context("Where is my boiler?")).preamble


async def test_a_message_is_quoted_beside_its_fact_only_if_that_leaves_out_much_of_it(harness: ContextHarness) -> None:
    texts = (
        "My boiler is in the cellar, behind the wine shelf and the old sledge",
        "My boiler is in the house, downstairs",
    )
    for number, text in enumerate(texts):
        (message,) = await harness.add_messages(f"house {number}", text)
        source = {"session_id": f"house {number}", "message_ids": [message.id]}
        await harness.save_memories(MemoryIn(content=f"Mara's boiler {number} is downstairs", source=source))
    preamble = (await harness.build_context("Where is my boiler?")).preamble
    assert "behind the wine shelf" in preamble
    assert "in the house, downstairs" not in preamble


async def test_all_items_of_a_list_are_included_before_what_was_said(harness: ContextHarness) -> None:
    instruments = ("cello", "piano", "flute", "harp", "drums", "banjo", "trumpet", "violin", "oboe", "tuba")
    await harness.save_memories(
        *(
            MemoryIn(
                content=f"Mara plays the {instrument}",
                subject={"name": "Mara", "type": "Person"},
                predicate="PLAYS",
                object={"name": instrument, "type": "Instrument"},
            )
            for instrument in instruments
        )
    )
    await harness.add_messages("music", *(f"I will play music at {place}" for place in ("home", "work", "sea", "camp")))
    context = await harness.build_context("Which instruments does Mara play?", token_budget=150)
    assert all(instrument in " ".join(bullets(context)) for instrument in instruments)
    (others,) = [line for line in bullets(context) if "also plays" in line]
    assert len(context.memories) == len(instruments) > len(bullets(context)), others


async def test_a_fact_with_a_message_of_its_own_precedes_a_second_one_of_the_same_message(
    harness: ContextHarness,
) -> None:
    one, two = await harness.add_messages("boat", "I painted the boat blue in May", "And what else?")
    texts = (("Mara painted the boat blue", one), ("Mara painted the boat in May", one), ("Mara owns the boat", two))
    await harness.save_memories(
        *(MemoryIn(content=text, source={"session_id": "boat", "message_ids": [told.id]}) for text, told in texts)
    )
    shown = bullets(await harness.build_context("What about Mara and the boat?", session_id="today"))
    assert shown[-1].startswith("Mara painted the boat")


@pytest.mark.parametrize(("kind", "is_shown"), [("user", True), ("web", False)])
async def test_what_an_equally_trusted_source_contests_is_shown_with_it_to_who_asks(
    harness: ContextHarness, kind: SourceKind, is_shown: bool
) -> None:
    (home, _) = await harness.save_memories("Mara lives in Bergen", "Mara drinks tea")
    rival = MemoryIn(content="Mara lives in Oslo")
    (vector,) = await harness.embedder.embed([rival.content])
    facts = FactStore(harness.graph, EntityStore(harness.graph), harness.clock)
    contesting = NewMemory(rival, vector, source_kind=kind, contests=[home.id])
    await facts.save(harness.owner, [contesting], {}, None)
    harness.clock.advance(timedelta(minutes=1))
    asked = await harness.build_context("Where does Mara live?")
    shown = "Mara lives in Bergen (contested, it is not known which is right: Mara lives in Oslo)"
    assert (shown in bullets(asked)) is is_shown
    assert ("Oslo" in asked.model_dump_json()) is is_shown
    other = await harness.build_context("What does Mara drink?")
    assert "Oslo" not in other.model_dump_json()


async def test_a_plan_says_that_its_day_has_passed(harness: ContextHarness) -> None:
    plans = (
        "Mara plans to visit Kyoto on 12 May 2026",
        "Mara plans to visit Lima in April 2026",
        "Mara plans to visit Oslo in July 2026",
        "Mara plans to sell the car of 2019",
        "Mara plans to visit Riga in spring",
    )
    made = datetime.fromisoformat("2026-03-01T12:00:00Z")
    await harness.save_memories(*(MemoryIn(content=content, type="plan", valid_at=made) for content in plans))
    shown = bullets(await harness.build_context("What does Mara plan to visit or sell?"))
    assert {line for line in shown if "was planned" in line} == {
        f"{plans[0]} (was planned)",
        f"{plans[1]} (was planned)",
    }


async def test_facts_about_who_is_asked_about_precede_those_about_whom_it_was_told(harness: ContextHarness) -> None:
    told = {
        "Mara": "has a sore shoulder, joined a choir, lives in Ghent, adopted a dog, reads novels, grows tomatoes,"
        " sold her car, broke her phone, learns the violin, works as an architect, is afraid of flying",
        "James": "lives in Leeds, works as a nurse, collects stamps, runs marathons, studied history, keeps bees,"
        " bought a piano, has two daughters, owns a bicycle, likes spicy food, is allergic to nuts",
        "Priya": "runs a bakery, moved to Porto, teaches yoga, has a garden, paints watercolours, is vegan,"
        " owns a boat, plays chess, drinks green tea, hikes in the Alps, speaks five languages",
    }
    await harness.save_memories(
        *(
            MemoryIn(content=f"{name} {fact.strip()}", subject={"name": name, "type": "Person"})
            for name, facts in told.items()
            for fact in facts.split(",")
        )
    )
    for question, topic in (
        ("What did Mara write to Priya about her shoulder and her choir?", "Mara"),
        ("What did Mara say to James about her violin and her dog?", "Mara"),
        ("What did Priya tell James about her garden and her boat?", "Priya"),
    ):
        shown = bullets(await harness.build_context(question))
        assert [line.split()[0] for line in shown[:3]] == [topic] * 3, (question, shown)


async def test_an_overview_in_any_language_takes_from_every_session(harness: ContextHarness) -> None:
    told = {
        "home": ("lives in Ghent", "lives near the canal", "lives in a flat with two rooms", "lives alone"),
        "music": ("joined a choir", "learns the violin", "sings alto on Mondays", "owns a cello"),
        "work": ("works as an architect", "leads a small office", "designs schools", "has three colleagues"),
        "pets": ("adopted a dog", "walks the dog at six", "feeds the neighbour's cat", "has an aquarium"),
        "health": ("has a sore shoulder", "sees a physiotherapist", "swims for her back", "avoids coffee"),
        "holidays": ("visited Lisbon", "hikes in the Alps", "is afraid of flying", "travels by night train"),
    }
    for session, texts in told.items():
        await harness.save_memories(
            *(
                MemoryIn(
                    content=f"Mara {text}", subject={"name": "Mara", "type": "Person"}, source={"session_id": session}
                )
                for text in texts
            )
        )
    for question in ("Who is Mara?", "Was weißt du über Mara?", "Mitä tiedät Marasta?", "Mara"):
        context = await harness.build_context(question, token_budget=90)
        assert len(context.memories) < len(told) * 3, question
        assert {memory.source.session_id for memory in context.memories} == set(told), (question, bullets(context))
