"""Secrets in JSON values: in their keys, in their values, and in numbers that are split over a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from graphmem.domain.secrets.models import SecretClass
from graphmem.domain.secrets.scanner import find_secrets

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None

_BARRIER = f"\n{12 * chr(0x1F)}\n"
"""Stands between texts that are scanned together: wider than the gap that any detector reads across."""

_SHORTEST_LABELLED = 3
"""Fewest characters of a value for which its key matters."""

_PART_OF_NUMBER = re.compile(r"[A-Z0-9]{0,4}\d[A-Z0-9]{0,4}")
"""What a number may be split into: the items of `[4111, 1111, 1111, 1111]`."""

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]+")


def scan_value(value: JSON, *, region: str | None = None) -> set[SecretClass]:
    """Return the classes of secrets in the keys and values of a JSON value; a key is read as the label of its value."""
    return {finding.cls for text in _render(value) for finding in find_secrets(text, region=region)}


def _render(value: JSON) -> tuple[str, str]:
    """Return all keys and values as one text, and as another one with the last two keys before each value."""
    plain: list[str] = []
    labelled: list[str] = []
    pending: list[tuple[tuple[str, ...], JSON]] = [((), value)]
    while pending:
        keys, item = pending.pop()
        if isinstance(item, dict):
            plain += map(str, item)
            plain += _join_parts(item.values())
            pending += [((*keys[-1:], _WORD_BOUNDARY.sub(" ", str(name))), part) for name, part in item.items()]
        elif isinstance(item, list | tuple | set | frozenset):
            joined = list(_join_parts(item))
            plain += joined
            labelled += [f"{' '.join(keys)}: {text.replace(',', '')}" for text in joined if keys]
            pending += [(keys, part) for part in item]
        elif (text := _scalar_to_text(item)) is not None:
            plain.append(text)
            if keys and len(text) >= _SHORTEST_LABELLED:
                labelled.append(f"{' '.join(keys)}: {text}")
    return _BARRIER.join(plain), _BARRIER.join(labelled)


def _join_parts(items: Iterable[JSON]) -> Iterator[str]:
    """Yield the numbers that consecutive items make together."""
    texts = (_scalar_to_text(item) or "" for item in items)
    for is_part, group in groupby(texts, key=lambda text: _PART_OF_NUMBER.fullmatch(text) is not None):
        parts = list(group)
        if is_part and len(parts) > 1:
            yield ", ".join(parts)


def _scalar_to_text(item: JSON) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, bool) or not isinstance(item, int | float):
        return None
    return str(int(item)) if isinstance(item, int) or item.is_integer() else None
