"""One model of filters: every surface has its fields, and the store applies each of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from graphmem.cli import memories as cli_memories
from graphmem.client.inputs import ListMemoriesOptions, SearchOptions
from graphmem.mcp.arguments import SearchFilters
from graphmem.memories.filters import FactFilters, MemoryFilters, SharedFilters
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import MemoryType, Scope
from graphmem.neo4j.queries import load_queries
from graphmem.runtime.times import (
    AS_OF_NOW,
    MAX_TIME,
    MICROSECOND,
    MIN_TIME,
    to_epoch_pair,
)
from graphmem.search.models import SearchQuery

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def without(names: Iterable[str], *left_out: str) -> set[str]:
    return set(names) - set(left_out)


def test_the_tool_filters_of_mcp_have_exactly_the_fields_of_the_model() -> None:
    assert SearchFilters.model_fields.keys() == MemoryFilters.model_fields.keys()


def test_search_options_have_the_fields_of_a_search_query() -> None:
    assert SearchOptions.__annotations__.keys() == without(SearchQuery.model_fields, "query")


def test_list_options_have_the_fields_of_list_filters() -> None:
    assert ListMemoriesOptions.__annotations__.keys() == ListFilters.model_fields.keys()


def test_query_strings_differ_from_the_model_only_in_types_tags_and_metadata() -> None:
    assert SharedFilters.model_fields.keys() == without(MemoryFilters.model_fields, "types", "tags", "metadata")
    assert ListFilters.model_fields.keys() - SharedFilters.model_fields.keys() == {
        "type", "tag", "not_tag", "metadata", "keyword", "session_id", "sort", "limit", "cursor",
    }  # fmt: skip


def test_options_of_the_search_command_are_fields_of_a_search_query() -> None:
    of_every_command = ("context", "output", "json", "debug", "no_server", "text", "user", "tenant")
    options = without(inspect.signature(cli_memories.search).parameters, *of_every_command)
    renamed = {"type": "types", "tag": "tags", "messages": "include_messages"}
    assert {renamed.get(option, option) for option in options} <= SearchQuery.model_fields.keys()


def test_a_list_and_a_search_with_the_same_filters_are_resolved_alike() -> None:
    shared = {"domain": "Cooking", "scope": "domain", "min_confidence": 0.6, "created_after": "2026-01-01T00:00:00Z"}
    listed = ListFilters.model_validate({**shared, "type": ["plan"], "tag": ["a"], "not_tag": ["b"]})
    searched = SearchQuery.model_validate(
        {**shared, "query": "x", "types": ["plan"], "tags": {"all": ["a"], "none": ["b"]}}
    )
    expected = FactFilters(
        valid_at=NOW,
        known_at=AS_OF_NOW,
        types=(MemoryType.PLAN.value,),
        tags_all=("a",),
        tags_none=("b",),
        domain="cooking",
        scope=Scope.DOMAIN.value,
        entity_ids=("e",),
        min_confidence=0.6,
        created_after=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert listed.to_memory_filters().resolve(["e"], NOW) == expected
    assert searched.resolve(["e"], NOW) == expected


def test_queries_take_the_parameters_that_the_filters_make() -> None:
    filters = FactFilters(valid_at=NOW)
    as_of, attributes = filters.as_of_params.keys(), filters.attribute_params.keys()
    queries = load_queries()
    for name in (
        "facts.list_page",
        "search.scan_facts_by_vector",
        "search.find_facts_by_text",
        "search.find_facts_around_entities",
    ):
        assert as_of | attributes <= queries[name].parameters, name
    for name in ("entities.list_facts", "search.list_entity_edges", "search.find_facts_by_vector"):
        assert as_of <= queries[name].parameters, name
        assert "types" not in queries[name].parameters, name


def test_an_interval_contains_its_start_and_not_its_end() -> None:
    params = FactFilters(valid_at=NOW, known_at=NOW).as_of_params
    assert params == {
        "valid_at": to_epoch_pair(NOW),
        "valid_after": to_epoch_pair(NOW + MICROSECOND),
        "known_at": to_epoch_pair(NOW),
    }


def test_without_a_valid_time_every_interval_matches() -> None:
    params = FactFilters(valid_at=NOW, any_validity=True).as_of_params
    assert (params["valid_at"], params["valid_after"]) == (to_epoch_pair(MAX_TIME), to_epoch_pair(MIN_TIME))


def test_only_times_and_the_domain_leave_a_search_to_the_index() -> None:
    assert FactFilters(valid_at=NOW, known_at=NOW - timedelta(days=1), domain="cooking").is_fully_indexable
    assert not FactFilters(valid_at=NOW, min_importance=0.0).is_fully_indexable
    assert not FactFilters(valid_at=NOW, tags_none=("a",)).is_fully_indexable
