"""Locked Maven artifacts: reading lock files, and downloading their jars to the user's cache.

A lock file lists each jar's coordinates, sha256 and size, but no address. The jgo package knows the public repository's
address.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.files import MIN_FREE_AFTER_DOWNLOAD, FileLock, free_bytes, to_megabytes
from graphmem.runtime.retries import RetryPolicy

MAX_PARALLEL_DOWNLOADS = 16
"""Number of jars downloaded concurrently."""

_DOWNLOADS = RetryPolicy(backoff=0.2)
"""Retry policy of downloads."""

DownloadProgress = Callable[[int, int], None]
"""Called with the bytes downloaded so far and the total number of bytes."""


@dataclass(frozen=True)
class Jar:
    """A locked jar: `group:artifact:version[:classifier]`, its sha256 in hexadecimal and its size in bytes."""

    coordinates: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The jar's file name in repositories and in the cache."""
        _, *rest = self.coordinates.split(":")
        return "-".join(rest) + ".jar"

    @property
    def repository_path(self) -> str:
        """The jar's path below a repository's base address."""
        group, artifact, version, *_ = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"

    def path_in(self, folder: Path) -> Path:
        """Return the jar's path below a cache folder."""
        return folder / self.coordinates.split(":")[0] / self.file_name


@dataclass(frozen=True)
class JarSet:
    """Jars that are needed together; `name` and `alternative` appear in error messages."""

    name: str
    """Name of the jars, such as `Neo4j's jars`."""
    jars: tuple[Jar, ...]
    alternative: str
    """Setting that makes the jars unnecessary, with its value, such as `GRAPHMEM_NEO4J_URI to a Neo4j of yours`."""

    def find_missing(self, cache_dir: Path) -> list[Jar]:
        """Return the jars that are missing from the cache or damaged, without downloading them."""
        folder = _jar_folder(cache_dir)
        return [jar for jar in self.jars if not _matches_lock(jar.path_in(folder), jar)]

    async def fetch(
        self, cache_dir: Path, mirror: str | None = None, progress: DownloadProgress | None = None
    ) -> list[Path]:
        """Return the paths of the jars in order; download missing or damaged ones.

        A complete cache needs no connection. Raises ConfigurationError if a jar is unavailable or does not match the
        lock file.
        """
        folder = _jar_folder(cache_dir)
        try:
            if await asyncio.to_thread(self.find_missing, cache_dir):
                await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
                await self._download_missing(cache_dir, mirror, progress)
        except OSError as error:
            raise ConfigurationError(_storage_error_message(folder, self.name, error)) from error
        return [jar.path_in(folder) for jar in self.jars]

    async def _download_missing(self, cache_dir: Path, mirror: str | None, progress: DownloadProgress | None) -> None:
        """Download the missing jars, one process at a time."""
        folder = _jar_folder(cache_dir)
        async with FileLock(folder / "fetch.lock"):
            missing = await asyncio.to_thread(self.find_missing, cache_dir)
            if missing:
                self._check_space(missing, folder)
                await _JarDownload(self, folder, mirror or _public_repository(), missing, progress).run()

    def _check_space(self, missing: Sequence[Jar], folder: Path) -> None:
        needed = sum(jar.size for jar in missing) + MIN_FREE_AFTER_DOWNLOAD
        free = free_bytes(folder)
        if free < needed:
            raise ConfigurationError(
                f"{self.name} need {to_megabytes(needed)} MB in {folder}, but only {to_megabytes(free)} MB are free: "
                "free disk space, or set GRAPHMEM_CACHE_DIR to another folder."
            )


def read_lock_file(path: Path) -> tuple[Jar, ...]:
    """Return the jars of a lock file, in file order."""
    return tuple(Jar(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["jars"])


def _jar_folder(cache_dir: Path) -> Path:
    return cache_dir.expanduser().absolute() / "jars"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _matches_lock(path: Path, jar: Jar) -> bool:
    if _size(path) != jar.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _public_repository() -> str:
    from jgo.constants import MAVEN_CENTRAL_URL  # a slow import, needed only for downloads

    return str(MAVEN_CENTRAL_URL)


class _JarDownload:
    """The download of the missing jars of a set."""

    def __init__(
        self, jar_set: JarSet, folder: Path, base: str, missing: Sequence[Jar], progress: DownloadProgress | None
    ) -> None:
        self._jar_set = jar_set
        self._folder = folder
        self._base = base.rstrip("/")
        self._missing_jars = missing
        self._total = sum(jar.size for jar in missing)
        self._downloaded: dict[str, int] = {}
        self._progress = progress
        self._semaphore = asyncio.Semaphore(MAX_PARALLEL_DOWNLOADS)

    async def run(self) -> None:
        timeout = httpx.Timeout(30, connect=10, pool=None)
        async with httpx.AsyncClient(timeout=timeout, follow_redirects=True) as client:
            try:
                async with asyncio.TaskGroup() as group:
                    for jar in self._missing_jars:
                        group.create_task(self._download_jar(client, jar))
            except ExceptionGroup as failures:
                raise self._to_configuration_error(_first_error(failures)) from failures

    async def _download_jar(self, client: httpx.AsyncClient, jar: Jar) -> None:
        target = jar.path_in(self._folder)
        part = target.with_name(target.name + ".part")
        target.parent.mkdir(exist_ok=True)
        async with self._semaphore:
            resumed = part.exists()
            await self._download(client, jar, part)
            if resumed and not await asyncio.to_thread(_matches_lock, part, jar):
                part.unlink()
                await self._download(client, jar, part)
            if not await asyncio.to_thread(_matches_lock, part, jar):
                part.unlink()
                raise ConfigurationError(
                    f"{self._base} served a {jar.file_name} that is not the locked one (its sha256 differs), so it was "
                    "deleted: try again, or set GRAPHMEM_JAR_MIRROR to a repository that you trust."
                )
            part.replace(target)

    async def _download(self, client: httpx.AsyncClient, jar: Jar, part: Path) -> None:
        """Download a jar into its part file; resume an interrupted download."""
        await _DOWNLOADS.run(jar.file_name, lambda: self._stream(client, jar, part))

    async def _stream(self, client: httpx.AsyncClient, jar: Jar, part: Path) -> None:
        existing_size = _size(part)
        if existing_size == jar.size:
            return
        headers = {"Accept-Encoding": "identity"}
        if 0 < existing_size < jar.size:
            headers["Range"] = f"bytes={existing_size}-"
        async with client.stream("GET", f"{self._base}/{jar.repository_path}", headers=headers) as response:
            response.raise_for_status()
            is_partial = response.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if is_partial else "wb") as file:
                self._report(jar, file.tell())
                async for chunk in response.aiter_raw():
                    file.write(chunk)
                    self._report(jar, file.tell())
                    if file.tell() > jar.size:
                        return

    def _report(self, jar: Jar, downloaded: int) -> None:
        self._downloaded[jar.coordinates] = downloaded
        if self._progress:
            self._progress(sum(self._downloaded.values()), self._total)

    def _to_configuration_error(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return ConfigurationError(_storage_error_message(self._folder, self._jar_set.name, error))
        if not isinstance(error, (httpx.HTTPError, httpx.InvalidURL)):
            return error
        if isinstance(error, httpx.HTTPStatusError):
            cause = f"{error.request.url} answered {error.response.status_code}"
        else:
            cause = f"{self._base} cannot be reached ({error or type(error).__name__})"
        return ConfigurationError(
            f"{self._folder} lacks {len(self._missing_jars)} of {self._jar_set.name} and {cause}: connect and try "
            f"again, set GRAPHMEM_JAR_MIRROR to a reachable repository, or set {self._jar_set.alternative}."
        )


def _first_error(group: ExceptionGroup[Exception]) -> Exception:
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _storage_error_message(folder: Path, name: str, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"The disk of {folder} is full: free disk space, or set GRAPHMEM_CACHE_DIR to another folder."
    return f"{folder} cannot be used for {name} ({error}): set GRAPHMEM_CACHE_DIR to a folder you can write to."
