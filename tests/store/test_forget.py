"""Forgetting a user leaves nothing behind and touches nobody else."""

from __future__ import annotations

from graphmem.bootstrap import Services
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn
from tests.store.complete_user import fill_user


async def test_forgetting_one_user_keeps_the_others(memory: Services, owner: Owner) -> None:
    other = Owner(owner.tenant, "other")
    await fill_user(memory, owner)
    await fill_user(memory, other)
    before = await memory.exports.export(other)
    forgotten = await memory.forgetting.forget(owner)
    assert forgotten.erased["Fact"] >= 5
    assert forgotten.residue == 0
    assert await memory.exports.export(other) == before


async def test_forgetting_a_user_empties_caches_and_buffers(memory: Services, owner: Owner) -> None:
    [saved] = await memory.memories.save(owner, [MemoryIn(content="Bob likes tea", subject={"name": "Bob"})])
    assert saved.memory
    assert (await memory.retrieval.lookup(owner, "What does Bob like?")).entities
    await memory.forgetting.forget(owner)
    # The write version of a new life starts at the same number, with which cached answers are found.
    await memory.memories.save(owner, [MemoryIn(content="Bob likes coffee", subject={"name": "Bob"})])
    [found] = (await memory.retrieval.lookup(owner, "What does Bob like?")).entities
    assert [item.content for item in found.memories] == ["Bob likes coffee"]


async def test_retrievals_counted_before_a_forget_do_not_recreate_the_user(memory: Services, owner: Owner) -> None:
    await memory.memories.save(owner, [MemoryIn(content="Bob likes tea", subject={"name": "Bob"})])
    await memory.retrieval.lookup(owner, "What does Bob like?")
    assert (await memory.forgetting.forget(owner)).residue == 0
    await memory.retrieval.flush()
    assert await memory.components.graph.fetch("export.get_user", group_id=owner.group_id) == []
