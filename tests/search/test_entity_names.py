"""Entities are found by name and alias, whatever happened to them."""

from __future__ import annotations

from datetime import UTC, datetime

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user


async def save_about(memory: Services, owner: Owner, *names: str) -> list[str]:
    """Save a memory about each name and return the ids of the entities."""
    saved = await memory.memories.save(
        owner, [MemoryIn(content=f"{name} likes tea", subject={"name": name, "type": "Person"}) for name in names]
    )
    return [result.memory.subject.id for result in saved if result.memory]


async def add_aliases(memory: Services, owner: Owner, entity: str, *names: str) -> list[str]:
    """Add aliases to an entity and return those added."""
    entities = memory.components.entities

    async def work(transaction: Transaction) -> list[Row]:
        return await entities.add_aliases(transaction, owner, entity, list(names), datetime.now(UTC))

    rows: list[Row] = await memory.components.graph.write(work)
    return [name for row in rows for name in row["aliases"]]


async def count_aliases(memory: Services, owner: Owner) -> int:
    """Return the number of alias nodes of a user."""
    text = "MATCH (a:EntityAlias {group_id: $group_id}) RETURN count(a) AS found"
    rows = await memory.components.graph.read(
        lambda transaction: transaction.run_text(text, {"group_id": owner.group_id})
    )
    return int(rows[0]["found"])


async def test_an_entity_is_found_by_its_aliases(memory: Services, owner: Owner) -> None:
    robert, _ = await save_about(memory, owner, "Robert", "Anna")
    assert await add_aliases(memory, owner, robert, "Bob", "Bobby") == ["Bob", "Bobby"]
    find = memory.components.entities.resolve_entity_ids
    assert await find(owner, "bob") == await find(owner, "BOBBY") == await find(owner, "Robert") == [robert]
    assert await find(Owner(owner.tenant, "other"), "bob") == []
    again = await save_about(memory, owner, "Bobby")
    assert again == [robert]


async def test_a_name_that_an_entity_has_does_not_become_the_alias_of_another(memory: Services, owner: Owner) -> None:
    robert, anna = await save_about(memory, owner, "Robert", "Anna")
    assert await add_aliases(memory, owner, robert, "Bob") == ["Bob"]
    assert await add_aliases(memory, owner, anna, "Bob", "Robert", "Anna", "Annie") == ["Annie"]
    assert await add_aliases(memory, owner, "anna", "Annie") == []
    assert (await memory.components.entities.get(owner, anna)).aliases == ["Annie"]


async def test_aliases_survive_an_export_and_end_with_the_user(memory: Services, owner: Owner) -> None:
    await fill_user(memory, owner)
    document = await memory.exports.export(owner)
    twin = Owner(owner.tenant, "twin")
    await memory.imports.import_(twin, document)
    [bob] = await memory.components.entities.resolve_entity_ids(twin, "Uncle Bob")
    assert (await memory.components.entities.get(twin, bob)).aliases == ["Bobby", "Uncle Bob"]
    assert (await memory.forgetting.forget(twin)).residue == 0
    assert await count_aliases(memory, twin) == 0
    assert await count_aliases(memory, owner) == 2
