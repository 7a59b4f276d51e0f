"""The file of a backup: complete, unchanged, and confined to its folder."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.backup import MANIFEST, extract_archive, write_archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of a folder and a file."""
    (tmp_path / "data" / "store").mkdir(parents=True)
    (tmp_path / "data" / "store" / "nodes").write_bytes(b"nodes" * 1000)
    (tmp_path / "password").write_text("secret")
    files = {"neo4j/data": tmp_path / "data", "neo4j/password": tmp_path / "password"}
    write_archive(tmp_path / "archive", files, {"version": "1"})
    return tmp_path / "archive"


def test_an_archive_contains_what_was_written(archive: Path, tmp_path: Path) -> None:
    assert extract_archive(archive, tmp_path / "out") == {"version": "1"}
    assert (tmp_path / "out" / "neo4j" / "data" / "store" / "nodes").read_bytes() == b"nodes" * 1000
    assert (tmp_path / "out" / "neo4j" / "password").read_text() == "secret"


def test_an_existing_file_is_not_replaced(archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(InvalidInput, match="exists"):
        write_archive(archive, {}, {})
    assert archive.read_bytes() == before


def test_a_damaged_or_incomplete_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole.replace(b"nodesnodes", b"nodesNODES", 1))
    with pytest.raises(InvalidInput, match="damaged"):
        extract_archive(archive, tmp_path / "damaged")
    archive.write_bytes(whole[:6000])
    with pytest.raises(InvalidInput, match="backup"):
        extract_archive(archive, tmp_path / "short")
    archive.write_bytes(b"no archive")
    with pytest.raises(InvalidInput, match="backup"):
        extract_archive(archive, tmp_path / "none")


@pytest.mark.parametrize("name", ["../outside", "/outside", "neo4j/../../outside"])
def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "archive", "w") as archive:
        for member, content in ((name, b"x"), (MANIFEST, json.dumps({"format": 1, "files": {}}).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    with pytest.raises(InvalidInput, match="contains the path"):
        extract_archive(tmp_path / "archive", tmp_path / "out")
    assert not (tmp_path / "outside").exists()
