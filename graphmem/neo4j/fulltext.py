"""The text fields of the full-text indexes that `cypher/migrations` creates."""

from __future__ import annotations

FACT_TEXT_FIELDS = ("fact", "search_text")
"""Fields of `graphmem_fact_words`."""

MESSAGE_TEXT_FIELDS = ("content", "speaker")
"""Fields of `graphmem_message_words`."""

NAME_TEXT_FIELDS = ("name", "alias_text")
"""The fields of `node_name_and_summary` that hold an entity's names."""
