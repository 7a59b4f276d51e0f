"""Backup and restoration of a data folder: the embedded Neo4j, the SQLite job store and the receipt key.

An archive that was cut off has no manifest, and is refused like one that differs from its manifest.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from graphmem.jobs.store import SQLITE_FILE, copy_sqlite
from graphmem.neo4j.embedded.server import paused_server
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.files import free_bytes, to_megabytes
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.user_data.forget import RECEIPT_KEY_FILE

MANIFEST = "manifest.json"
"""Name of the member that lists all others."""

FORMAT = 1
"""Version of the format."""

_CHUNK = 1024**2


def write_archive(path: Path, files: Mapping[str, Path], about: Mapping[str, str]) -> int:
    """Write files and folders under the given names, with a description in `about`; return the archive's size in bytes.

    Only the owner can read the archive, and it gets its name once complete. Raises InvalidInput if the file exists or
    cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                checksums = {name: _add_file(archive, name, member) for name, member in _list_files(files)}
                manifest = json.dumps({"format": FORMAT, **about, "files": checksums}, indent=1).encode()
                entry = tarfile.TarInfo(MANIFEST)
                entry.size = len(manifest)
                archive.addfile(entry, io.BytesIO(manifest))
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a rename, this never replaces a file
        return path.stat().st_size
    except FileExistsError as error:
        raise InvalidInput(f"{path} exists: give the backup another name.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)


def extract_archive(path: Path, folder: Path) -> dict[str, str]:
    """Extract an archive into an empty folder and return its description.

    Raises InvalidInput if the file is not a complete archive of this format.
    """
    try:
        with tarfile.open(path, mode="r:") as archive:
            checksums: dict[str, str] = {}
            manifest: dict[str, object] = {}
            for entry in archive:
                content = archive.extractfile(entry) if entry.isreg() else None
                if content is None or manifest:
                    raise InvalidInput(f"{path} is not a backup of graphmem.")
                if entry.name == MANIFEST:
                    manifest = json.loads(content.read())
                else:
                    checksums[entry.name] = _extract_file(content, folder / _safe_name(path, entry.name))
    except (tarfile.TarError, EOFError, ValueError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read as a backup: {error}.") from error
    if manifest.pop("format", None) != FORMAT:
        raise InvalidInput(f"{path} is not a complete backup that this graphmem can read: use another one.")
    if manifest.pop("files") != checksums:
        raise InvalidInput(f"{path} is damaged, its files differ from its manifest: use another backup.")
    return {name: str(value) for name, value in manifest.items()}


def _list_files(files: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    for name, path in files.items():
        if path.is_dir():
            inside = sorted(member for member in path.rglob("*") if member.is_file())
            yield from ((f"{name}/{member.relative_to(path).as_posix()}", member) for member in inside)
        else:
            yield name, path


def _add_file(archive: tarfile.TarFile, name: str, path: Path) -> str:
    """Add a file and return its checksum."""
    with path.open("rb") as file:
        entry = tarfile.TarInfo(name)
        entry.size = os.fstat(file.fileno()).st_size
        entry.mode = 0o600
        hashed = _HashedReader(file)
        archive.addfile(entry, hashed)
    return hashed.checksum


def _safe_name(path: Path, name: str) -> str:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name:
        raise InvalidInput(f"{path} is not a backup of graphmem: it contains the path {name!r}.")
    return name


def _extract_file(content: IO[bytes], target: Path) -> str:
    """Write a file that only its owner can read and return its checksum."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hashed = _HashedReader(content)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := hashed.read(_CHUNK):
            file.write(chunk)
    return hashed.checksum


class _HashedReader(io.RawIOBase):
    """Reads a file and computes the checksum of the bytes read."""

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner = inner
        self._digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        chunk = self._inner.read(size)
        self._digest.update(chunk)
        return chunk

    @property
    def checksum(self) -> str:
        """The SHA-256 of the bytes read."""
        return self._digest.hexdigest()


_PARTS = ("neo4j/data", "neo4j/password", SQLITE_FILE, RECEIPT_KEY_FILE)
"""Files and whole folders of a data folder that a backup contains, if they exist."""

_WITHOUT_DATABASE = ("neo4j/data", SQLITE_FILE)
"""Files that must not exist in a folder into which a backup is restored."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: its file, its time and its graphmem version.

    `has_jobs` is false if the job store is in Postgres.
    """

    file: str
    created_at: str
    version: str
    has_jobs: bool
    bytes: int


async def create_backup(settings: Settings, path: Path, version: str) -> Backup:
    """Write a backup of the data folder to a new file.

    Neo4j is stopped while its files are copied, and started again if it was running: requests get 503 meanwhile, and
    jobs continue afterwards. Raises InvalidInput if the file exists, there is nothing to back up, or disk space is
    insufficient.
    """
    folder = _data_folder(settings)
    _refuse_impossible_backup(folder, path)
    created_at = utc_now().isoformat()
    about = {"created_at": created_at, "version": version}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as scratch:
        async with paused_server(folder, settings.cache_dir, settings.jar_mirror):
            parts = {name: folder / name for name in _PARTS if (folder / name).exists()}
            if SQLITE_FILE in parts:
                copy = Path(scratch, SQLITE_FILE)
                await asyncio.to_thread(copy_sqlite, parts[SQLITE_FILE], copy)
                parts[SQLITE_FILE] = copy
            size = await asyncio.to_thread(write_archive, path, parts, about)
    return Backup(str(path), created_at, version, SQLITE_FILE in parts, size)


async def restore_backup(settings: Settings, path: Path) -> Backup:
    """Restore a backup into a data folder without data.

    Raises InvalidInput if the folder has data, or the file is not a complete backup.
    """
    folder = _data_folder(settings)
    async with paused_server(folder, settings.cache_dir):
        if taken := [name for name in _WITHOUT_DATABASE if (folder / name).exists()]:
            raise InvalidInput(
                f"{folder} holds data ({', '.join(taken)}): set GRAPHMEM_DATA_DIR to another folder, or move it away."
            )
        with tempfile.TemporaryDirectory(dir=folder, prefix=".restore-") as scratch:
            about = await asyncio.to_thread(extract_archive, path, Path(scratch))
            restored = _move_parts(Path(scratch), folder)
    return Backup(str(path), about["created_at"], about["version"], SQLITE_FILE in restored, os.stat(path).st_size)


def _data_folder(settings: Settings) -> Path:
    if settings.neo4j_uri:
        raise ConfigurationError(
            "The database is not the embedded one: back it up with `neo4j-admin database dump`, or unset "
            "GRAPHMEM_NEO4J_URI."
        )
    return settings.data_dir.expanduser().resolve()


def _move_parts(source: Path, target: Path) -> list[str]:
    """Move the parts of a backup into place and return their names."""
    # The database last: without it, the folder can be restored into again.
    found = [name for name in reversed(_PARTS) if (source / name).exists()]
    for name in found:
        (source / name).replace(target / name)
    return found


def _refuse_impossible_backup(folder: Path, path: Path) -> None:
    if path.exists():
        raise InvalidInput(f"{path} exists: give the backup another name.")
    if not (folder / "neo4j" / "data").is_dir():
        raise InvalidInput(f"There is no data in {folder}: set GRAPHMEM_DATA_DIR to the folder to back up.")
    needed = sum(file.stat().st_size for name in _PARTS for file in _files_in(folder / name))
    free = free_bytes(path.absolute().parent)
    if free < needed:
        raise InvalidInput(
            f"The backup needs {to_megabytes(needed)} MB, but {path.absolute().parent} has {to_megabytes(free)} MB "
            "free: free disk space, or give another path."
        )


def _files_in(path: Path) -> list[Path]:
    return [file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
