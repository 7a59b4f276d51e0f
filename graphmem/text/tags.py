"""Tags around texts that others wrote, and texts that cannot open or close them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Characters that are invisible to a reader and could hide a tag from the pattern.
_INVISIBLE = r"[\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]*"


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text with `&lt;` for each `<` that would open or close one of the tags."""
    if "<" not in text or not (names := frozenset(tags)):
        return text
    return _opening(names).sub("&lt;", text)


@lru_cache(maxsize=64)
def _opening(names: frozenset[str]) -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"<(?={_INVISIBLE}/?{_INVISIBLE}(?:{either})\b)", re.IGNORECASE)
