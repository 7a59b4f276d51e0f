"""Dates and times on the command line and in Python: what they mean, how they are shown, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date

import pytest

from graphmem.client.inputs import parse_memories, with_options
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.times import start_of_local_day
from graphmem.search.models import SearchQuery
from tests.cli.conftest import Cli

BERLIN = {"TZ": "Europe/Berlin"}


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this process."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_a_date_without_a_time_is_midnight_in_the_zone_of_the_machine() -> None:
    for text, start in {
        "2025-09-27": "2025-09-27T00:00:00+02:00",
        "2025-01-27": "2025-01-27T00:00:00+01:00",
    }.items():
        assert [str(start_of_local_day(given)) for given in (text, date.fromisoformat(text))] == [
            start.replace("T", " ")
        ] * 2
    assert start_of_local_day("2025-09-27T10:00:00Z") == "2025-09-27T10:00:00Z"
    assert start_of_local_day("yesterday") == "yesterday"


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("given", ["2020-01-01", date(2020, 1, 1), "2020-01-01T00:00:00+01:00"])
def test_python_reads_a_date_as_the_command_line_does(given: str | date) -> None:
    [memory] = parse_memories({"content": "Mara lives in Oslo", "valid_at": given}).memories
    assert str(memory.valid_at) == "2019-12-31 23:00:00+00:00"
    query = with_options(SearchQuery, "query", "where", {"valid_as_of": given})
    assert str(query.valid_as_of) == "2019-12-31 23:00:00+00:00"


@pytest.mark.parametrize("given", ["2020-01-01T12:00:00", "12:00", "0001-01-01"])
def test_python_refuses_a_time_without_an_offset(given: str) -> None:
    with pytest.raises(InvalidInput, match="valid_as_of"):
        with_options(SearchQuery, "query", "where", {"valid_as_of": given})


async def test_a_date_is_shown_as_it_was_given(cli: Cli, user: str) -> None:
    added = await cli("add", "--user", user, "Mara moved house.", "--valid-at", "2025-09-28", **BERLIN)
    assert added.code == 0, added.err
    assert ("2025-09-28" in added.out, "2025-09-27" in added.out) == (True, False)
    [memory] = (await cli("memories", "--user", user, "--json", **BERLIN)).json["items"]
    assert memory["valid_at"] == "2025-09-27T22:00:00Z"
    for command in (("memories",), ("search", "house"), ("history", memory["id"]), ("get", memory["id"])):
        shown = (await cli(*command, "--user", user, **BERLIN)).out
        assert ("2025-09-28" in shown, "2025-09-27" in shown) == (True, False), shown


ERRORS = [
    (("add", "She sings.", "--valid-at", "2020-01-01T12:00:00"), "--valid-at: has no offset"),
    (("add", "She sings.", "--valid-at", "yesterday"), "--valid-at: must be an RFC 3339 time"),
    (("search", "tea", "--valid-as-of", "last Tuesday"), "--valid-as-of: must be an RFC 3339 time"),
    (("search", "tea", "--as-of", "last Tuesday"), "--as-of/--valid-as-of: must be an RFC 3339 time"),
    (("memories", "--as-of", "soon"), "--valid-as-of: "),
    (("context", "tea", "--as-of", "soon"), "--valid-as-of: "),
    (("add", "She sings.", "--valid-at", "2021-01-01", "--invalid-at", "2020-01-01"), "--invalid-at is before"),
    (("add", "She sings.", "--tag", "a b", "--predicate", "sings"), "--predicate: "),
    (("add", "She sings.", "--object", " "), "--object: "),
    (("search", "tea", "--type", "no such!"), "--type: "),
    (("memories", "--created-after", "soon"), "--created-after: "),
    (("diff", "--since", "soon"), "--since: "),
    (("update", "12345678-1234-1234-1234-123456789012", "--importance", "3"), "--importance: "),
    (("entity", "Jonas", "--known-as-of", "never"), "--known-as-of: "),
    (("context", "tea", "--valid-as-of", "2020"), "--valid-as-of: "),
]


async def test_errors_name_the_options_that_were_typed(cli_without_settings: Cli) -> None:
    for command, named in ERRORS:
        done = await cli_without_settings(*command, "--user", "mara", GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:1")
        assert (done.code, named in done.err, "memories.0" in done.err) == (2, True, False), done.err
