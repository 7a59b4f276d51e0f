"""Tags around texts that others wrote, and texts that cannot open or close them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

# Characters that are invisible to a reader and could hide a tag from the pattern.
_INVISIBLE = r"[\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]*"


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text with `&lt;` for each `<` that would open or close one of the tags."""
    if "<" not in text:
        return text
    return _pattern_of(frozenset(tags)).sub("&lt;", text)


@cache
def _pattern_of(tags: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(re.escape(tag) for tag in sorted(tags))
    return re.compile(rf"<(?={_INVISIBLE}/?{_INVISIBLE}(?:{names})\b)" if names else r"(?!)", re.IGNORECASE)
