"""One model of filters: every surface has its fields, and the store applies each of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from graphmem.cli import memories as cli_memories
from graphmem.client.inputs import ListMemoriesOptions, SearchOptions
from graphmem.memories.filters import FactFilters, ListFilters, MemoryFilters, QueryStringFilters, SharedFilters
from graphmem.neo4j.queries import load_queries
from graphmem.runtime.field_types import to_json
from graphmem.runtime.times import (
    AS_OF_NOW,
    MAX_TIME,
    MICROSECOND,
    MIN_TIME,
    to_epoch_pair,
)
from graphmem.search.models import SearchQuery
from graphmem.tenants.trust import DEFAULT_ORDER

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def without(names: Iterable[str], *left_out: str) -> set[str]:
    return set(names) - set(left_out)


def test_search_options_have_the_fields_of_a_search_query() -> None:
    assert SearchOptions.__annotations__.keys() == without(SearchQuery.model_fields, "query")


def test_list_options_have_the_fields_of_list_filters() -> None:
    assert ListMemoriesOptions.__annotations__.keys() == ListFilters.model_fields.keys()


def test_query_strings_differ_from_the_model_only_in_types_tags_and_metadata() -> None:
    assert SharedFilters.model_fields.keys() == without(MemoryFilters.model_fields, "types", "tags", "metadata")
    assert ListFilters.model_fields.keys() - SharedFilters.model_fields.keys() == {
        "type", "tag", "not_tag", "metadata", "keyword", "sort", "limit", "cursor",
        "space", "spaces",
    }  # fmt: skip


@pytest.mark.parametrize("command", [cli_memories.search, cli_memories.memories])
def test_commands_have_an_option_for_every_filter_with_its_description(command: Callable[..., None]) -> None:
    options = inspect.signature(command).parameters
    for name, field in QueryStringFilters.model_fields.items():
        [option] = options[name].annotation.__metadata__
        assert option.help == field.description, name


def test_a_list_and_a_search_with_the_same_filters_are_resolved_alike() -> None:
    shared = {"domain": "Cooking", "scope": "domain", "min_confidence": 0.6, "created_after": "2026-01-01T00:00:00Z"}
    listed = ListFilters.model_validate({**shared, "type": ["plan"], "tag": ["a"], "not_tag": ["b"]})
    searched = SearchQuery.model_validate(
        {**shared, "query": "x", "types": ["plan"], "tags": {"all": ["a"], "none": ["b"]}}
    )
    expected = {
        "types": ["plan"],
        "tags_all": ["a"],
        "tags_none": ["b"],
        "domain": "cooking",
        "scope": "domain",
        "entity_ids": ["e"],
        "min_confidence": 0.6,
        "created_after": datetime(2026, 1, 1, tzinfo=UTC),
    }
    for filters in (
        listed.to_memory_filters().resolve(["e"], NOW, DEFAULT_ORDER),
        searched.resolve(["e"], NOW, DEFAULT_ORDER),
    ):
        assert (filters.valid_at, filters.known_at) == (NOW, AS_OF_NOW)
        assert {name: value for name, value in filters.attribute_params.items() if value not in (None, [])} == expected


def test_queries_take_the_parameters_that_the_filters_make() -> None:
    filters = FactFilters(valid_at=NOW)
    as_of, attributes = filters.as_of_params.keys(), filters.attribute_params.keys()
    queries = load_queries()
    for name in (
        "facts.list_page",
        "search.scan_facts_by_vector",
        "search.find_facts_by_text",
        "search.find_edges",
    ):
        assert as_of | {"filters"} <= queries[name].parameters, name
        assert set(re.findall(r"\$filters\.(\w+)", queries[name].text)) == attributes, name
    for name in ("entities.list_facts", "search.list_entity_edges", "search.find_facts_by_vector"):
        assert as_of <= queries[name].parameters, name
        assert "filters" not in queries[name].parameters, name


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
    def is_indexable(**filters: Any) -> bool:
        return MemoryFilters.model_validate(filters).resolve(None, NOW, DEFAULT_ORDER).is_fully_indexable

    assert is_indexable(valid_as_of=NOW, known_as_of=NOW - timedelta(days=1), domain="cooking")
    assert not is_indexable(min_importance=0.0)
    assert not is_indexable(tags={"none": ["a"]})
    assert not MemoryFilters().resolve([], NOW, DEFAULT_ORDER).is_fully_indexable


def test_metadata_is_matched_by_a_value_by_one_of_several_and_by_the_members_of_a_list() -> None:
    stored = {"tags": ["a", "b,]", 3.0], "stage": "open", "n": 3, "odd": ['x"],"tags":["y'], "empty": []}
    matching: list[dict[str, Any]] = [
        {"tags": "a"}, {"tags": "b,]"}, {"tags": 3}, {"tags": ["z", "a"]}, {"stage": ["new", "open"]}, {"n": "3"},
    ]  # fmt: skip
    others: list[dict[str, Any]] = [
        {"tags": "b"}, {"tags": "y"}, {"tags": "z"}, {"stage": "ope"}, {"stage": "o.en"}, {"empty": "a"}, {"odd": "y"},
    ]  # fmt: skip
    for given in (*matching, *others):
        filters = FactFilters(datetime.now(UTC), attributes=MemoryFilters.model_validate({"metadata": given}))
        [pattern] = filters.attribute_params["metadata"]
        assert (re.match(pattern, to_json(stored)) is not None) is (given in matching), given


def test_a_value_that_metadata_cannot_have_is_one_error() -> None:
    for wrong in ({"a": 1}, [[1]], []):
        with pytest.raises(ValidationError) as refused:
            MemoryFilters.model_validate({"metadata": {"tags": wrong}})
        assert refused.value.error_count() == 1
