"""The catalogue of Cypher queries: every query is a named entry of a file in `cypher/queries/`.

An entry is `// name: close_rows(group, rows)`, comment lines that describe the query, then Cypher up to the next entry.
`{{name}}` includes a fragment from `cypher/fragments.cypher`, and in a parameter list stands for the fragment's
parameters; a fragment may include earlier ones. The invariants in `cypher/checks/` have the same format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import LiteralString, cast

from graphmem.runtime.files import cypher_root

_HEADER = re.compile(r"^// name: (?P<name>[a-z_]+)\((?P<params>[a-z_, {}]*)\)\s*$")
_FRAGMENT = re.compile(r"^// fragment: ([a-z_]+)\n// [^\n]+\n((?:(?!//).*\n?)*)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
_PARAMETER = re.compile(r"\$([a-z_]+)")
_VECTOR_PROPERTY = re.compile(r"(?<=\.)(?:fact|content|name)_embedding\b")
_VECTOR_INDEX = re.compile(r"\b(graphmem_(?:fact|message|entity))_embedding\b")
_WRITES = re.compile(r"\b(?:SET|CREATE|MERGE|DELETE|REMOVE)\b")
_COMMENTS_AND_STRINGS = re.compile(r"//[^\n]*|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its name `file.entry`, its Cypher, the parameters it takes and a description."""

    name: str
    text: LiteralString
    parameters: frozenset[str]
    description: str
    text_on_next: LiteralString
    """The Cypher that reads the next embedding model's vectors, see `on_next_vectors`."""

    @property
    def writes(self) -> bool:
        """Whether the query may change the graph."""
        return _WRITES.search(self.text) is not None


class QueryFileError(ValueError):
    """A file of queries or fragments does not follow the catalogue's format."""


def parse_queries(module: str, text: str, fragments: Mapping[str, str] = MappingProxyType({})) -> Iterator[Query]:
    """Yield the entries of one file as `module.name`.

    Raises QueryFileError for text outside an entry, a missing description, an unknown fragment, or declared parameters
    that differ from those used.
    """
    entries: list[tuple[str, list[str], list[str]]] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            parameters = [word.strip() for word in header["params"].split(",") if word.strip()]
            entries.append((f"{module}.{header['name']}", parameters, []))
        elif entries:
            entries[-1][2].append(line)
        elif line.strip() and not line.startswith("//"):
            raise QueryFileError(f"{module}: text before the first entry: {line!r}")
    for name, parameters, lines in entries:
        description = _leading_comment(lines)
        if not description:
            raise QueryFileError(f"{name}: the line after the name must describe the query")
        body = "\n".join(lines[len(description) :]).strip().rstrip(";")
        cypher = _insert_fragments(name, body, fragments)
        declared = frozenset(_expand_parameters(name, parameters, fragments))
        used = _parameters_in(cypher)
        if used != declared:
            raise QueryFileError(f"{name}: declares {sorted(declared)} but uses {sorted(used)}")
        on_next = cypher if _WRITES.search(cypher) or module == "vectors" else on_next_vectors(cypher)
        # The driver accepts literal text only; that of the package's own files is as fixed.
        literal, literal_on_next = cast("LiteralString", cypher), cast("LiteralString", on_next)
        yield Query(name, literal, declared, " ".join(description), literal_on_next)


def _expand_parameters(name: str, parameters: list[str], fragments: Mapping[str, str]) -> Iterator[str]:
    """Yield declared parameters, replacing `{{fragment}}` by the fragment's parameters."""
    for parameter in parameters:
        if _PLACEHOLDER.fullmatch(parameter):
            yield from _parameters_in(_insert_fragments(name, parameter, fragments))
        else:
            yield parameter


def _parameters_in(cypher: str) -> frozenset[str]:
    return frozenset(_PARAMETER.findall(_COMMENTS_AND_STRINGS.sub("", cypher)))


def on_next_vectors(cypher: str) -> str:
    """Return Cypher that uses the vectors of the next embedding model and their indexes instead of the current ones."""
    return _VECTOR_INDEX.sub(r"\1_next", _VECTOR_PROPERTY.sub("next_vector", cypher))


def _leading_comment(lines: list[str]) -> list[str]:
    comment: list[str] = []
    for line in lines:
        if not line.startswith("// "):
            break
        comment.append(line.removeprefix("// ").strip())
    return comment


def parse_fragments(text: str) -> dict[str, str]:
    """Return the fragments of a file by name, each with the earlier fragments that it includes."""
    fragments: dict[str, str] = {}
    for name, body in _FRAGMENT.findall(text):
        fragments[name] = _insert_fragments(f"fragment {name}", body.strip(), fragments)
    return fragments


def _insert_fragments(name: str, body: str, fragments: Mapping[str, str]) -> str:
    missing = set(_PLACEHOLDER.findall(body)) - fragments.keys()
    if missing:
        raise QueryFileError(f"{name}: there is no fragment {', '.join(sorted(missing))}")
    return _PLACEHOLDER.sub(lambda placeholder: fragments[placeholder[1]], body)


@cache
def load_queries(root: Path | None = None) -> Mapping[str, Query]:
    """Return every query by name; raise QueryFileError if two entries have the same name."""
    return _load_catalogue(root or cypher_root(), "queries")


@cache
def load_checks() -> Mapping[str, Query]:
    """Return the query of every invariant by name; its rows are the violations."""
    return _load_catalogue(cypher_root(), "checks")


def _load_catalogue(root: Path, folder: str) -> Mapping[str, Query]:
    fragments = parse_fragments((root / "fragments.cypher").read_text("utf-8"))
    queries: dict[str, Query] = {}
    for path in sorted((root / folder).rglob("*.cypher")):
        for query in parse_queries(path.stem, path.read_text("utf-8"), fragments):
            if query.name in queries:
                raise QueryFileError(f"{query.name} is defined twice")
            queries[query.name] = query
    return queries
