"""Violations that a part has found, each with what reproduces it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_PER_KIND = 3
"""Examples that are kept of each kind of violation."""


@dataclass
class Findings:
    """Counts cases and violations; several threads may add to it."""

    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_case(self) -> None:
        """Count one case that was tried."""
        with self._lock:
            self.cases += 1

    def add(self, kind: str, example: str) -> None:
        """Add a violation; `example` says how to see it again."""
        with self._lock:
            self.kinds[kind] += 1
            kept = self.examples.setdefault(kind, [])
            if len(kept) < MAX_PER_KIND:
                kept.append(example)

    @property
    def total(self) -> int:
        """How many violations there were."""
        return self.kinds.total()

    def report(self) -> str:
        """Return every kind with its examples in Markdown; empty without violations."""
        lines: list[str] = []
        for kind, number in self.kinds.most_common():
            lines += [f"- {kind}: {number}", *(f"  - `{example}`" for example in self.examples[kind])]
        return "\n".join(lines)


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two values, each difference with its path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from differences(before.get(key), after.get(key), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif before != after:
        yield f"{path}: {str(before)[:200]} → {str(after)[:200]}"
