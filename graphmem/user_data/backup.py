"""Backup and restoration of a data folder: the embedded Neo4j, the SQLite job store and the key of receipts."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from graphmem.jobs.database import SQLITE_FILE, copy_sqlite
from graphmem.neo4j.embedded.server import paused_server
from graphmem.runtime.disk_space import free_bytes, to_megabytes
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.user_data.backup_archive import extract_archive, write_archive
from graphmem.user_data.receipt_key import RECEIPT_KEY_FILE

_PARTS = ("neo4j/data", "neo4j/password", SQLITE_FILE, RECEIPT_KEY_FILE)
"""What a backup contains of a data folder, where it is there: files, and folders with all their files."""

_WITHOUT_DATABASE = ("neo4j/data", SQLITE_FILE)
"""What a folder must not contain for a backup to be restored into it."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: its file, when it was made and by which version of graphmem.

    `has_jobs` is false when the job store is in Postgres.
    """

    file: str
    created_at: str
    version: str
    has_jobs: bool
    bytes: int


async def create_backup(settings: Settings, path: Path, version: str) -> Backup:
    """Write a backup of the data folder to a new file.

    Neo4j is stopped while its files are copied, and started again if it was running: requests get 503 meanwhile, and
    jobs go on afterwards. Raises InvalidInput when the file exists, when there is nothing to back up, or when the disk
    lacks the space.
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
    """Put the data of a backup into a data folder that holds none.

    Raises InvalidInput when the folder holds data, and when the file is not a complete backup.
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
    # The database last: a folder without it can be restored into again.
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
