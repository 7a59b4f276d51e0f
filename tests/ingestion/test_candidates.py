"""Candidates of the first call: validated, or rejected with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.answers import Extraction
from graphmem.ingestion.candidates import (
    AliasGroup,
    Statement,
    collect_alias_groups,
    validate_candidates,
)
from graphmem.ingestion.jobs import MemoryAction
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.memories.memory import MemoryIn
from tests.ingestion.builders import BERLIN, line
from tests.ingestion.conftest import candidate, extraction


def read(
    *candidates: dict[str, Any], lines: list[TranscriptLine] | None = None, names: Sequence[dict[str, Any]] = ()
) -> tuple[list[Statement], list[MemoryAction]]:
    answer = Extraction.model_validate(extraction(*candidates, names=list(names)))
    return validate_candidates(
        answer, lines or [line(1), line(2, MessageRole.ASSISTANT)], "s1", "user-7", ["Mara"], lambda _: None
    )


def test_a_candidate_gets_its_source_messages_and_speaker_local_times() -> None:
    ((validated,), _) = read(candidate("Mara moved", valid_at="2026-05-03", invalid_at="2026-06", messages=[1, 2, 9]))
    assert validated.memory.source
    assert validated.memory.source.message_ids == ["m1", "m2"]
    assert validated.user_message_ids == ("m1",)
    assert validated.memory.valid_at == datetime(2026, 5, 3, tzinfo=BERLIN)
    assert validated.memory.invalid_at == datetime(2026, 6, 1, tzinfo=BERLIN)


def test_the_user_is_known_by_every_name_and_never_an_entity_of_their_own() -> None:
    for name in ("User", "the user", "Mara", "MARA", "user-7"):
        ((validated,), _) = read(candidate("x", subject={"name": name, "type": "Person"}))
        assert validated.memory.subject is None


def test_another_name_of_the_subject_is_no_entity_of_its_own() -> None:
    user, thing = {"name": "User", "type": "Person"}, {"name": "Bathroom thermostat", "type": "Product"}
    ((of_user, of_thing, of_others), _) = read(
        candidate("Mara's name is Mara Lindqvist", subject=user, object={"name": "Mara Lindqvist", "type": "Name"}),
        candidate(
            "The thermostat is called Bath North", subject=thing, object={"name": "Bath North", "type": "Product"},
            entities=[{"name": "bath north", "type": ""}, {"name": "Elin", "type": "Person"}],
        ),
        candidate(
            "Jonas Brandt is married to Jonas Okafor",
            subject={"name": "Jonas Brandt", "type": "Person"}, object={"name": "Jonas Okafor", "type": "Person"},
        ),
        names=[
            {"name": "Mara Lindqvist", "others": ["User", "Mara"]},
            {"name": "Bath North", "others": ["Bathroom thermostat"]},
            {"name": "Jonas Brandt", "others": ["Jonas Okafor"]},
        ],
    )  # fmt: skip
    assert of_user.memory.object is None
    assert of_thing.memory.object is None
    assert [entity.name for entity in of_thing.memory.entities] == ["Elin"]
    assert of_others.memory.object is not None, "two names that cannot be one person's"


def test_the_user_as_object_gets_the_user_entitys_name() -> None:
    ((validated,), _) = read(
        candidate(
            "Elin is Mara's sister", subject={"name": "Elin", "type": "Person"}, object={"name": "User", "type": ""}
        )
    )
    assert validated.memory.object
    assert validated.memory.object.name == "user-7"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"messages": []}, "names none of the messages"),
        ({"messages": [7]}, "names none of the messages"),
        ({"messages": [2]}, "said by the assistant only"),
        ({"subject": {"name": "  ", "type": "Person"}}, "names no subject"),
        ({"content": " "}, "cannot be stored: value_error"),
        ({"content": "x" * 9000}, "cannot be stored: string_too_long"),
    ],
)
def test_an_invalid_candidate_is_rejected_with_the_reason(fields: dict[str, Any], reason: str) -> None:
    validated_candidates, rejections = read({**candidate("x"), **fields})
    assert (validated_candidates, [refusal.reason for refusal in rejections]) == ([], [reason])


def test_predicates_tags_and_numbers_are_normalised() -> None:
    ((validated,), _) = read(
        candidate(
            "x",
            predicate="is allergic-to!",
            object={"name": "nuts", "type": "?!"},
            tags=["HEALTH stuff", "domain:cooking", "", "a" * 80],
            confidence=1.7,
            importance=-1,
            valid_at="2026",
            invalid_at="2025",
        )
    )
    memory = validated.memory
    assert (memory.predicate, memory.tags, memory.confidence, memory.importance) == (
        "IS_ALLERGIC_TO",
        ["health-stuff"],
        1,
        0,
    )
    assert memory.object
    assert memory.object.type == "Thing"
    assert memory.invalid_at is None


def test_only_listed_predicates_are_single_valued_and_start_at_the_message() -> None:
    likes, lives, pays, weighs = read(
        candidate("Mara likes tea", predicate="LIKES", single_valued=True),
        candidate("Mara lives in Rome", predicate="LIVES_IN", single_valued=True),
        candidate("Mara pays 900 euros of rent", predicate="PAYS_RENT", single_valued=True),
        candidate("Rex weighs 12 kg", predicate="HAS_WEIGHT", single_valued=True),
    )[0]
    assert (likes.memory.single_valued, likes.memory.valid_at) == (False, None)
    for state in (lives, pays, weighs):
        assert (state.memory.single_valued, state.memory.valid_at) == (True, line(1).sent_at)


def test_duplicate_candidates_are_merged_with_both_messages() -> None:
    lines = [line(1), line(2)]
    ((validated,), _) = read(candidate("Mara has a cat"), candidate("Mara has a cat ", messages=[2]), lines=lines)
    assert validated.memory.source
    assert validated.memory.source.message_ids == ["m1", "m2"]
    assert validated.user_message_ids == ("m1", "m2")
    codes = [candidate("The code is aB3x"), candidate("The code is Ab3X", messages=[2])]
    assert len(read(*codes, lines=lines)[0]) == 2


@given(
    st.fixed_dictionaries(
        {
            "content": st.text(max_size=40),
            "predicate": st.text(max_size=12),
            "valid_at": st.none() | st.text(max_size=12),
            "confidence": st.floats(),
            "importance": st.floats(),
            "tags": st.lists(st.text(max_size=12), max_size=3),
            "messages": st.lists(st.integers(-2, 4), max_size=3),
            "subject": st.fixed_dictionaries({"name": st.text(max_size=8), "type": st.text(max_size=8)}),
        }
    )
)
def test_any_candidate_is_either_validated_or_rejected(fields: dict[str, Any]) -> None:
    validated_candidates, rejections = read({**candidate("x"), **fields})
    assert len(validated_candidates) + len(rejections) == 1
    for validated in validated_candidates:
        MemoryIn.model_validate(validated.memory.model_dump())


def test_alias_groups_are_split_between_the_user_and_others() -> None:
    answer = Extraction.model_validate(
        extraction(
            names=[
                {"name": "Mara Lindqvist", "others": ["User", "Mara"]},
                {"name": "Frederike Holm", "others": ["Freddie"]},
                {"name": "Jonas Brandt", "others": ["Jonas Okafor"]},
                {"name": "Alone", "others": [" "]},
            ]
        )
    )
    assert collect_alias_groups(answer, ["Mara"]) == [
        AliasGroup("", ("Mara Lindqvist", "Mara")),
        AliasGroup("Frederike Holm", ("Freddie",)),
    ]


def test_a_date_starts_at_midnight_in_the_offset_of_its_message() -> None:
    tokyo = timezone(timedelta(hours=9))
    ((validated,), _) = read(
        candidate("x", valid_at="2026-05-04"), lines=[line(1, sent_at=datetime(2026, 5, 4, 5, tzinfo=tokyo))]
    )
    assert validated.memory.valid_at == datetime(2026, 5, 3, 15, tzinfo=UTC)
