"""The checks of `graphmem doctor --deep`: that what is stored is sound."""

from __future__ import annotations

from collections.abc import AsyncIterator

from graphmem.app.components import open_graph
from graphmem.cli.doctor_checks import Check, CheckStatus, broken_check
from graphmem.neo4j.invariants import MAX_VIOLATIONS, InvariantCheck, check_invariants
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.settings import Settings


async def check_data(settings: Settings, tenant: str | None = None) -> AsyncIterator[Check]:
    """Check the indexes and every invariant of the stored data; start the embedded Neo4j if it does not run.

    With `tenant`, violations in the data of other tenants are left out.
    """
    try:
        async with open_graph(settings) as graph:
            unusable = await graph.fetch("schema.list_unusable_indexes")
            yield _describe_indexes({row["name"]: row["state"] for row in unusable})
            async for result in check_invariants(graph, tenant):
                yield _describe_result(result)
    except GraphmemError as error:
        yield broken_check("stored data", error)


def _describe_indexes(unusable: dict[str, str]) -> Check:
    if not unusable:
        return Check("indexes", CheckStatus.OK, "all work")
    detail = ", ".join(f"{name} is {state.lower()}" for name, state in unusable.items())
    fix = "Wait until they are populated; drop one that failed and run its migration's statement again."
    return Check("indexes", CheckStatus.BROKEN, detail, fix)


def _describe_result(result: InvariantCheck) -> Check:
    part = f"data: {result.name.partition('.')[2].replace('_', ' ')}"
    if not result.count:
        return Check(part, CheckStatus.OK, "none")
    number = f"{result.count} or more" if result.count >= MAX_VIOLATIONS else str(result.count)
    named = ", ".join(f"{key} of {group_id}" for group_id, key in result.ids)
    more = ", …" if result.count > len(result.ids) else ""
    return Check(part, CheckStatus.BROKEN, f"{result.violation} {number}: {named}{more}", result.fix)
