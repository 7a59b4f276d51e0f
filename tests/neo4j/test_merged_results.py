"""Every query that may be about several graphs says how its results become one."""

from __future__ import annotations

from typing import Any

from graphmem.neo4j.merged_results import RULES, SnapshotParts, scope_of_query
from graphmem.neo4j.queries import load_queries

JOINED_ELSEWHERE = {"context.load_snapshot", "placements.note_changes", "users.get_states"}
"""Queries with groups of several graphs whose results have a form of their own, or that run within a gate."""

OF_ONE_GRAPH = {"forget", "keys", "moves", "placements"}
"""Files of queries that are run in a graph by its name, or name the group in another way."""


def test_every_query_about_several_groups_or_a_tenant_has_a_rule() -> None:
    missing = []
    for name, query in load_queries().items():
        file = name.partition(".")[0]
        parameters: dict[str, Any] = dict.fromkeys(query.parameters)
        if "group_ids" in parameters or "revisions" in parameters:
            parameters |= {"group_ids": [], "revisions": []}
            is_known = name in RULES or name in JOINED_ELSEWHERE
        elif "tenant" in parameters or "tenant_prefix" in parameters:
            given = {"group_id": "t:mara", "owner_group": "t:mara", "owner_groups": ["t:mara"]}
            parameters |= {key: value for key, value in given.items() if key in parameters}
            is_known = scope_of_query(name, parameters) != scope_of_query("", {}) or file in OF_ONE_GRAPH
        else:
            is_known = True
        if not is_known:
            missing.append(name)
    assert missing == []
    assert RULES.keys() <= load_queries().keys()


def test_the_parts_of_a_context_are_those_of_one_graph() -> None:
    whole = {"group_ids": ["t:", "t:mara"], "group_id": "t:mara", "session_group_id": "t:mara"}
    own = {"profile": ["own"], "session": "s1", "statistics": "many", "messages": ["m"], "items": ["i"]}
    shared = {"profile": ["shared"], "session": None, "statistics": "none", "messages": [], "items": []}
    for turn in (1, -1):
        parts = SnapshotParts()
        for group, version, content in [("t:", "a:1;", shared), ("t:mara", "b:2;", own)][::turn]:
            parts.add([version, content], {**whole, "group_ids": [group]})
        assert parts.join("b:2;a:1;") == [["a:1;b:2;", {**own, "profile": ["own", "shared"]}]]
        assert parts.join("a:1;b:2;") == []
