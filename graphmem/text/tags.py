"""Tags around texts that others wrote, and texts that cannot open or close them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Characters that are invisible to a reader and could hide a tag from the pattern.
_INVISIBLE = r"[\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]*"


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text with `&lt;` for each `<` that would open or close one of the tags."""
    names = "|".join(re.escape(tag) for tag in sorted(tags))
    if not names:
        return text
    return re.sub(rf"<(?={_INVISIBLE}/?{_INVISIBLE}(?:{names})\b)", "&lt;", text, flags=re.IGNORECASE)
