"""Random writes by every verb: a copy of the user in memory answers as the database does after each of them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.app.components import RetrievalComponents
from graphmem.conversations.session import MessageIn, MessagesIn
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.memories.vectors import StoredVectors
from graphmem.runtime.errors import Conflict, InvalidInput, NotFound
from graphmem.runtime.times import utc_now
from graphmem.search.models import SearchQuery
from graphmem.search.resident.copies import ResidentCopies
from graphmem.search.source import CandidateSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import STATED_KINDS
from tests.conftest import examples
from tests.search.sources import compare_sources, open_copies, open_resident

PEOPLE = ("Ines", "Fred", "Tomasz Nowak", "Bo")
PLACES = ("Lund", "Uppsala", "東京", "Rio de Janeiro")
THINGS = ("jazz", "rowing", "dairy-free cake", "maps of the moon", "running", "Ada's letters", "10,000 stamps")
QUESTIONS = tuple(f"who likes {thing} in {place}" for thing in THINGS for place in PLACES)
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


class RandomUser:
    """A user of the services to whom random things are written."""

    def __init__(self, services: Services, owner: Owner, random: Random) -> None:
        self._services = services
        self._owner = owner
        self._random = random
        self._said = 0
        self._ids: list[str] = []

    async def write(self) -> None:
        """Do one thing; what the state forbids is not done."""
        verbs = [self._save] * 6 + [self._say] * 2 + [self._read] * 2
        verbs += [self._correct, self._delete, self._revert, self._erase, self._rename, self._resolve]
        with suppress(Conflict, NotFound, InvalidInput):
            await self._random.choice(verbs)()

    async def _save(self) -> None:
        saved = await self._services.memories.save(
            self._owner, [self._statement() for _ in range(self._random.randint(1, 6))]
        )
        self._ids += [result.memory.id for result in saved if result.memory]

    def _statement(self) -> MemoryIn:
        choose = self._random.choice
        person, place, thing = choose(PEOPLE), choose(PLACES), choose(THINGS)
        given: dict[str, Any] = {
            "content": f"{person} likes {thing} in {place}",
            "subject": {"name": person, "type": "Person"},
            "importance": self._random.choice([0.2, 0.5, 0.9]),
            "confidence": self._random.choice([0.4, 0.9]),
            "tags": self._random.sample(["home", "work", "old-times"], self._random.randint(0, 2)),
            "metadata": {"n": self._random.randint(0, 2)} if self._random.random() < 0.4 else {},
        }
        if self._random.random() < 0.6:
            given["object"] = {"name": place, "type": "Place"}
        if self._random.random() < 0.3:
            given["entities"] = [{"name": choose(PEOPLE), "type": "Person"}]
        if self._random.random() < 0.5:
            given["valid_at"] = EPOCH + timedelta(days=self._random.randint(0, 2000))
        if "valid_at" in given and self._random.random() < 0.3:
            given["invalid_at"] = given["valid_at"] + timedelta(days=self._random.randint(1, 900))
        if self._random.random() < 0.3:
            given |= {"content": f"{person} lives in {place}", "predicate": "LIVES_IN", "single_valued": True}
            given["object"] = {"name": place, "type": "Place"}
        if self._random.random() < 0.6:
            given["source"] = {"kind": choose(STATED_KINDS), "speaker": choose(PEOPLE), "session_id": choose("ab")}
        if self._random.random() < 0.2:
            given["domain"] = choose(["travel", "music"])
        elif self._random.random() < 0.2:
            given["scope"] = "global"
        return MemoryIn.model_validate(given)

    async def _say(self) -> None:
        messages = []
        for _ in range(self._random.randint(1, 4)):
            self._said += 1
            content, speaker = self._random.choice(QUESTIONS), self._random.choice(PEOPLE)
            messages.append(MessageIn(id=f"m{self._said}", role="user", content=content, name=speaker))
        await self._services.messages.add(self._owner, MessagesIn(session_id="talk", messages=messages, extract=False))

    async def _read(self) -> None:
        await self._services.retrieval.lookup(self._owner, f"what about {self._random.choice(PEOPLE)}?")
        await self._services.retrieval.flush()

    def _some_memory(self) -> str:
        if not self._ids:
            raise NotFound("There is no memory.")
        return self._random.choice(self._ids)

    async def _correct(self) -> None:
        change = self._random.choice(
            [{"content": f"{self._random.choice(PEOPLE)} draws"}, {"importance": 0.7}, {"tags": ["home"]}]
        )
        await self._services.memories.patch(self._owner, self._some_memory(), MemoryPatch.model_validate(change))

    async def _delete(self) -> None:
        await self._services.memories.delete(self._owner, self._some_memory())

    async def _revert(self) -> None:
        await self._services.memories.revert(self._owner, self._some_memory())

    async def _resolve(self) -> None:
        holds = self._random.random() < 0.5
        for fact in await self._services.memories.list_contested(self._owner):
            await self._services.memories.resolve(self._owner, fact.memory_id, holds=holds)
            return

    async def _erase(self) -> None:
        await self._services.forgetting.erase_memory(self._owner, self._some_memory())

    async def _rename(self) -> None:
        entities, graph = self._services.components.entities, self._services.components.graph
        key, alias = self._random.choice(["ines", "fred"]), self._random.choice(["Bobby", "Nessa", "Fredo"])

        async def work(transaction: Any) -> None:
            await self._services.components.facts.lock_user(transaction, self._owner)
            await entities.add_aliases(transaction, self._owner, key, [alias], utc_now())

        await graph.write(work)


async def compare_answers(services: Services, copies: ResidentCopies, owner: Owner, question: str) -> None:
    """Assert that a search which finds the same candidates in both sources gives the same answer."""
    search = RetrievalComponents.build(services.components).search
    resident = await open_resident(copies, owner)
    graph = services.components.graph
    database = CandidateSource(graph, StoredVectors(graph), resident.state)
    query = SearchQuery(query=question, limit=100, include_messages=True, reinforce=False)
    ours, theirs = [await search.search(owner, query, source=source) for source in (resident, database)]
    for found, expected in (
        ({hit.memory.id: hit.score for hit in answer.results} for answer in (ours, theirs)),
        ({hit.message.id: hit.score for hit in answer.messages} for answer in (ours, theirs)),
        ({evidence.message_id: evidence.score for evidence in answer.evidence} for answer in (ours, theirs)),
    ):
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("seed", range(examples(0.05)))
async def test_a_copy_in_memory_answers_as_the_database_does(memory: Services, owner: Owner, seed: int) -> None:
    random = Random(seed)
    graph, embedder = memory.components.graph, memory.components.embedder
    user, copies = RandomUser(memory, owner, random), open_copies(graph)
    await memory.memories.save(owner, [MemoryIn(content="Ines likes jazz", subject={"name": "Ines"})])
    for _ in range(8):
        for _ in range(random.randint(1, 4)):
            await user.write()
        await compare_sources(copies, graph, embedder, owner, QUESTIONS, random)
        await compare_answers(memory, copies, owner, random.choice(QUESTIONS))
    await memory.forgetting.forget(owner)
    left = {group.group_id for group in (await copies.open(owner)).state.groups}
    assert left <= {owner.tenant_global.group_id}
    await copies.close()
