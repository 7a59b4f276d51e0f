"""Arguments of the form KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.runtime.errors import InvalidInput


def parse_pairs(pairs: Sequence[str], *, example: str) -> dict[str, str]:
    """Return `KEY=VALUE` pairs as a dict; raise InvalidInput, with an example, for one without `=`."""
    for pair in pairs:
        if "=" not in pair:
            raise InvalidInput(f"{pair!r} is not KEY=VALUE: write {example}.")
    return dict(pair.split("=", 1) for pair in pairs)
