"""Dates on the command line."""

from __future__ import annotations

import time

import pytest

from graphmem.cli.times import with_zone


def test_a_date_without_a_time_is_midnight_in_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert with_zone("2025-09-27") == "2025-09-27T00:00:00+02:00"
        assert with_zone("2025-01-27") == "2025-01-27T00:00:00+01:00"
        assert with_zone("2025-09-27T10:00:00Z") == "2025-09-27T10:00:00Z"
        assert with_zone("yesterday") == "yesterday"
        assert with_zone(None) is None
    finally:
        monkeypatch.undo()
        time.tzset()
