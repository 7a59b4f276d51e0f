"""The catalogue of Cypher queries: every query is a named entry of a file in `cypher/`.

An entry is `// name: close_rows(group, rows)`, one line that says what it does, then Cypher up to the next entry.
`{{name}}` in it stands for the fragment of that name in `cypher/fragments.cypher`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from graphmem.resources import cypher_root

_HEADER = re.compile(r"^// name: (?P<name>[a-z_]+)\((?P<params>[a-z_, ]*)\)\s*$")
_FRAGMENT = re.compile(r"^// fragment: ([a-z_]+)\n// [^\n]+\n((?:(?!//).*\n?)*)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
_PARAMETER = re.compile(r"\$([a-z_]+)")
_COMMENTS_AND_STRINGS = re.compile(r"//[^\n]*|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True, slots=True)
class Query:
    """One named query: its text, the parameters it takes and what it is for."""

    name: str
    text: str
    parameters: frozenset[str]
    description: str


class QueryFileError(ValueError):
    """A file of queries does not keep the form of the catalogue."""


def parse_queries(module: str, text: str, fragments: Mapping[str, str] = MappingProxyType({})) -> Iterator[Query]:
    """Yield the entries of one file as `module.name`; raise QueryFileError when declared and used parameters differ."""
    blocks: list[tuple[str, frozenset[str], list[str]]] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            declared = frozenset(word.strip() for word in header["params"].split(",") if word.strip())
            blocks.append((header["name"], declared, []))
        elif blocks:
            blocks[-1][2].append(line)
        elif line.strip() and not line.startswith("//"):
            raise QueryFileError(f"{module}: text before the first entry: {line!r}")
    for name, declared, lines in blocks:
        if not lines or not lines[0].startswith("// "):
            raise QueryFileError(f"{module}.{name}: the line after the name must say what the query is for")
        body = _insert_fragments(f"{module}.{name}", "\n".join(lines[1:]).strip().rstrip(";"), fragments)
        used = frozenset(_PARAMETER.findall(_COMMENTS_AND_STRINGS.sub("", body)))
        if used != declared:
            raise QueryFileError(f"{module}.{name}: declares {sorted(declared)} but uses {sorted(used)}")
        yield Query(f"{module}.{name}", body, declared, lines[0].removeprefix("// ").strip())


def parse_fragments(text: str) -> dict[str, str]:
    """Return the fragments of a file by name."""
    return {name: body.strip() for name, body in _FRAGMENT.findall(text)}


def _insert_fragments(name: str, body: str, fragments: Mapping[str, str]) -> str:
    missing = set(_PLACEHOLDER.findall(body)) - fragments.keys()
    if missing:
        raise QueryFileError(f"{name}: there is no fragment {', '.join(sorted(missing))}")
    return _PLACEHOLDER.sub(lambda found: fragments[found[1]], body)


@cache
def load_queries(root: Path | None = None) -> Mapping[str, Query]:
    """Return every query by name, `module.query`."""
    folder = root or cypher_root()
    fragments = parse_fragments((folder / "fragments.cypher").read_text("utf-8"))
    queries: dict[str, Query] = {}
    for path in sorted((folder / "queries").glob("*.cypher")):
        for query in parse_queries(path.stem, path.read_text("utf-8"), fragments):
            if query.name in queries:
                raise QueryFileError(f"{query.name} is there twice")
            queries[query.name] = query
    return queries
