"""Numbers in names are exact: a thing that differs in one digit is another thing, in lookup and in search."""

from __future__ import annotations

import httpx
import pytest

from graphmem.memories.entity import NamedEntity
from graphmem.memories.entity_names import NameIndex
from graphmem.search.fit import find_identifiers

PAIRS = (
    ("invoice INV-20231", "invoice INV-20232"), ("flight LH1400", "flight LH1401"), ("iPhone 14", "iPhone 15"),
    ("CVE-2024-1234", "CVE-2024-1243"), ("room 1803", "room 1804"), ("ticket 77", "ticket 78"),
)  # fmt: skip


def test_identifiers_are_words_with_numbers_and_no_times_or_amounts() -> None:
    found = find_identifiers("In 2023 invoice INV-20231 of flight LH1400 for room 12 was 5 km off", ("en",))
    assert found == {"inv-0": {"inv-20231"}, "lh0": {"lh1400"}, "room 0": {"room 12"}}


def test_typos_are_forgiven_in_words_and_not_in_digits() -> None:
    index = NameIndex([NamedEntity(id=name, name=name, type="Thing", aliases=[], is_user=False) for name, _ in PAIRS])
    for known, other in PAIRS:
        assert [mention.id for mention in index.find(f"What about {known}?")] == [known]
        assert index.find(f"What about {other}?") == [], other
    assert [mention.id for mention in index.find("What about invoise INV-20231?")] == ["invoice INV-20231"]


SAID = (
    ("The {} was paid by bank transfer.", "Was the {} paid?"), ("The {} leaves from Oslo.", "Where does the {} start?"),
    ("Mara keeps her {} in a drawer.", "Where is the {}?"), ("{} concerns the mail server.", "What does {} concern?"),
    ("The workshop is in {}.", "What is in {}?"), ("The {} is about a broken printer.", "What is {} about?"),
)  # fmt: skip
"""What is said of the first of each pair, and what is asked of both."""


@pytest.mark.req("UMB-08")
async def test_another_number_is_not_found(agent: httpx.AsyncClient) -> None:
    memories = [
        {"content": said.format(known), "entities": [{"name": known, "type": "Thing"}]}
        for (known, _), (said, _) in zip(PAIRS, SAID, strict=True)
    ]
    (await agent.post("/v1/users/mara/memories", json={"memories": memories})).raise_for_status()
    for (known, other), (_, asks) in zip(PAIRS, SAID, strict=True):
        for asked, is_known in ((known, True), (other, False)):
            question = asks.format(asked)
            search = {"query": question, "cut": "auto"}
            hits = (await agent.post("/v1/users/mara/search", json=search)).json()["results"]
            assert any(known in hit["memory"]["content"] for hit in hits) is is_known, asked
            looked = await agent.get("/v1/users/mara/entities/lookup", params={"q": question})
            assert (known in [match["entity"]["name"] for match in looked.json()["entities"]]) is is_known, asked
