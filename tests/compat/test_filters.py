"""Filters of mem0: whose memories they name, and what they match."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from graphmem.compat.mem0.shapes import OwnerIds, find_owners, is_plain, matches, plain_metadata

ITEM = {
    "id": "1@ada",
    "memory": "Ada likes tea",
    "user_id": "ada",
    "agent_id": "chef",
    "created_at": "2026-05-04T10:00:00+00:00",
    "categories": ["food", "drinks"],
    "metadata": {"topic": "Tea", "stars": 4, "good": True},
}


@pytest.mark.parametrize(
    ("filters", "is_match"),
    [
        ({"user_id": "ada"}, True),
        ({"user_id": "bob"}, False),
        ({"topic": "Tea", "stars": 4}, True),
        ({"topic": {"eq": "Coffee"}}, False),
        ({"topic": {"ne": "Coffee"}}, True),
        ({"missing": {"ne": "x"}}, True),
        ({"stars": {"gte": 4, "lt": 5}}, True),
        ({"stars": {"gt": 4}}, False),
        ({"stars": {"gt": "many"}}, False),
        ({"topic": {"in": ["Tea", "Coffee"]}}, True),
        ({"topic": ["Coffee"]}, False),
        ({"topic": {"nin": ["Coffee"]}}, True),
        ({"topic": {"contains": "te"}}, False),
        ({"topic": {"icontains": "te"}}, True),
        ({"memory": {"contains": "tea"}}, True),
        ({"topic": "*"}, True),
        ({"missing": "*"}, False),
        ({"categories": {"in": ["drinks"]}}, True),
        ({"categories": {"contains": "food"}}, True),
        ({"metadata": {"topic": "Tea"}}, True),
        ({"created_at": {"gte": "2026-05-01", "lt": "2026-06-01"}}, True),
        ({"created_at": {"gte": "2026-05-04T12:30:00+03:00"}}, True),
        ({"created_at": {"gt": "2026-05-04T09:00:00-02:00"}}, False),
        ({"created_at": {"lte": datetime(2026, 5, 4, 10)}}, True),
        ({"created_at": {"gte": date(2026, 5, 5)}}, False),
        ({"created_at": {"lt": 1777880000}}, False),
        ({"created_at": {"lt": 1777880000123}}, False),
        ({"created_at": "2026-05-04T10:00:00.000Z"}, True),
        ({"keywords": {"contains": "TEA"}}, True),
        ({"keywords": "coffee"}, False),
        ({"AND": [{"user_id": "ada"}, {"stars": {"gt": 4}}]}, False),
        ({"OR": [{"stars": {"gt": 4}}, {"topic": "Tea"}]}, True),
        ({"NOT": [{"topic": "Tea"}]}, False),
        ({"NOT": {"topic": "Coffee"}}, True),
        ({}, True),
    ],
)
def test_a_filter_matches_what_mem0_matches(filters: dict[str, Any], is_match: bool) -> None:
    assert matches(filters, ITEM) is is_match


def test_an_operator_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="'like'"):
        matches({"topic": {"like": "T%"}}, ITEM)
    with pytest.raises(ValueError, match="keywords"):
        matches({"keywords": {"gt": "tea"}}, ITEM)
    with pytest.raises(ValueError, match="no time"):
        matches({"created_at": {"gt": "yesterday"}}, ITEM)


@pytest.mark.parametrize(
    ("filters", "owners"),
    [
        ({"user_id": "ada", "agent_id": "chef"}, ["ada"]),
        ({"user_id": 7}, ["7"]),
        ({"agent_id": "chef"}, ["agent:chef"]),
        ({"run_id": "r", "stars": 4}, ["run:r"]),
        ({"AND": [{"user_id": "ada"}, {"OR": [{"run_id": "a"}, {"run_id": "b"}]}]}, ["ada"]),
        ({"OR": [{"user_id": "ada"}, {"agent_id": "chef"}]}, ["ada", "agent:chef"]),
        ({"user_id": {"in": ["ada", "bob"]}}, ["ada", "bob"]),
    ],
)
def test_a_filter_names_the_users_that_are_read(filters: dict[str, Any], owners: list[str]) -> None:
    assert find_owners(filters) == owners


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"stars": 4},
        {"user_id": "*"},
        {"user_id": " "},
        {"user_id": "a b"},
        {"OR": [{"user_id": "ada"}, {"stars": 4}]},
    ],
)
def test_a_filter_that_names_no_user_is_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="user_id"):
        find_owners(filters)


def test_the_server_checks_equality_and_the_rest_is_checked_here() -> None:
    plain = {"user_id": "ada", "run_id": "r", "topic": "Tea", "good": True}
    assert (is_plain(plain), plain_metadata(plain)) == (True, {"run_id": "r", "topic": "Tea", "good": True})
    mixed = {"user_id": "ada", "topic": "Tea", "stars": {"gt": 3}, "created_at": "2026"}
    assert (is_plain(mixed), plain_metadata(mixed)) == (False, {"topic": "Tea"})


def test_one_id_names_the_owner_and_the_others_are_labels() -> None:
    ids = OwnerIds.of({"user_id": "ada", "run_id": "r", "limit": 5})
    assert (ids.owner, ids.labels, ids.is_owner_alone) == ("ada", {"run_id": "r"}, False)
    alone = OwnerIds.of({"agent_id": "chef"})
    assert (alone.owner, alone.labels, alone.is_owner_alone) == ("agent:chef", {"agent_id": "chef"}, True)
    assert OwnerIds().owner is None
