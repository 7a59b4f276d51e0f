"""The catalogue of Cypher queries: every query is a named entry of a file in `cypher/`.

An entry is `// name: close_rows(group, rows)`, one line that says what it does, then Cypher up to the next entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphmem.resources import cypher_root

_HEADER = re.compile(r"^// name: (?P<name>[a-z_]+)\((?P<params>[a-z_, ]*)\)\s*$")
_PARAMETER = re.compile(r"\$([a-z_]+)")
_PROSE = re.compile(r"//[^\n]*|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True, slots=True)
class Query:
    """One named query: its text, the parameters it takes and what it is for."""

    name: str
    text: str
    parameters: frozenset[str]
    purpose: str


class BadQueryFile(ValueError):
    """A file of queries does not keep the form of the catalogue."""


def parse(room: str, text: str) -> Iterator[Query]:
    """Yield the entries of one file as `room.name`; raise BadQueryFile when declared and used parameters differ."""
    blocks: list[tuple[str, frozenset[str], list[str]]] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            declared = frozenset(word.strip() for word in header["params"].split(",") if word.strip())
            blocks.append((header["name"], declared, []))
        elif blocks:
            blocks[-1][2].append(line)
        elif line.strip() and not line.startswith("//"):
            raise BadQueryFile(f"{room}: text before the first entry: {line!r}")
    for name, declared, lines in blocks:
        if not lines or not lines[0].startswith("// "):
            raise BadQueryFile(f"{room}.{name}: the line after the name must say what the query is for")
        body = "\n".join(lines[1:]).strip().rstrip(";")
        used = frozenset(_PARAMETER.findall(_PROSE.sub("", body)))
        if used != declared:
            raise BadQueryFile(f"{room}.{name}: declares {sorted(declared)} but uses {sorted(used)}")
        yield Query(f"{room}.{name}", body, declared, lines[0].removeprefix("// ").strip())


@cache
def catalogue(root: Path | None = None) -> Mapping[str, Query]:
    """Return every query by name, `room.query`."""
    queries: dict[str, Query] = {}
    for path in sorted(((root or cypher_root()) / "queries").glob("*.cypher")):
        for query in parse(path.stem, path.read_text("utf-8")):
            if query.name in queries:
                raise BadQueryFile(f"{query.name} is there twice")
            queries[query.name] = query
    return queries
