"""Parameters as the driver gets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import ParameterList, to_neo4j
from graphmem.runtime.times import MAX_TIME, MIN_TIME

MOMENTS = [
    MIN_TIME,
    MAX_TIME,
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 5, 1, 12, 30, 15, 123_456, tzinfo=UTC),
    datetime(2026, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=-5, minutes=-30))),
    datetime(2026, 7, 1, 12, 30, tzinfo=ZoneInfo("Europe/Paris")),
]


async def test_times_are_stored_in_utc_with_their_microseconds(graph: Graph) -> None:
    rows = await graph.read(
        lambda transaction: transaction.run_text(
            "UNWIND $times AS time RETURN time, valueType(time) AS type, time.offset AS offset",
            {"times": to_neo4j(MOMENTS)},
        )
    )
    assert [row["time"] for row in rows] == MOMENTS
    assert {(row["type"], row["offset"]) for row in rows} == {("ZONED DATETIME NOT NULL", "Z")}


def test_a_time_is_sent_in_utc_whatever_its_zone() -> None:
    local, in_utc = to_neo4j([moment := MOMENTS[-1], moment.astimezone(UTC)])
    assert local == in_utc


def test_what_the_driver_writes_into_its_log_does_not_grow_with_a_parameter() -> None:
    rows = [{"vector": [0.25] * 384, "text": "Mara lives in Lund"}] * 500
    parameters = {"rows": rows, "vector": [0.25] * 384}
    sent = to_neo4j(parameters)
    assert sent == parameters
    assert len(repr(sent)) < 100
    assert "Mara" not in repr(sent)


def test_an_empty_list_stays_one() -> None:
    assert to_neo4j({"ids": []}) == {"ids": ParameterList()}
