"""Numbers in names are exact: a thing that differs in one digit is another thing, in lookup and in search."""

from __future__ import annotations

import httpx
import pytest

from graphmem.memories.entity import NamedEntity
from graphmem.memories.names import NameIndex

PAIRS = (
    ("invoice INV-20231", "invoice INV-20232"), ("flight LH1400", "flight LH1401"), ("iPhone 14", "iPhone 15"),
    ("CVE-2024-1234", "CVE-2024-1243"), ("room 1803", "room 1804"), ("ticket 77", "ticket 78"),
)  # fmt: skip


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
        for (known, _), (said, _) in zip(PAIRS[::2], SAID[::2], strict=True)
    ]
    (await agent.post("/v1/users/mara/memories", json={"memories": memories})).raise_for_status()
    for (known, other), (_, asks) in zip(PAIRS[::2], SAID[::2], strict=True):
        for asked, is_known in ((known, True), (other, False)):
            question = asks.format(asked)
            search = {"query": question, "cut": "auto"}
            hits = (await agent.post("/v1/users/mara/search", json=search)).json()["results"]
            assert any(known in hit["memory"]["content"] for hit in hits) is is_known, asked
            looked = await agent.get("/v1/users/mara/entities/lookup", params={"q": question})
            assert (known in [match["entity"]["name"] for match in looked.json()["entities"]]) is is_known, asked


@pytest.mark.req("UMB-08")
async def test_what_another_number_names_is_not_sufficient_knowledge(agent: httpx.AsyncClient) -> None:
    memories = [
        {"content": said, "subject": {"name": name, "type": "Thing"}}
        for name, said in (
            ("ASR1603", "ASR1603 costs 3 dollars"),
            ("bus 42", "Bus 42 leaves at 8"), ("LH1400", "Flight LH1400 leaves from gate B14"),
        )
    ]  # fmt: skip
    (await agent.post("/v1/users/mara/memories", json={"memories": memories})).raise_for_status()
    for question, is_known in (
        ("What does ASR1603 cost?", True), ("What does ASR1605 cost?", False), ("When does bus 42 leave?", True),
        ("When does bus no. 43 leave?", False), ("From which gate does BA1400 leave?", False),
    ):  # fmt: skip
        context = await agent.post("/v1/users/mara/context", json={"question": question})
        context.raise_for_status()
        assert context.json()["personalization_hints"]["knowledge"]["sufficient"] is is_known, question
