"""The file of a backup: a tar archive whose last member, the manifest, lists the others with their checksums.

An archive that was cut off has no manifest, and is refused like one whose members differ from it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from graphmem.runtime.errors import InvalidInput

MANIFEST = "manifest.json"
"""Name of the member that lists the others."""

FORMAT = 1
"""Version of the format."""

_CHUNK = 1024**2


def write_archive(path: Path, files: Mapping[str, Path], about: Mapping[str, str]) -> int:
    """Write files and folders under the given names, with what the archive is `about`; return its size in bytes.

    Only the owner can read the archive, and it has its name once it is complete. Raises InvalidInput when the file
    exists or cannot be written.
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
    """Extract an archive into an empty folder and return what it is about.

    Raises InvalidInput for a file that is no complete archive of this format.
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
    """Reads a file and computes the checksum of what was read."""

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
        """The SHA-256 of what was read."""
        return self._digest.hexdigest()
