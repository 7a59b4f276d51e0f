"""Tags of memories and sessions."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from graphmem.runtime.field_types import deduplicate
from graphmem.runtime.text import StorableText
from graphmem.tenants.profiles import known_topic_tags

MAX_TAG_LENGTH = 64
"""Longest tag, in characters."""

TEMPORARY_TAG = "temporary"
"""Tag of memories that maintenance ends when their time is over."""

FEEDBACK_TAG = "feedback"
"""Tag of memories that maintenance offers to consolidation again and again."""

MAINTENANCE_TAGS = frozenset({TEMPORARY_TAG, FEEDBACK_TAG})
"""Tags that say what maintenance does with a memory, and nothing of its topic."""

_TAG_PATTERN = re.compile(r"^\w[\w:./-]*$", re.UNICODE)


def parse_tag(value: str) -> str:
    """Return a tag in its stored form: lower case with dashes for spaces, the topic tags of any profile in capitals.

    A leading `#` is dropped.

    Raises ValueError for text that cannot be a tag.
    """
    tag = "-".join(value.strip().removeprefix("#").split())
    topic_tag = tag.upper().replace("-", "_")
    if topic_tag in known_topic_tags():
        return topic_tag
    tag = tag.lower()
    if len(tag) > MAX_TAG_LENGTH or not _TAG_PATTERN.match(tag):
        raise ValueError(f"is not a tag: use letters, digits, '-', '_', ':', up to {MAX_TAG_LENGTH} characters")
    return tag


Tag = Annotated[StorableText, AfterValidator(parse_tag)]
"""A tag in its stored form."""

Tags = Annotated[list[Tag], Field(max_length=50), AfterValidator(deduplicate)]
"""Up to 50 different tags."""
