"""Locked Maven artifacts: reads lock files and fetches the jars they list into the user's cache.

A lock file lists coordinates, sha256 and size of each jar and no address; jgo names the public repository.
"""

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

from graphmem.errors import SetupError
from graphmem.file_lock import FileLock

AT_ONCE = 16
"""Jars fetched at the same time."""
_ATTEMPTS = 4
_SPARE_BYTES = 64 * 1024 * 1024

Progress = Callable[[int, int], None]
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


@dataclass(frozen=True)
class JarSet:
    """Jars that are needed together; `name` and `alternative` complete the sentences of errors."""

    name: str
    """What the jars are, such as `Neo4j's jars`."""
    jars: tuple[Jar, ...]
    alternative: str
    """The setting that makes them unnecessary, and its value in words."""

    def missing(self, cache_dir: Path) -> list[Jar]:
        """Return the jars that the cache lacks or holds damaged, without fetching them."""
        folder = _jar_folder(cache_dir)
        return [jar for jar in self.jars if not _is_sound(jar.path_in(folder), jar)]

    async def fetch(self, cache_dir: Path, mirror: str | None = None, progress: Progress | None = None) -> list[Path]:
        """Return the paths of the jars in order, after fetching those that are missing or damaged.

        A filled cache needs no connection. Raises SetupError when a jar is unavailable or differs from the lock.
        """
        folder = _jar_folder(cache_dir)
        try:
            if await asyncio.to_thread(self.missing, cache_dir):
                await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
                await self._fill(cache_dir, mirror, progress)
        except OSError as error:
            raise SetupError(_storage_refusal(folder, self.name, error)) from error
        return [jar.path_in(folder) for jar in self.jars]

    async def _fill(self, cache_dir: Path, mirror: str | None, progress: Progress | None) -> None:
        """Fetch what is missing, one process at a time."""
        folder = _jar_folder(cache_dir)
        async with FileLock(folder / "fetch.lock"):
            missing = await asyncio.to_thread(self.missing, cache_dir)
            if missing:
                self._check_space(missing, folder)
                await _Fetch(self, folder, mirror or _public_repository(), missing, progress).run()

    def _check_space(self, missing: Sequence[Jar], folder: Path) -> None:
        needed = sum(jar.size for jar in missing) + _SPARE_BYTES
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise SetupError(
                f"The disk of {folder} needs {_mb(needed)} MB for {self.name} and has {_mb(free)} MB free: "
                "make room, or set GRAPHMEM_CACHE_DIR to a folder elsewhere."
            )


def read_lock(path: Path) -> tuple[Jar, ...]:
    """Read the jars of a lock file."""
    return tuple(Jar(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["jars"])


def _jar_folder(cache_dir: Path) -> Path:
    return cache_dir.expanduser().absolute() / "jars"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_sound(path: Path, jar: Jar) -> bool:
    if _size(path) != jar.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _public_repository() -> str:
    try:
        from jgo.constants import MAVEN_CENTRAL_URL  # its import is slow, and only a fetch needs it
    except ImportError as error:
        raise SetupError(
            "jgo, which knows the public repository, is not installed: run pip install 'graphmem[local,embedded]', or "
            "set GRAPHMEM_JAR_MIRROR to a reachable repository."
        ) from error
    return str(MAVEN_CENTRAL_URL)


class _Fetch:
    """One filling of the cache."""

    def __init__(
        self, jar_set: JarSet, folder: Path, base: str, missing: Sequence[Jar], progress: Progress | None
    ) -> None:
        self._set = jar_set
        self._folder = folder
        self._base = base.rstrip("/")
        self._missing = missing
        self._total = sum(jar.size for jar in missing)
        self._fetched: dict[str, int] = {}
        self._progress = progress
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        timeout = httpx.Timeout(30, connect=10, pool=None)
        async with httpx.AsyncClient(timeout=timeout, follow_redirects=True) as client:
            try:
                async with asyncio.TaskGroup() as group:
                    for jar in self._missing:
                        group.create_task(self._one(client, jar))
            except ExceptionGroup as failures:
                raise self._refusal(_first(failures)) from failures

    async def _one(self, client: httpx.AsyncClient, jar: Jar) -> None:
        target = jar.path_in(self._folder)
        part = target.with_name(target.name + ".part")
        target.parent.mkdir(exist_ok=True)
        async with self._turns:
            resumed = part.exists()
            await self._download(client, jar, part)
            if resumed and not await asyncio.to_thread(_is_sound, part, jar):
                part.unlink()
                await self._download(client, jar, part)
            if not await asyncio.to_thread(_is_sound, part, jar):
                part.unlink()
                raise SetupError(
                    f"{self._base} served a {jar.file_name} that is not the locked one (its sha256 differs), so it was "
                    "thrown away: try again, or set GRAPHMEM_JAR_MIRROR to a repository you trust."
                )
            part.replace(target)

    async def _download(self, client: httpx.AsyncClient, jar: Jar, part: Path) -> None:
        """Fetch a jar into its part file, going on where an earlier attempt broke off."""
        attempts = AsyncRetrying(
            retry=retry_if_exception(_is_passing),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=0.2, max=2),
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                await self._stream(client, jar, part)

    async def _stream(self, client: httpx.AsyncClient, jar: Jar, part: Path) -> None:
        have = _size(part)
        if have == jar.size:
            return
        headers = {"Accept-Encoding": "identity"}
        if 0 < have < jar.size:
            headers["Range"] = f"bytes={have}-"
        async with client.stream("GET", f"{self._base}/{jar.repository_path}", headers=headers) as response:
            response.raise_for_status()
            goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if goes_on else "wb") as file:
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

    def _refusal(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return SetupError(_storage_refusal(self._folder, self._set.name, error))
        if not isinstance(error, (httpx.HTTPError, httpx.InvalidURL)):
            return error
        if isinstance(error, httpx.HTTPStatusError):
            what = f"{error.request.url} answered {error.response.status_code}"
        else:
            what = f"{self._base} cannot be reached ({error or type(error).__name__})"
        return SetupError(
            f"{self._folder} lacks {len(self._missing)} of {self._set.name} and {what}: connect and try again, set "
            f"GRAPHMEM_JAR_MIRROR to a reachable repository, or {self._set.alternative}."
        )


def _is_passing(error: BaseException) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.is_server_error or error.response.status_code == httpx.codes.TOO_MANY_REQUESTS
    return isinstance(error, httpx.TransportError)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _storage_refusal(folder: Path, name: str, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"The disk of {folder} is full: make room, or set GRAPHMEM_CACHE_DIR to a folder elsewhere."
    return f"{folder} cannot be used for {name} ({error}): set GRAPHMEM_CACHE_DIR to a folder you can write to."


def _mb(size: int) -> int:
    return round(size / 1024 / 1024)
