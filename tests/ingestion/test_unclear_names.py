"""Which names the second call is asked about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.ingestion.conftest import IngestionHarness, candidate, decision, extraction, reconciliation


async def asked_about(harness: IngestionHarness, name: str, known: Sequence[str]) -> str | None:
    """Return the options for a person's name as the second prompt names them, or None where it does not ask."""
    for person in known:
        await harness.save(f"{person} plays chess", predicate="PLAYS", subject=_person(person))
    told = candidate(f"{name} plays chess on Sundays", predicate="PLAYS", subject=_person(name))
    harness.model_answers(extraction(told), reconciliation(decision(1, "insert")))
    job = await harness.send_and_extract(f"{name} plays chess on Sundays")
    assert job.status == "succeeded", job.error
    if len(harness.prompts) < 2:
        return None
    prompt = harness.prompts[-1]
    (asked,) = re.findall("<unclear_names>(.*?)</unclear_names>", prompt, re.DOTALL)
    (entities,) = re.findall("<known_entities>(.*?)</known_entities>", prompt, re.DOTALL)
    return entities if "which may be" in asked else None


def _person(name: str) -> dict[str, Any]:
    return {"name": name, "type": "Person"}


@pytest.mark.parametrize(
    "known",
    [
        ["Calvin", "Calvin's agent", "Calvin's dad"],
        pytest.param(["Calvin", "Tom (Calvin's agent)"], marks=pytest.mark.long),
        pytest.param(["Calvin", "padre de Calvin"], marks=pytest.mark.long),
        ["Calvin's agent", "Calvin's dad"],
    ],
)
async def test_a_name_that_one_known_person_has_is_not_asked_about(harness: IngestionHarness, known: list[str]) -> None:
    assert await asked_about(harness, "Calvin", known) is None


@pytest.mark.parametrize(
    "known",
    [
        ["Paul", "Paul (neighbour)"],
        pytest.param(["Paul Smith", "Paul Jones"], marks=pytest.mark.long),
        ["Paul", "Paul Jones", "Paul's wife"],
    ],
)
async def test_a_name_that_two_known_people_may_have_is_asked_about(
    harness: IngestionHarness, known: list[str]
) -> None:
    options = await asked_about(harness, "Paul", known)
    assert options is not None
    assert [name for name in known if f"] {name} (Person)" in options] == [name for name in known if "'s" not in name]
