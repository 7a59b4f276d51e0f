"""No entity type is a label that graphmem uses itself."""

from __future__ import annotations

import re

import pytest

from graphmem.memories.entity import EntityIn
from graphmem.neo4j.schema import RESERVED_LABELS
from graphmem.runtime.files import cypher_root


def test_every_label_in_queries_is_reserved() -> None:
    texts = (path.read_text("utf-8") for path in cypher_root().rglob("*.cypher") if path.parent.name != "explore")
    used = {label for text in texts for label in re.findall(r"\(\w*:([A-Z]\w+)", text)}
    assert used <= RESERVED_LABELS


@pytest.mark.parametrize(
    ("requested", "stored"), [("User", "Person"), ("api key", "Thing"), ("Session", "Thing"), ("pet", "Pet")]
)
def test_reserved_entity_type_is_replaced(requested: str, stored: str) -> None:
    assert EntityIn(name="x", type=requested).type == stored
