"""The recorded completions of the evaluation."""

from __future__ import annotations

import re
from functools import cache

import pytest

from graphmem.ingestion.answers import Candidate, Extraction
from graphmem.memories.memory import MemoryType
from graphmem.models.replay import load_recordings
from graphmem.models.structured_output import read_answer
from quality.extraction import RECORDINGS

# "I" is an article in Italian, before a word that ends in "i".
FIRST_PERSON = re.compile(r"\b(I(?! \w{4,}i\b)|I'm|my|me|we|our|ich|mein|meine|wir|jag|min|vi|yo|mi|je|mon|ma|nous)\b")
DANGLING_SUBJECT = re.compile(
    r"(He|She|It(?! (?:is|was)\b.*\bthat\b)|They|This|That|There"
    r"|Er|Sie|Es|Hon|Han|Ella|Elle|Il(?= (?:a|est|s|ne|n|y)\b))\b"
)


@cache
def recorded_candidates() -> list[Candidate]:
    recordings = load_recordings(RECORDINGS).values()
    answers = [
        read_answer(recording["answer"]["content"], Extraction)
        for recording in recordings
        if recording["request"]["response_format"]["json_schema"]["name"] == Extraction.__name__
    ]
    return [candidate for answer in answers for candidate in answer.candidates]


@pytest.mark.req("CASH-19")
@pytest.mark.parametrize(("type", "score"), [(MemoryType.PREFERENCE, 0.9), (MemoryType.FACT, 0.95)])
def test_recorded_completions_score_stated_preferences_and_facts_as_asked(type: MemoryType, score: float) -> None:
    stated = [candidate for candidate in recorded_candidates() if candidate.subject.name == "User"]
    confidences = [candidate.confidence for candidate in stated if candidate.type is type]
    calibrated = [confidence for confidence in confidences if abs(confidence - score) <= 0.0501]
    assert len(calibrated) >= 0.85 * len(confidences) > 10, "the others are hedged, or told by somebody else"


@pytest.mark.req("QUINN-20")
def test_recorded_completions_are_less_certain_of_what_they_infer_than_of_what_is_stated() -> None:
    inferred: list[float] = []
    stated: list[float] = []
    for candidate in recorded_candidates():
        (inferred if candidate.type is MemoryType.INFERRED_INTEREST else stated).append(candidate.confidence)
    assert 0.5 <= max(inferred) < 0.8 < sum(stated) / len(stated)


@pytest.mark.req("GO-13")
def test_recorded_candidates_are_self_contained_sentences_in_the_third_person() -> None:
    contents = [candidate.content for candidate in recorded_candidates()]
    assert len(contents) > 100
    assert [content for content in contents if FIRST_PERSON.search(content)] == []
    assert [content for content in contents if DANGLING_SUBJECT.match(content)] == []
