"""What a start says while it waits."""

from __future__ import annotations

import asyncio

import pytest

from graphmem.runtime.progress import StartProgress


async def test_a_wait_is_named_and_repeated_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.runtime.progress.REPEAT_SECONDS", 0.01)
    told: list[str] = []
    async with asyncio.timeout(60), StartProgress(told.append).waiting_for("waiting for Neo4j", quiet_seconds=0):
        while len(told) < 3:  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.01)
    assert told[0] == "waiting for Neo4j …"
    assert told[1].startswith("waiting for Neo4j … (")


async def test_a_short_wait_is_silent() -> None:
    told: list[str] = []
    async with StartProgress(told.append).waiting_for("waiting for Neo4j", quiet_seconds=60):
        await asyncio.sleep(0)
    assert told == []


def test_a_download_is_told_at_its_start_and_its_end() -> None:
    told: list[str] = []
    progress = StartProgress(told.append)
    for downloaded in (0, 50_000_000, 100_000_000, 191_000_000):
        progress.download(downloaded, 191_000_000)
    assert told == ["downloading 191 MB, once: 0 %", "downloading 191 MB, once: 100 %"]


def test_a_callback_gets_the_bytes_instead_of_sentences() -> None:
    told: list[str] = []
    got: list[tuple[int, int]] = []
    StartProgress(told.append, lambda done, total: got.append((done, total))).download(5, 10)
    assert (told, got) == ([], [(5, 10)])
