"""The hard, unseen and nuanced conversations: complete, without contradictions, and fair to answers in other words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessageRole
from graphmem.tenants.owners import Owner
from quality.cases import (
    CONVERSATIONS,
    HARD_CONVERSATIONS,
    NUANCED_CONVERSATIONS,
    UNSEEN_CONVERSATIONS,
    EvaluationCase,
    StoredMemory,
    load_cases,
)
from quality.extraction import MemoryReader, case_zone, save_stored
from quality.results import USER, BatchOutcome, CaseResult, ScoredMemory
from quality.score import CaseScore, score_case

HARD_CASES = {case.id: case for case in load_cases(HARD_CONVERSATIONS)}
UNSEEN_CASES = {case.id: case for case in load_cases(UNSEEN_CONVERSATIONS)}
CASES = HARD_CASES | UNSEEN_CASES
NUANCED_CASES = {case.id: case for case in load_cases(NUANCED_CONVERSATIONS)}

CAREFUL_ANSWERS = Path(__file__).with_name("careful_answers.jsonl")
"""For each case: what a careful reader saves, what becomes of stored memories, and more right and wrong ones."""

ANSWERS: dict[str, dict[str, Any]] = {
    answer["id"]: answer for answer in map(json.loads, CAREFUL_ANSWERS.read_text("utf-8").splitlines())
}
ALSO = [(id, right) for id, answer in ANSWERS.items() for right in answer.get("also", [])]
WRONG = [(id, wrong) for id, answer in ANSWERS.items() for wrong in answer.get("wrong", [])]
THEMES = {
    *("namesakes", "organisation", "dates", "week", "midnight", "cancellation", "negation", "advice", "correction"),
    *("speakers", "other-subject", "thing-to-plan", "stated-end", "partial", "condition", "self-name", "job"),
    *("mixed-language", "settled-future", "secret", "injection", "pasted", "small-talk", "hypothetical", "hearsay"),
    *("quantities", "list", "assistant-action", "domain", "programming", "cooking"),
}


def saved_memory(number: int, memory: dict[str, Any]) -> ScoredMemory:
    fields = {"type": "fact", "subject": USER, **memory, "entities": tuple(memory.get("entities", ()))}
    ended = not fields.get("current", True) and not fields.get("invalid_at")
    given: dict[str, Any] = {"subject_id": fields["subject"], "replaced": ended, **fields}
    return ScoredMemory(id=str(number), **given)


def stored_memory(case: EvaluationCase, number: int, stored: StoredMemory, answer: dict[str, Any]) -> ScoredMemory:
    memory, key = stored.memory, str(number)
    ended = number in answer.get("ended", [])
    since = memory.valid_at.astimezone(ZoneInfo(case.timezone or "UTC")) if memory.valid_at else None
    subject = memory.subject.name if memory.subject else USER
    return ScoredMemory(
        id=f"stored {number}",
        content=memory.content,
        type=memory.type.value,
        subject=subject,
        subject_id=subject,
        valid_at=since.strftime("%Y-%m-%dT%H:%M") if since else None,
        invalid_at=answer.get("until", {}).get(key, "2025-06-01T00:00" if ended else None),
        current=not ended,
        replaced=ended,
        stored=number,
        reinforced=number in answer.get("reinforced", []),
    )


def score_answer(case: EvaluationCase, *more: ScoredMemory) -> CaseScore:
    answer = ANSWERS[case.id]
    kept = [saved_memory(number, memory) for number, memory in enumerate(answer["saved"])]
    kept += [stored_memory(case, number, stored, answer) for number, stored in enumerate(case.stored)]
    batch = BatchOutcome("skipped" if case.expected.skip else "succeeded", 1)
    return score_case(case, CaseResult([*kept, *more], [batch]))


def speakers(cases: Iterable[EvaluationCase]) -> set[str]:
    return {message.name for case in cases for batch in case.sessions for message in batch.messages if message.name}


def test_the_hard_conversations_are_many_distinct_and_of_every_theme() -> None:
    assert len(HARD_CASES) == len(load_cases(HARD_CONVERSATIONS)) >= 50
    assert not HARD_CASES.keys() & {case.id for case in load_cases(CONVERSATIONS)}
    tags = {tag for case in HARD_CASES.values() for tag in case.tags}
    assert tags >= THEMES
    assert tags >= {"english", "german", "spanish", "french", "italian", "portuguese", "japanese", "chinese"}
    texts = [message.content for case in CASES.values() for batch in case.sessions for message in batch.messages]
    spoken = [text for text in texts if len(text) > 60]
    assert len(set(spoken)) == len(spoken)


def test_the_unseen_conversations_are_many_and_of_other_people() -> None:
    assert len(UNSEEN_CASES) == len(load_cases(UNSEEN_CONVERSATIONS)) >= 30
    others = [*HARD_CASES.values(), *load_cases(CONVERSATIONS)]
    assert not UNSEEN_CASES.keys() & {case.id for case in others}
    assert not speakers(UNSEEN_CASES.values()) & speakers(others)
    tags = {tag for case in UNSEEN_CASES.values() for tag in case.tags}
    assert tags >= {"english", "german", "spanish", "french", "italian", "portuguese", "swedish", "japanese"}


def test_the_nuanced_conversations_are_many_and_of_every_kind() -> None:
    tags = {tag for case in NUANCED_CASES.values() for tag in case.tags}
    assert len(NUANCED_CASES) == len(load_cases(NUANCED_CONVERSATIONS)) >= 24
    assert not NUANCED_CASES.keys() & CASES.keys()
    assert tags >= {
        *("span", "undated-event", "weekday", "weekend", "new", "possession", "likes", "praise", "caption", "advice"),
        *("we-plan", "speakers", "passed-plan", "several", "contest", "near-duplicate", "kinds", "session-only"),
        *("wish", "interest", "english", "german", "spanish", "french", "italian", "portuguese", "japanese", "chinese"),
    }


def test_each_conversation_has_times_in_order_and_expects_something() -> None:
    for case in [*CASES.values(), *NUANCED_CASES.values()]:
        messages = [message for batch in case.sessions for message in batch.messages]
        times = [message.timestamp for message in messages if message.timestamp]
        assert len(times) == len(messages), case.id
        assert times == sorted(times), case.id
        assert messages[0].role is MessageRole.USER, case.id
        expected = case.expected
        assert expected.keep or expected.skip or case.stored, case.id
        assert not (expected.skip and (expected.keep or expected.supersedes)), case.id
        assert all(drop.matches(text) for drop in expected.drop for text in drop.any[:1]), case.id


def test_a_careful_answer_gets_full_marks() -> None:
    scores = {case.id: score_answer(case) for case in CASES.values()}
    assert {id: (score.missed, score.wrong) for id, score in scores.items() if score.missed or score.wrong} == {}


def test_a_right_memory_in_other_words_counts() -> None:
    scores = [(right["content"], score_case(CASES[id], CaseResult([saved_memory(99, right)]))) for id, right in ALSO]
    assert [content for content, score in scores if score.metrics.precision.value != 1] == []


def test_a_wrong_memory_does_not_count() -> None:
    counted = []
    for id, wrong in WRONG:
        careful, careless = score_answer(CASES[id]), score_answer(CASES[id], saved_memory(99, wrong))
        if careless.metrics.precision.part != careful.metrics.precision.part or not careless.wrong:
            counted.append((id, wrong["content"]))
    assert counted == []


def test_doing_nothing_is_noticed_where_stored_memories_must_end_or_be_strengthened() -> None:
    for case in CASES.values():
        idle = [stored_memory(case, number, stored, {}) for number, stored in enumerate(case.stored)]
        metrics = score_case(case, CaseResult(idle)).metrics
        fates = [stored.then for stored in case.stored]
        assert metrics.missed_supersessions.part == fates.count("ends"), case.id
        assert metrics.reinforcements.whole - metrics.reinforcements.part == fates.count("reinforced"), case.id


def test_ending_every_stored_memory_is_noticed_where_one_holds_on() -> None:
    for case in CASES.values():
        everything = {"ended": list(range(len(case.stored)))}
        ended = [stored_memory(case, number, stored, everything) for number, stored in enumerate(case.stored)]
        metrics = score_case(case, CaseResult(ended)).metrics
        assert metrics.wrong_supersessions.part == sum(stored.then != "ends" for stored in case.stored), case.id


async def test_the_stored_memories_can_be_saved_and_are_recognised(memory: Services, tenant: str) -> None:
    case = CASES["hard-38"]
    owner = Owner(tenant, case.id)
    ids = await save_stored(memory, owner, case)
    reader = MemoryReader(case, ids, reinforced=set())
    [saved] = [reader.to_scored_memory(await memory.memories.get(owner, id)) for id in ids]
    assert (saved.stored, saved.subject, saved.valid_at, saved.current) == (0, USER, "2022-02-01T00:00", True)
    assert case_zone(case) == ZoneInfo("America/Denver")


async def test_no_stored_memory_is_refused(memory: Services, owner: Owner) -> None:
    stored = [stored.memory for case in CASES.values() for stored in case.stored]
    results = await memory.memories.save(owner, stored)
    assert [result.reason for result in results if result.memory is None] == []
