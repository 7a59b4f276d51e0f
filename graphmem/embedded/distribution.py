"""The locked jars of the embedded Neo4j: which they are, and how they get into the user's cache."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

from graphmem.embedded.locks import FileLock
from graphmem.errors import ConfigurationError

LOCK_FILE = Path(__file__).with_name("neo4j.lock.toml")
MAX_PARALLEL_DOWNLOADS = 16
_ATTEMPTS = 4
_MIN_FREE_BYTES = 64 * 1024 * 1024

DownloadProgress = Callable[[int, int], None]
"""Called with the bytes fetched so far and the bytes to fetch in all."""


@dataclass(frozen=True)
class Jar:
    """One locked jar: `group:artifact:version[:classifier]`, its sha256 in hexadecimal, its size in bytes."""

    coordinates: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The jar's file name, as repositories and the cache call it."""
        _, *rest = self.coordinates.split(":")
        return "-".join(rest) + ".jar"

    @property
    def repository_path(self) -> str:
        """The jar's path below a repository's base address."""
        group, artifact, version, *_ = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"

    def path_in(self, folder: Path) -> Path:
        """The jar's place in the cache."""
        return folder / self.coordinates.split(":")[0] / self.file_name


def read_lock_file(path: Path = LOCK_FILE) -> list[Jar]:
    """Read a lock file."""
    return [Jar(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["jars"]]


async def ensure_jars(
    cache_dir: Path,
    mirror: str | None = None,
    progress: DownloadProgress | None = None,
    *,
    lock: Sequence[Jar] | None = None,
) -> list[Path]:
    """Return the paths of all locked jars, fetching those that are missing or damaged.

    A filled cache needs no connection. Raises ConfigurationError when a jar cannot be had or is not what the lock says.
    """
    jars = read_lock_file() if lock is None else lock
    folder = _jar_folder(cache_dir)
    try:
        if await asyncio.to_thread(_missing_jars, jars, folder):
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            await _download_missing(jars, folder, mirror, progress)
    except OSError as error:
        raise ConfigurationError(_storage_error_message(folder, error)) from error
    return [jar.path_in(folder) for jar in jars]


def missing_jars(cache_dir: Path) -> list[Jar]:
    """Return the locked jars that the cache lacks or holds damaged, without fetching them."""
    return _missing_jars(read_lock_file(), _jar_folder(cache_dir))


def _jar_folder(cache_dir: Path) -> Path:
    return cache_dir.expanduser().absolute() / "jars"


async def _download_missing(
    jars: Sequence[Jar], folder: Path, mirror: str | None, progress: DownloadProgress | None
) -> None:
    """Fetch what is missing, one process at a time."""
    async with FileLock(folder / "fetch.lock"):
        missing = await asyncio.to_thread(_missing_jars, jars, folder)
        if missing:
            _check_space(missing, folder)
            await _JarDownload(folder, mirror or _public_repository(), missing, progress).run()


def _missing_jars(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """List the jars that are not in the cache as the lock describes them."""
    return [jar for jar in jars if not _matches_lock(jar.path_in(folder), jar)]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _matches_lock(path: Path, jar: Jar) -> bool:
    if _size(path) != jar.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _check_space(missing: Sequence[Jar], folder: Path) -> None:
    needed = sum(jar.size for jar in missing) + _MIN_FREE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigurationError(
            f"Neo4j's jars need {_to_megabytes(needed)} MB in {folder} and {_to_megabytes(free)} MB are free: "
            "make room, or set GRAPHMEM_CACHE_DIR to a folder elsewhere."
        )


def _public_repository() -> str:
    try:
        from jgo.constants import MAVEN_CENTRAL_URL  # its import is slow, and only a fetch needs it
    except ImportError as error:
        raise ConfigurationError(
            "To fetch Neo4j, `pip install graphmem[embedded]`, or set GRAPHMEM_JAR_MIRROR to a repository "
            "within reach, or GRAPHMEM_NEO4J_URI to a Neo4j of yours."
        ) from error
    return str(MAVEN_CENTRAL_URL)


class _JarDownload:
    """One filling of the cache."""

    def __init__(self, folder: Path, base: str, missing: Sequence[Jar], progress: DownloadProgress | None) -> None:
        self._folder = folder
        self._base = base.rstrip("/")
        self._missing_jars = missing
        self._total = sum(jar.size for jar in missing)
        self._fetched: dict[str, int] = {}
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
                    "thrown away: try again, or set GRAPHMEM_JAR_MIRROR to a repository you trust."
                )
            part.replace(target)

    async def _download(self, client: httpx.AsyncClient, jar: Jar, part: Path) -> None:
        """Fetch a jar into its part file, going on where an earlier attempt broke off."""
        attempts = AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=0.2, max=2),
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                await self._stream(client, jar, part)

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

    def _report(self, jar: Jar, fetched: int) -> None:
        self._fetched[jar.coordinates] = fetched
        if self._progress:
            self._progress(sum(self._fetched.values()), self._total)

    def _to_configuration_error(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return ConfigurationError(_storage_error_message(self._folder, error))
        if not isinstance(error, (httpx.HTTPError, httpx.InvalidURL)):
            return error
        if isinstance(error, httpx.HTTPStatusError):
            what = f"{error.request.url} answered {error.response.status_code}"
        else:
            what = f"{self._base} cannot be reached ({error or type(error).__name__})"
        return ConfigurationError(
            f"{len(self._missing_jars)} of Neo4j's jars are not in {self._folder} and {what}: connect and try again, set "
            "GRAPHMEM_JAR_MIRROR to a repository within reach, or GRAPHMEM_NEO4J_URI to a Neo4j of yours."
        )


def _is_transient(error: BaseException) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.is_server_error or error.response.status_code == httpx.codes.TOO_MANY_REQUESTS
    return isinstance(error, httpx.TransportError)


def _first_error(group: ExceptionGroup[Exception]) -> Exception:
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _storage_error_message(folder: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"The disk of {folder} is full: make room, or set GRAPHMEM_CACHE_DIR to a folder elsewhere."
    return f"{folder} cannot be used for Neo4j's jars ({error}): set GRAPHMEM_CACHE_DIR to a folder you can write to."


def _to_megabytes(size: int) -> int:
    return round(size / 1024 / 1024)
