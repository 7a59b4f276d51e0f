"""In which graphs a query of a divided tenant runs, and how its results there become one. Pure.

A tenant is divided when some of its users live in other graphs than it does. A query goes by the groups that its
parameters name; one that names groups of several graphs runs in each of them with its own, one about all users of the
tenant in all of its graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from graphmem.neo4j.driver_values import Row

EXTRA_ROWS = 20
"""Rows beyond a limit that each graph is asked for: those of a user who is just being moved are left out afterwards."""

_GROUP_LISTS = ("group_ids", "revisions")
"""Parameters that name groups by which a query is divided; an entry of `revisions` begins with one."""

_TENANT_FILES = frozenset({"declared_types", "instructions", "keys", "spaces", "trust", "webhooks"})
"""Files of queries about what belongs to the tenant and not to its users."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """By what rows are ordered: a function of a row, and whether the largest come first."""

    of: Callable[[Any], Any]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ResultRule:
    """How the results of a query in several graphs become one: joined, without repetitions, ordered and cut.

    `group_of` returns the group that a row of a tenant-wide query is about, by which rows of copies are left out;
    with it, or with `is_tenant_wide`, the query runs in all graphs of the tenant. One that is about a run by its id,
    `is_by_run`, runs in one graph within a transaction that has named the user of the run. `total` is the column that
    is added up. A query that returns one value has a list in it, or with `lists` that many lists.
    """

    order: tuple[SortKey, ...] = ()
    is_cut: bool = False
    identity: Callable[[Any], Any] | None = None
    group_of: Callable[[Row, Row], str] | None = None
    is_tenant_wide: bool = False
    is_by_run: bool = False
    total: str | None = None
    lists: int = 1

    def merge_rows(self, results: Iterable[Sequence[Any]], limit: int | None) -> list[Any]:
        """Return the rows of all graphs as one result."""
        rows = [row for result in results for row in result]
        if self.total is not None:
            return [{self.total: sum(row[self.total] for row in rows)}]
        if self.identity is not None:
            rows = [*{self.identity(row): row for row in reversed(rows)}.values()][::-1]
        for key in reversed(self.order):
            rows.sort(key=key.of, reverse=key.descending)
        return rows[:limit] if self.is_cut and limit is not None else rows

    def merge_values(self, values: Sequence[Any], limit: int | None) -> Any:
        """Return the values of all graphs as one."""
        if self.lists > 1:
            return [self.merge_rows([value[at] for value in values], limit) for at in range(self.lists)]
        return self.merge_rows(values, limit)


def _by(*names: str | int, descending: bool = False) -> SortKey:
    """Return the order by a value that is found step by step."""

    def find(row: Any) -> Any:
        for name in names:
            row = row[name]
        return row

    return SortKey(find, descending)


def _of_user_id(*names: str) -> Callable[[Row, Row], str]:
    """Return how a row names its group by a user id; the tenant is that of the row or of the query."""
    key = _by(*names).of
    return lambda row, parameters: f"{row.get('tenant') or parameters['tenant']}:{key(row)}"


def _of_group(*names: str) -> Callable[[Row, Row], str]:
    """Return how a row names its group; one without a group is the tenant's."""
    key = _by(*names[:-1]).of
    return lambda row, parameters: key(row).get(names[-1]) or f"{parameters['tenant']}:"


_JOINED = ResultRule()
_BY_SCORE = ResultRule(order=(_by(2, descending=True),), is_cut=True)
_MESSAGES_BY_SCORE = ResultRule(order=(_by(1, descending=True),), is_cut=True)
_BY_IMPORTANCE = ResultRule(
    order=(
        SortKey(lambda memory: memory[0]["importance"], descending=True),
        SortKey(lambda memory: memory[1][0] or 0, descending=True),
        SortKey(lambda memory: memory[0]["uuid"]),
    ),
    is_cut=True,
)

RULES: Mapping[str, ResultRule] = {
    # Several groups: the user's own, the tenant's and spaces
    "changes.fetch_previous_versions": _JOINED,
    "changes.fetch_versions": _JOINED,
    "changes.list_page": ResultRule(order=(_by("at"), _by("key")), is_cut=True),
    "context.fetch_source_times": _JOINED,
    "context.list_memories_as_of": _BY_IMPORTANCE,
    "context.load_surroundings": ResultRule(lists=3),
    "context_uses.find_existing": _JOINED,
    "context_uses.save": _JOINED,
    "entities.fetch_by_ids": _JOINED,
    "entities.find_by_keys": _JOINED,
    "entities.find_nameable": _JOINED,
    "entities.get_with_memory_count": _JOINED,
    "entities.list_facts": ResultRule(
        order=(_by("fact", "importance", descending=True), _by("times", 0, descending=True)), is_cut=True
    ),
    "entities.list_page": ResultRule(order=(_by("entity", "name_key"), _by("entity", "uuid")), is_cut=True),
    "extraction.find_entities_by_keys": _JOINED,
    "facts.erase_memory": _JOINED,
    "facts.fetch_latest": _JOINED,
    "facts.find_memory_ids": _JOINED,
    "facts.list_page": ResultRule(order=(_by("key"), _by("fact", "memory_id")), is_cut=True),
    "facts.list_versions": _JOINED,
    "profiles.load": _JOINED,
    "resident.load_changes": _JOINED,
    "search.find_domain_facts_by_vector": _BY_SCORE,
    "search.find_entity_names": _JOINED,
    "search.find_facts_around_entities": _BY_SCORE,
    "search.find_facts_by_text": _BY_SCORE,
    "search.find_facts_by_vector": _BY_SCORE,
    "search.find_messages_by_vector": _MESSAGES_BY_SCORE,
    "search.find_messages_by_words": _MESSAGES_BY_SCORE,
    "search.list_entity_edges": _BY_IMPORTANCE,
    "search.list_entity_names": _JOINED,
    "search.list_profile_facts": _BY_IMPORTANCE,
    "search.load_entities": _JOINED,
    "search.load_entities_with_facts": _JOINED,
    "search.load_memories": _JOINED,
    "search.load_message_contents": _JOINED,
    "search.load_messages": _JOINED,
    "search.load_shown": ResultRule(lists=2),
    "search.scan_facts_by_vector": _BY_SCORE,
    "search.scan_messages_by_vector": _MESSAGES_BY_SCORE,
    "spaces.list_spaces": _JOINED,
    "vectors.load_facts": _JOINED,
    "vectors.load_messages": _JOINED,
    # All users of a tenant
    "consolidation.list_users_due": ResultRule(order=(_by("user_id"),), group_of=_of_user_id("user_id")),
    "consolidation.list_users_with_due_profiles": ResultRule(order=(_by("user_id"),), group_of=_of_user_id("user_id")),
    "episodes.find_session_owners": ResultRule(order=(_by("group_id"),), group_of=lambda row, _: str(row["group_id"])),
    "idempotency.clear_responses": ResultRule(total="cleared"),
    "idempotency.clear_responses_of_tenant": ResultRule(is_tenant_wide=True, total="cleared"),
    "idempotency.delete_expired": ResultRule(is_tenant_wide=True, total="erased"),
    "import.find_taken_ids": ResultRule(is_tenant_wide=True, identity=itemgetter("id")),
    "quarantine.find": ResultRule(group_of=_of_group("statement", "group_id")),
    "quarantine.list_page": ResultRule(
        order=(_by("statement", "last_seen_at", descending=True), _by("statement", "id")),
        is_cut=True,
        group_of=_of_group("statement", "group_id"),
    ),
    "quarantine.remove": ResultRule(is_tenant_wide=True, identity=itemgetter("id")),
    "runs.find_ids": ResultRule(is_tenant_wide=True, identity=itemgetter("id")),
    "runs.get": ResultRule(group_of=_of_group("run", "group_id"), is_by_run=True),
    "runs.get_undone_run_id": ResultRule(is_tenant_wide=True, is_by_run=True),
    "runs.list_page": ResultRule(
        order=(_by("run", "created_at", descending=True), _by("run", "id")),
        is_cut=True,
        group_of=_of_group("run", "group_id"),
    ),
    "runs.list_parts": ResultRule(group_of=_of_group("run", "group_id")),
    "runs.list_unfinished_nightly": ResultRule(group_of=lambda row, _: str(row["group_id"])),
    "runs.update": ResultRule(is_tenant_wide=True, is_by_run=True),
    "snapshots.list_changes": ResultRule(
        is_tenant_wide=True, is_by_run=True, identity=lambda row: (row["kind"], row["id"])
    ),
    "users.list_owners": ResultRule(
        order=(_by("group_id"),), is_cut=True, group_of=lambda row, _: str(row["group_id"])
    ),
    "users.list_page": ResultRule(
        order=(_by("user", "user_id"),), is_cut=True, group_of=_of_user_id("user", "user_id")
    ),
    "webhooks.list_behind": ResultRule(
        order=(_by("last_write_at"), _by("group_id")), is_cut=True, group_of=lambda row, _: str(row["group_id"])
    ),
    "webhooks.remove_positions": ResultRule(is_tenant_wide=True),
}
"""The rules of the queries that may run in several graphs; the others run in one."""


@dataclass(frozen=True, slots=True)
class QueryScope:
    """Which groups a query is about: those of `group_ids`, the tenant as a whole, or all users of it.

    Without any, and with `is_by_run` if there is one, it is about the group that its transaction named before.
    """

    group_ids: tuple[str, ...] = ()
    is_of_tenant: bool = False
    is_tenant_wide: bool = False
    is_by_run: bool = False


def scope_of_query(name: str, parameters: Mapping[str, Any]) -> QueryScope:
    """Return which groups a query is about."""
    rule = RULES.get(name)
    if rule is not None and (rule.is_tenant_wide or rule.group_of is not None):
        return QueryScope(is_tenant_wide=True, is_by_run=rule.is_by_run)
    listed = list_groups(parameters)
    if listed:
        return QueryScope(tuple(listed))
    if name == "runs.create":
        parameters = parameters["properties"]
    if group_id := parameters.get("group_id") or parameters.get("owner_group"):
        return QueryScope((str(group_id),))
    if name.partition(".")[0] in _TENANT_FILES or name == "runs.create":
        return QueryScope(is_of_tenant=True)
    return QueryScope()


def list_groups(parameters: Mapping[str, Any]) -> list[str]:
    """Return the groups that a query can be divided by."""
    if "revisions" in parameters:
        return [group_id for group_id, _ in parameters["revisions"]]
    return list(parameters.get("group_ids") or parameters.get("owner_groups") or ())


def select_groups(parameters: Mapping[str, Any], group_ids: frozenset[str]) -> Row:
    """Return the parameters of a query for some of the groups that they name."""
    selected: Row = {}
    for name in _GROUP_LISTS:
        if name in parameters:
            selected[name] = [
                named for named in parameters[name] if (named if isinstance(named, str) else named[0]) in group_ids
            ]
    return {**parameters, **selected}


def with_extra_rows(parameters: Mapping[str, Any]) -> Row:
    """Return the parameters of a tenant-wide query that asks for more rows than its limit."""
    limit = parameters.get("limit")
    return {**parameters, **({"limit": limit + EXTRA_ROWS} if isinstance(limit, int) else {})}


def merge_states(own: Sequence[Sequence[Any]], shared: Sequence[Sequence[Any]], order: str | None) -> list[list[Any]]:
    """Return the states of groups (`users.get_states`) of two graphs, by group id, with the tenant's order of trust."""
    states = sorted([*own, *shared], key=itemgetter(0))
    return [[*state[:-1], order] for state in states]


@dataclass(slots=True)
class SnapshotParts:
    """The parts of a context (`context.load_snapshot`) that several graphs have returned."""

    versions: dict[str, str] = field(default_factory=dict)
    own: Row = field(default_factory=dict)
    session: Row = field(default_factory=dict)
    profile: list[Any] = field(default_factory=list)

    def add(self, found: Sequence[Any], parameters: Mapping[str, Any]) -> None:
        """Add what the graph of some groups has returned."""
        version, content = found
        groups = parameters["group_ids"]
        self.versions[min(groups)] = version
        if parameters["group_id"] in groups:
            self.own = content
            self.profile = content["profile"] + self.profile
        else:
            self.profile += content["profile"]
        if parameters["session_group_id"] in groups:
            self.session = content

    def join(self, cached_version: str) -> list[Any]:
        """Return the context as one graph would: nothing where it is that of the cached version."""
        version = "".join(self.versions[first] for first in sorted(self.versions))
        if version == cached_version:
            return []
        of_session = {name: self.session[name] for name in ("session", "statistics", "messages") if self.session}
        return [[version, {**self.own, **of_session, "profile": self.profile}]]
