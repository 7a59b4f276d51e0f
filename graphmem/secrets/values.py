"""Secrets in JSON values: in their keys, in their values, and in numbers that are split over a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from graphmem.runtime.json_values import JSON
from graphmem.secrets.detection import SecretClass
from graphmem.secrets.scanner import find_secrets

_BARRIER = f"\n{8 * chr(0x1F)}\n"
"""Stands between texts that are scanned together: wider than the gap that any detector reads across."""

_SHORTEST = 5
"""Fewest characters of a secret without a label."""

_SHORTEST_LABELLED = 3
"""Fewest characters of a value for which its key matters."""

_LONGEST_LABELLED = 500
"""Most characters of a value for which its key matters: a longer one is a text with labels of its own."""

_LONGEST_LABEL = 60
"""Characters of a key that are read as a label."""

_MOST_LABELS = 200_000
"""Characters of labels in one value; further values are read without their keys."""

_PART_OF_NUMBER = re.compile(r"[A-Z0-9]{0,4}\d[A-Z0-9]{0,4}")
"""What a number may be split into: the items of `[4111, 1111, 1111, 1111]`."""

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]+")


def scan_value(value: JSON, *, region: str | None = None) -> set[SecretClass]:
    """Return the classes of secrets in the keys and values of a JSON value; a key is read as the label of its value."""
    return {finding.cls for text in _render(value) for finding in find_secrets(text, region=region)}


def _render(value: JSON) -> tuple[str, str]:
    """Return all keys and values as one text, and as another one with the last two keys before each short value."""
    plain: list[str] = []
    labelled = _LabelledTexts()
    pending: list[tuple[tuple[str, ...], JSON]] = [((), value)]
    while pending:
        keys, item = pending.pop()
        if isinstance(item, dict):
            plain += map(str, item)
            plain += _join_parts(item.values())
            pending += [((*keys[-1:], _to_words(str(name))), part) for name, part in item.items()]
        elif isinstance(item, list | tuple | set | frozenset):
            for joined in _join_parts(item):
                plain.append(joined)
                labelled.add(keys, joined.replace(",", ""))
            pending += [(keys, part) for part in item]
        elif (text := _scalar_to_text(item)) is not None:
            if len(text) >= _SHORTEST:
                plain.append(text)
            labelled.add(keys, text)
    return _BARRIER.join(plain), _BARRIER.join(labelled.texts)


class _LabelledTexts:
    """Values with their keys before them, as far as the keys, which a long list repeats, are not too many."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._room = _MOST_LABELS

    def add(self, keys: Sequence[str], text: str) -> None:
        if keys and self._room > 0 and _SHORTEST_LABELLED <= len(text) <= _LONGEST_LABELLED:
            label = " ".join(keys)
            self.texts.append(f"{label}: {text}")
            self._room -= len(label) + len(_BARRIER)


def _to_words(key: str) -> str:
    return _WORD_BOUNDARY.sub(" ", key[-_LONGEST_LABEL:])


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
