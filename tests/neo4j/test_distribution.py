"""How the locked jars get into the cache."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graphmem.neo4j.embedded import relock
from graphmem.neo4j.embedded.distribution import LOCK_FILE, neo4j_jars
from graphmem.runtime.artifacts import (
    DownloadProgress,
    Jar,
    JarSet,
    read_lock_file,
)
from graphmem.runtime.errors import ConfigurationError
from tests.neo4j.jar_repository import JarRepository, serve_repository

pytestmark = pytest.mark.asyncio
UNREACHABLE_URL = "http://127.0.0.1:9"


@pytest.fixture
def repository() -> Iterator[JarRepository]:
    with serve_repository() as repository:
        yield repository


@pytest.fixture
def jars(repository: JarRepository) -> list[Jar]:
    return [
        repository.add("org.example:engine:1.0", b"engine" * 5000),
        repository.add("org.example.net:wire:2.1:linux-x86_64", b"wire" * 7000),
    ]


async def fetch(
    cache: Path, repository: str, jars: Sequence[Jar], progress: DownloadProgress | None = None
) -> list[Path]:
    """Fetch jars as the embedded Neo4j and the local embedder do."""
    return await JarSet("the engine's jars", tuple(jars), "GRAPHMEM_ENGINE to yours").fetch(cache, repository, progress)


def partial_download(jar: Jar, cache: Path) -> Path:
    """Return the file of a jar during its download."""
    target = jar.path_in(cache / "jars")
    return target.with_name(target.name + ".part")


async def test_shipped_lock_names_server_and_browser_and_no_url() -> None:
    jars = neo4j_jars().jars
    assert {jar.coordinates for jar in jars} >= set(relock.ROOT_ARTIFACTS)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in jars)
    assert len({jar.path_in(Path()) for jar in jars}) == len(jars)
    assert "://" not in LOCK_FILE.read_text(encoding="utf-8")


async def test_lock_file_round_trips(tmp_path: Path, jars: list[Jar]) -> None:
    (tmp_path / "lock.toml").write_text(relock.render_lock_file(jars), encoding="utf-8")
    assert read_lock_file(tmp_path / "lock.toml") == tuple(jars)


async def test_missing_jars_are_fetched_with_progress_in_bytes(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    seen: list[tuple[int, int]] = []
    paths = await fetch(tmp_path, repository.address, jars, lambda done, total: seen.append((done, total)))
    assert [path.read_bytes() for path in paths] == [b"engine" * 5000, b"wire" * 7000]
    assert seen[-1] == (58000, 58000)


async def test_a_filled_cache_needs_no_connection(tmp_path: Path, repository: JarRepository, jars: list[Jar]) -> None:
    paths = await fetch(tmp_path, repository.address, jars)
    assert await fetch(tmp_path, UNREACHABLE_URL, jars) == paths


async def test_a_damaged_jar_is_fetched_again(tmp_path: Path, repository: JarRepository, jars: list[Jar]) -> None:
    engine, _ = await fetch(tmp_path, repository.address, jars)
    engine.write_bytes(b"ENGINE" * 5000)
    await fetch(tmp_path, repository.address, jars)
    assert engine.read_bytes() == b"engine" * 5000


async def test_interrupted_download_is_resumed(tmp_path: Path, repository: JarRepository, jars: list[Jar]) -> None:
    repository.truncate_after = [10_000]
    [path] = await fetch(tmp_path, repository.address, jars[:1])
    assert path.read_bytes() == b"engine" * 5000
    assert [asked_range for _, asked_range in repository.asked] == [None, "bytes=10000-"]


async def test_partial_file_of_an_earlier_run_is_resumed(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    repository.truncate_after = [7_000, 0, 0, 0]
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        await fetch(tmp_path, repository.address, jars[:1])
    repository.asked.clear()
    await fetch(tmp_path, repository.address, jars[:1])
    assert [asked_range for _, asked_range in repository.asked] == ["bytes=7000-"]


async def test_server_without_range_support_is_downloaded_in_full(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    repository.ignores_ranges, repository.truncate_after = True, [10_000]
    [path] = await fetch(tmp_path, repository.address, jars[:1])
    assert path.read_bytes() == b"engine" * 5000


async def test_mismatching_partial_file_is_downloaded_again(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    partial_download(jars[0], tmp_path).parent.mkdir(parents=True)
    partial_download(jars[0], tmp_path).write_bytes(b"other" * 100)
    [path] = await fetch(tmp_path, repository.address, jars[:1])
    assert path.read_bytes() == b"engine" * 5000


async def test_jar_with_a_wrong_hash_is_rejected_and_deleted(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    expected = replace(jars[0], sha256="0" * 64)
    with pytest.raises(ConfigurationError, match=r"engine-1\.0\.jar that is not the locked one"):
        await fetch(tmp_path, repository.address, [expected])
    assert not expected.path_in(tmp_path / "jars").exists()
    assert not partial_download(expected, tmp_path).exists()


async def test_offline_with_an_empty_cache_says_what_to_do(tmp_path: Path, jars: list[Jar]) -> None:
    with pytest.raises(
        ConfigurationError, match=r"GRAPHMEM_JAR_MIRROR to .* repository, or set GRAPHMEM_ENGINE"
    ) as refusal:
        await fetch(tmp_path, UNREACHABLE_URL, jars)
    assert "cannot be reached" in refusal.value.detail
    assert "\n" not in refusal.value.detail


async def test_a_jar_the_repository_lacks_is_named(tmp_path: Path, repository: JarRepository, jars: list[Jar]) -> None:
    repository.contents.clear()
    with pytest.raises(ConfigurationError, match=r"engine-1\.0\.jar answered 404"):
        await fetch(tmp_path, repository.address, jars[:1])


async def test_full_disk_is_reported_before_any_download(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    with pytest.raises(ConfigurationError, match="free disk space, or set GRAPHMEM_CACHE_DIR"):
        await fetch(tmp_path, repository.address, [replace(jars[0], size=10**18)])
    assert repository.asked == []


async def test_unwritable_cache_is_reported_in_one_line(tmp_path: Path, jars: list[Jar]) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ConfigurationError, match="cannot be used for the engine's jars"):
        await fetch(tmp_path / "file", UNREACHABLE_URL, jars)


async def test_concurrent_downloads_fetch_each_jar_once(
    tmp_path: Path, repository: JarRepository, jars: list[Jar]
) -> None:
    one, other = await asyncio.gather(*(fetch(tmp_path, repository.address, jars) for _ in range(2)))
    assert one == other
    assert len(repository.asked) == len(jars)
