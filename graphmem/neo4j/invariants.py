"""What always holds in the graph, checked by the queries in `cypher/checks/`.

Writers may be at work meanwhile, and a query reads a little before and a little after each of their transactions.
Therefore only what two runs of a check find violates an invariant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.queries import Query, load_checks

MAX_VIOLATIONS = 10_000
"""Violations of one invariant that are counted."""

SHOWN_IDS = 10
"""Violations of one invariant that are named."""

_FIX = " Fix: "
"""What separates the two parts of the comment of a check: what is wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class InvariantCheck:
    """The result of checking one invariant.

    `ids` names some of what violates it, each with its user, as `tenant:user id`; `count` is at most `MAX_VIOLATIONS`.
    """

    name: str
    violation: str
    fix: str
    count: int
    ids: tuple[tuple[str, str], ...]


async def check_invariants(graph: Graph, tenant: str | None = None) -> AsyncIterator[InvariantCheck]:
    """Check every invariant, reading the whole graph; with `tenant`, report the violations in that tenant only."""
    for check in load_checks().values():
        found = await _find_violations(graph, check, tenant)
        if found:
            hidden = await _list_forgotten(graph)
            found &= await _find_violations(graph, check, tenant)
            hidden |= await _list_forgotten(graph)
            found = {(group_id, key) for group_id, key in found if group_id not in hidden}
        violation, _, fix = check.description.partition(_FIX)
        yield InvariantCheck(check.name, violation, fix, len(found), tuple(sorted(found)[:SHOWN_IDS]))


async def _find_violations(graph: Graph, check: Query, tenant: str | None) -> set[tuple[str, str]]:
    rows = await graph.read(
        lambda transaction: transaction.run_text(check.text, {"tenant": tenant, "limit": MAX_VIOLATIONS})
    )
    return {(row["group_id"] or "", str(row["id"])) for row in rows}


async def _list_forgotten(graph: Graph) -> set[str]:
    """Return the users whose erasure is under way: parts of what they had are gone."""
    return {row["group_id"] for row in await graph.fetch("forget.list_begun")}
