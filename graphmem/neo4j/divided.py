"""A tenant whose users live in several graphs: each query runs in the graphs of the groups that it names.

A transaction opens one in each graph that its queries need, and passes the gates of whom it writes for. At most one
of these may have locked a user: it is committed last, and the others hold only what may happen twice, so that what
was cut short between two commits is repaired by a repetition.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from neo4j.exceptions import DriverError, Neo4jError

from graphmem.neo4j.assignments import AssignmentTable, name_of_group
from graphmem.neo4j.driver import (
    RETRY_TIMEOUT,
    Graph,
    OpenTransaction,
    Transaction,
    translate_driver_errors,
)
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.merged_results import (
    RULES,
    SnapshotParts,
    merge_states,
    scope_of_query,
    select_groups,
    with_extra_rows,
)
from graphmem.neo4j.queries import load_queries
from graphmem.runtime.errors import Conflict, DatabaseUnavailable

RETRY_PAUSE, MAX_RETRY_PAUSE = 0.1, 2.0
"""Seconds between two tries of a transaction that met a transient error, at first and at most."""

OTHER_GRAPH_KEY = " elsewhere"
"""End of the key under which a result is stored in another graph than that of its request; no key has a space."""

T = TypeVar("T")

OpenGraph = Callable[[str], AbstractAsyncContextManager[Graph]]
"""Opens a graph by its name; errors of the block say which it is."""


class GateClosed(Exception):
    """Rolls back a write of somebody who is being switched or has left."""


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A query in one graph, and the groups that it is about there; none: the tenant as a whole."""

    graph: str
    parameters: Row
    group_ids: tuple[str, ...] = ()
    is_tenant_wide: bool = False


class DividedTenant:
    """The graphs of a tenant, some of whose users live apart."""

    def __init__(self, tenant: str, assignments: AssignmentTable, open_graph: OpenGraph) -> None:
        self.tenant = tenant
        self.assignments = assignments
        self.open_graph = open_graph

    # Queries by themselves

    async def fetch(self, name: str, parameters: Row) -> list[Row]:
        """Run one read query and return its rows."""

        async def run(part: QueryPart) -> list[Row]:
            async with self.open_graph(part.graph) as graph:
                return await graph.fetch(name, **part.parameters)

        parts = await self.plan(name, parameters)
        return await self.join_rows(name, parameters, parts, await asyncio.gather(*map(run, parts)))

    async def fetch_value(self, name: str, parameters: Row, *, from_any_member: bool = False) -> Any:
        """Run one read query with one row and one column and return the value."""

        async def run(part: QueryPart) -> Any:
            async with self.open_graph(part.graph) as graph:
                fetch = graph.fetch_value_from_any_member if from_any_member else graph.fetch_value
                return await fetch(name, **part.parameters)

        parts = await self.plan(name, parameters)
        return await self.join_values(name, parameters, parts, await asyncio.gather(*map(run, parts)))

    async def find_graph_of(self, group_id: str) -> str:
        """Return the graph in which a group lives."""
        return (await self.assignments.find_place(group_id)).graph

    # Where a query runs, and what comes of it

    async def plan(self, name: str, parameters: Row, latest_group: str | None = None) -> list[QueryPart]:
        """Return in which graphs a query runs; one that names nobody is about the latest group of its transaction."""
        scope = scope_of_query(name, parameters)
        if scope.is_tenant_wide and not (scope.is_by_run and latest_group):
            graphs = await self.assignments.list_graphs(self.tenant)
            return [QueryPart(graph, with_extra_rows(parameters), is_tenant_wide=True) for graph in graphs]
        group_ids = scope.group_ids or ((latest_group,) if latest_group and not scope.is_of_tenant else ())
        own_graph = await self.assignments.find_graph(self.tenant)
        if not group_ids:
            return [QueryPart(own_graph, parameters)]
        by_graph: dict[str, list[str]] = {}
        for group_id in group_ids:
            by_graph.setdefault(await self.find_graph_of(group_id), []).append(group_id)
        if len(by_graph) == 1:
            return [QueryPart(graph, parameters, tuple(groups)) for graph, groups in by_graph.items()]
        return [
            QueryPart(graph, _for_graph(name, parameters, groups, is_own=graph == own_graph), tuple(groups))
            for graph, groups in by_graph.items()
        ]

    async def join_rows(
        self, name: str, parameters: Row, parts: Sequence[QueryPart], results: Sequence[list[Row]]
    ) -> list[Row]:
        """Return the rows of a query in several graphs as one result, without those of copies under way."""
        if len(parts) == 1 and not parts[0].is_tenant_wide:
            return results[0]
        rule = RULES[name]
        if rule.group_of is not None:
            results = [
                [row for row in rows if await self.find_graph_of(rule.group_of(row, parameters)) == part.graph]
                for part, rows in zip(parts, results, strict=True)
            ]
        return rule.merge_rows(results, parameters.get("limit"))

    async def join_values(self, name: str, parameters: Row, parts: Sequence[QueryPart], values: Sequence[Any]) -> Any:
        """Return the values of a query in several graphs as one."""
        if len(parts) == 1:
            return values[0]
        if name == "users.get_states":
            return await self._join_states(parts, values)
        if name == "context.load_snapshot":
            snapshot = SnapshotParts()
            for part, [found] in zip(parts, values, strict=True):
                snapshot.add(found, part.parameters)
            return snapshot.join(parameters["cached_version"])
        return RULES[name].merge_values(values, parameters.get("limit"))

    async def _join_states(self, parts: Sequence[QueryPart], values: Sequence[Any]) -> list[list[Any]]:
        own_graph = await self.assignments.find_graph(self.tenant)
        shared = [
            state for part, found in zip(parts, values, strict=True) if part.graph == own_graph for state in found
        ]
        own = [state for part, found in zip(parts, values, strict=True) if part.graph != own_graph for state in found]
        if shared:
            return merge_states(own, shared, shared[0][-1])
        # No group of the tenant's own graph has a node that would tell the order of trust.
        rows = await self.fetch("trust.find", {"tenant": self.tenant}) if own else []
        return merge_states(own, shared, rows[0]["trust"]["order"] if rows else None)

    # Transactions

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in read transactions; after a transient error it runs again."""
        result, _ = await self._run(work, None)
        return result

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], metadata: Mapping[str, Any]
    ) -> tuple[T, Mapping[str, tuple[str, int]]]:
        """Run `work` in write transactions; return its result and the revisions of the users whom it locked.

        After a transient error all of them are rolled back and it runs again. Raises GateClosed, and Conflict for work
        that has locked users of two graphs.
        """
        return await self._run(work, metadata)

    async def _run(
        self, work: Callable[[Transaction], Awaitable[T]], metadata: Mapping[str, Any] | None
    ) -> tuple[T, Mapping[str, tuple[str, int]]]:
        deadline, pause = time.monotonic() + RETRY_TIMEOUT, RETRY_PAUSE
        while True:
            stack = AsyncExitStack()
            transaction = DividedTransaction(self, stack, metadata)
            try:
                async with stack:
                    result = await work(transaction)
                    await transaction.commit()
                    return result, transaction.revisions
            except (Neo4jError, DriverError) as error:
                if not error.is_retryable() or time.monotonic() > deadline:
                    async with self.open_graph(transaction.latest_graph), translate_driver_errors():
                        raise
            except DatabaseUnavailable:
                async with self.open_graph(transaction.latest_graph):
                    raise
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, MAX_RETRY_PAUSE)


class DividedTransaction(Transaction):
    """A transaction over the graphs of a divided tenant, as one; without `metadata` it only reads."""

    def __init__(self, tenant: DividedTenant, stack: AsyncExitStack, metadata: Mapping[str, Any] | None) -> None:
        self._tenant = tenant
        self._stack = stack
        self._metadata = metadata
        self._opened: dict[str, OpenTransaction] = {}
        self._gates: dict[tuple[str, str], str | None] = {}
        self._written: dict[tuple[str, str], set[str]] = {}
        self._latest_group: str | None = None
        self.latest_graph = ""
        self.revisions = {}

    async def run(self, name: str, **parameters: Any) -> list[Row]:
        """Run the query `name` in the graphs of the groups that it names, and return its rows."""
        if special := _SPECIAL_QUERIES.get(name):
            return await special(self, parameters)
        return await self.run_in_parts(name, parameters)

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run a query with one row and one column and return the value as the driver decodes it."""
        parts = await self._plan(name, parameters)
        values = [await (await self._prepare(name, part)).fetch_value(name, **part.parameters) for part in parts]
        return await self._tenant.join_values(name, parameters, parts, values)

    async def run_text(self, text: str, parameters: Row | None = None) -> list[Row]:
        """Raise TypeError: Cypher that is not in the catalogue names nobody whose graph it could run in."""
        raise TypeError("Run Cypher that is not in the catalogue in one of the graphs.")

    async def run_in_parts(self, name: str, parameters: Row) -> list[Row]:
        """Run a query as its parameters say."""
        parts = await self._plan(name, parameters)
        results = [await (await self._prepare(name, part)).run(name, **part.parameters) for part in parts]
        return await self._tenant.join_rows(name, parameters, parts, results)

    async def run_with_tenant(self, name: str, parameters: Row) -> list[Row]:
        """Run a query in the graph of the tenant itself."""
        return await self.run_in_graph(await self._tenant.assignments.find_graph(self._tenant.tenant), name, parameters)

    async def run_in_graph(self, graph: str, name: str, parameters: Row) -> list[Row]:
        """Run a query in one graph, about nobody in particular."""
        return await (await self._prepare(name, QueryPart(graph, parameters))).run(name, **parameters)

    async def lives_with_tenant(self, group_id: str) -> bool:
        """Return whether a group lives in the graph of the tenant itself."""
        own_graph = await self._tenant.assignments.find_graph(self._tenant.tenant)
        return await self._tenant.find_graph_of(group_id) == own_graph

    async def find_graph_of(self, group_id: str) -> str:
        """Return the graph in which a group lives."""
        return await self._tenant.find_graph_of(group_id)

    async def list_graphs(self) -> list[str]:
        """Return the graphs of the tenant, its own first."""
        return await self._tenant.assignments.list_graphs(self._tenant.tenant)

    async def find_locked_graph(self) -> str | None:
        """Return the graph of the users that were locked; raise Conflict where these are several."""
        graphs = {await self._tenant.find_graph_of(group_id) for group_id in self.revisions}
        if len(graphs) > 1:
            raise Conflict(
                "The request changes a user's own memories and shared ones, which live in two graphs, in one step: "
                "send those of the user and the shared ones in two requests, without `infer`."
            )
        return graphs.pop() if graphs else None

    async def commit(self) -> None:
        """Commit the transactions: last that of the users who were locked, or else of the group that was named last."""
        main = await self.find_locked_graph()
        if main is None and self._latest_group is not None:
            main = await self._tenant.find_graph_of(self._latest_group)
        for (graph, gate), group_ids in self._written.items():
            await self._opened[graph].run("placements.note_changes", tenant=gate, group_ids=sorted(group_ids))
        for graph in sorted(self._opened, key=lambda graph: graph == main):
            self.latest_graph = graph
            await self._opened[graph].commit()

    async def _plan(self, name: str, parameters: Row) -> list[QueryPart]:
        parts = await self._tenant.plan(name, parameters, self._latest_group)
        named = [group_id for part in parts for group_id in part.group_ids]
        if len(named) == 1:
            self._latest_group = named[0]
        return parts

    async def _prepare(self, name: str, part: QueryPart) -> OpenTransaction:
        """Return the transaction in the graph of a part, whose gates are passed."""
        self.latest_graph = part.graph
        transaction = self._opened.get(part.graph)
        if transaction is None:
            async with self._tenant.open_graph(part.graph) as graph:
                pass
            transaction = await self._stack.enter_async_context(graph.open_transaction(self._metadata))
            self._opened[part.graph] = transaction
        if self._metadata is not None:
            await self._pass_gates(transaction, part)
            if part.is_tenant_wide and load_queries()[name].writes:
                await self._check_switches(transaction)
        return transaction

    async def _pass_gates(self, transaction: OpenTransaction, part: QueryPart) -> None:
        """Pass the gates of the groups of a part; note these where a gate says so."""
        gates: dict[str, set[str]] = {}
        for group_id in part.group_ids:
            for gate in (await self._tenant.assignments.find_place(group_id)).gates:
                gates.setdefault(gate, set()).add(group_id)
        if not gates and part.graph == await self._tenant.assignments.find_graph(self._tenant.tenant):
            gates[self._tenant.tenant] = {""}
        unknown = [gate for gate in gates if (part.graph, gate) not in self._gates]
        if unknown:
            rows = await transaction.run("placements.check_gates", names=unknown)
            states = {row["name"]: row["state"] for row in rows}
            self._gates |= {(part.graph, gate): states.get(gate) for gate in unknown}
        for gate, group_ids in gates.items():
            state = self._gates[part.graph, gate]
            if state not in (None, "noting"):
                raise GateClosed
            if state == "noting":
                self._written.setdefault((part.graph, gate), set()).update(group_ids)

    async def _check_switches(self, transaction: OpenTransaction) -> None:
        """Raise GateClosed while a user is switched: a query about all users may change what is compared."""
        [row] = await transaction.run("placements.is_any_user_switched", prefix=f"{self._tenant.tenant}:")
        if row["is_any"]:
            raise GateClosed


def _for_graph(name: str, parameters: Row, group_ids: Sequence[str], *, is_own: bool) -> Row:
    """Return the parameters of a query for some of its groups; `is_own` says that the tenant lives in their graph."""
    selected = select_groups(parameters, frozenset(group_ids))
    if name == "users.get_states" and not is_own:
        selected["members"] = []  # spaces live with the tenant
    if name == "context.load_snapshot":
        selected["cached_version"] = ""  # that of both graphs together is compared afterwards
    return selected


# Queries about a user and the tenant at once


async def _save_uses(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    groups = parameters["group_ids"]
    is_own = await transaction.lives_with_tenant(parameters["group_id"])
    apart = [group for group in groups if await transaction.lives_with_tenant(group) != is_own]
    ids = sorted({memory_id for row in parameters["rows"] for memory_id in row["memory_ids"]})
    known = (
        await transaction.run_in_parts("context_uses.find_existing", {"group_ids": apart, "ids": ids}) if apart else []
    )
    together = [group for group in groups if group not in apart]
    saved = {**parameters, "group_ids": together, "known": [row["id"] for row in known]}
    return await transaction.run_in_parts("context_uses.save", saved)


async def _add_child(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    return await transaction.run_with_tenant("runs.note_part", parameters)


_FIND_RESULT = "idempotency.find_result"


async def _find_result(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    rows = await transaction.run_in_parts(_FIND_RESULT, parameters)
    elsewhere = {**parameters, "key": parameters["key"] + OTHER_GRAPH_KEY}
    graphs = await transaction.list_graphs()
    if name_of_group(parameters["owner_group"]) != parameters["tenant"]:
        graphs = graphs[:1]  # what a user writes is the user's or shared
    found = [row for graph in graphs for row in await transaction.run_in_graph(graph, _FIND_RESULT, elsewhere)]
    return [row for row in (*rows, *found) if row["result"] is not None] or rows


async def _store_result(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    """Store a result in the graph in which users were locked, so that it is there if the write is, and only then."""
    locked = await transaction.find_locked_graph()
    if locked is None or locked == await transaction.find_graph_of(parameters["owner_group"]):
        return await transaction.run_in_parts("idempotency.store_result", parameters)
    elsewhere = {**parameters, "key": parameters["key"] + OTHER_GRAPH_KEY}
    return await transaction.run_in_graph(locked, "idempotency.store_result_elsewhere", elsewhere)


async def _erase_elements(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    rows = await transaction.run_in_parts("forget.erase_elements", parameters)
    if await transaction.lives_with_tenant(parameters["group_id"]):
        return rows
    found = await transaction.run_with_tenant("forget.erase_shared_elements", parameters)
    counts: dict[str, int] = {}
    for row in (*rows, *found):
        counts[row["kind"]] = counts.get(row["kind"], 0) + row["erased"]
    return [{"kind": kind, "erased": erased} for kind, erased in counts.items()]


async def _count_residue(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    rows = await transaction.run_in_parts("forget.count_residue", parameters)
    if not await transaction.lives_with_tenant(parameters["group_id"]):
        rows += await transaction.run_with_tenant("forget.count_shared_residue", parameters)
    return [{"residue": sum(row["residue"] for row in rows)}]


async def _advance_webhook(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    delivery = {name: parameters[name] for name in ("webhook_id", "delivered_at", "status")}
    if not await transaction.run_with_tenant("webhooks.record_delivery", delivery):
        return []
    position = {name: parameters[name] for name in ("webhook_id", "group_id", "at", "key", "complete_until")}
    return await transaction.run_in_parts("webhooks.store_position", position)


async def _remove_webhook(transaction: DividedTransaction, parameters: Row) -> list[Row]:
    # In the order in which deliveries lock them.
    removed = await transaction.run_with_tenant("webhooks.remove", parameters)
    await transaction.run_in_parts("webhooks.remove_positions", {"webhook_id": parameters["webhook_id"]})
    return removed


_SPECIAL_QUERIES: Mapping[str, Callable[[DividedTransaction, Row], Awaitable[list[Row]]]] = {
    "context_uses.save": _save_uses,
    "forget.count_residue": _count_residue,
    "forget.erase_elements": _erase_elements,
    _FIND_RESULT: _find_result,
    "idempotency.store_result": _store_result,
    "runs.add_child": _add_child,
    "webhooks.advance": _advance_webhook,
    "webhooks.remove": _remove_webhook,
}
