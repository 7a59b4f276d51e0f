"""Times, amounts and things in messages: as the sender names them, else as read from the text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from graphmem.context.mentions import extract_amounts, extract_mentions, extract_times, parse_amount
from graphmem.tenants.profiles import load_profile
from tests.context.conftest import message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
GENERAL, FINANCE = load_profile("general"), load_profile("finance")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("How much did I spend last month?", [("month", "last month", "2026-05-01T12:00:00+00:00")]),
        ("My lease ends next Friday.", [("day", "next Friday", "2026-06-05T00:00:00+00:00")]),
        ("I moved on 3 May 2024", [("day", "3 May 2024", "2024-05-03T00:00:00+00:00")]),
        ("Was habe ich gestern gekauft?", [("day", "gestern", "2026-05-31T12:00:00+00:00")]),
        ("mañana voy al banco", [("day", "mañana", "2026-06-02T12:00:00+00:00")]),
        ("I bought 3 apples and may go on", []),
        ("The sun is out and we are 12 people", []),
        ("I pay $1,200 a month, about 40% of it", []),
    ],
)
@pytest.mark.req("TRUE-08")
def test_times_are_resolved_relative_to_the_message_time(text: str, found: list[tuple[str, str, str]]) -> None:
    assert [(time.type, time.text, time.at) for time in extract_times(text, NOON)] == found


@pytest.mark.req("TRUE-08")
def test_a_range_of_times_has_an_end() -> None:
    (time,) = extract_times("My spending between March and May 2026", NOON)
    assert (time.type, time.at, time.until) == ("range", "2026-03-01T00:00:00+00:00", "2026-06-01T00:00:00+00:00")


def test_a_time_has_the_offset_of_the_speaker() -> None:
    evening = NOON.astimezone(timezone(timedelta(hours=9)))
    assert [time.at for time in extract_times("Wake me at 7am", evening)] == ["2026-06-01T07:00:00+09:00"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My budget is $1,200.50 for food", [(1200.5, "$", "budget")]),
        ("Ich verdiene 4.000,50 €", [(4000.5, "€", "income")]),
        ("I owe £2 million and earn 4k EUR", [(2e6, "£", "debt"), (4000.0, "EUR", "income")]),
        ("I paid 20 dollars. Rent costs $900.", [(20.0, "dollars", "spending"), (900.0, "$", "price")]),
        ("It is $5", [(5.0, "$", "general")]),
        ("I have 3 dogs and 2024 reasons", []),
        ("My rent is 1200 and I have 50k debt", [(1200.0, "", "bill"), (50000.0, "", "debt")]),
        ("Salary: 4.5k. Meine Miete ist 900", [(4500.0, "", "income"), (900.0, "", "bill")]),
        ("I owe two hundred and fifty euros", [(250.0, "euros", "debt")]),
        ("It is fifty thousand dollars", [(50000.0, "dollars", "general")]),
        ("The rent is due in 5 days, the loan of 2019 in room 1200", []),
    ],
)
@pytest.mark.req("TRUE-08")
def test_amounts_are_extracted_with_currency_and_context(text: str, found: list[tuple[float, str, str]]) -> None:
    amounts = extract_amounts(text, FINANCE)
    assert [(amount.amount, amount.currency, amount.context) for amount in amounts] == found


def test_the_general_profile_gives_amounts_no_context() -> None:
    amounts = extract_amounts("My budget is $400 and I owe £20", GENERAL)
    assert [(amount.amount, amount.context) for amount in amounts] == [(400.0, "general"), (20.0, "general")]


@pytest.mark.req("TRUE-08")
def test_mentions_get_the_relevance_and_expiry_of_their_kind() -> None:
    said = message("My budget last month was $400", entities={"Category": ["food"]})
    found = {mention.type: mention for mention in extract_mentions(said, NOON, FINANCE)}
    assert found["time_reference"].relevance == 0.9
    assert found["time_reference"].expires_at == NOON + timedelta(minutes=60)
    amount = found["amount_reference"]
    assert (amount.key, amount.relevance, amount.expires_at) == ("amount_budget", 0.8, NOON + timedelta(minutes=30))
    entity = found["entity_category"]
    assert (entity.key, entity.value, entity.relevance) == ("category", "food", 0.85)
    assert entity.expires_at == NOON + timedelta(minutes=120)


@pytest.mark.req("TRUE-08")
def test_the_given_category_is_the_context_of_an_amount() -> None:
    mentions = extract_mentions(message("It was $40", entities={"category": ["Food"]}), NOON, GENERAL)
    assert [mention.key for mention in mentions if "amount" in mention.type] == ["amount_food"]


@pytest.mark.req("TRUE-08")
def test_given_entities_are_not_extracted_from_the_text_again() -> None:
    said = message("I spent $40 yesterday", entities={"amount": [40], "date": ["2026-05-31"]})
    assert {mention.type for mention in extract_mentions(said, NOON, GENERAL)} == {"entity_amount", "entity_date"}


@pytest.mark.req("TRUE-08")
def test_a_given_amount_or_time_does_not_hide_the_others_in_the_text() -> None:
    text = "I spent $120 yesterday; my budget is $400 next month"
    said = message(text, entities={"amount": [120], "date": ["2026-05-31"]})
    found = {mention.key: mention.type for mention in extract_mentions(said, NOON, FINANCE)}
    assert found == {
        "month": "time_reference",
        "amount_budget": "amount_reference",
        "amount": "entity_amount",
        "date": "entity_date",
    }


@pytest.mark.req("TRUE-08")
def test_known_entities_are_used_when_none_are_given() -> None:
    found = extract_mentions(message("How is Rex?"), NOON, GENERAL, [("Dog", "Rex")])
    assert [(mention.type, mention.value) for mention in found] == [("entity_dog", "Rex")]


@pytest.mark.req("TRUE-07")
def test_only_user_messages_yield_mentions() -> None:
    assert extract_mentions(message("You spent $40 yesterday", role="assistant"), NOON, GENERAL) == []


@pytest.mark.req("TRUE-08")
@pytest.mark.parametrize(
    ("minutes", "types"),
    [
        (29, {"time_reference", "amount_reference", "entity_city"}),
        (30, {"time_reference", "entity_city"}),
        (59, {"time_reference", "entity_city"}),
        (60, {"entity_city"}),
        (119, {"entity_city"}),
        (120, set()),
    ],
)
def test_an_old_message_yields_only_unexpired_mentions(minutes: int, types: set[str]) -> None:
    said = message("I paid $40 yesterday", entities={"city": ["Porto"]}, at=NOON - timedelta(minutes=minutes))
    assert {mention.type for mention in extract_mentions(said, NOON, GENERAL)} == types


def test_amounts_given_as_text_or_number_are_parsed() -> None:
    given = [40, 1.5, "$1,200.50", "none", True]
    assert [parse_amount(value) for value in given] == [40.0, 1.5, 1200.5, None, None]
