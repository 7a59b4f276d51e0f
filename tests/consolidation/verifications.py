"""Verifications as a careful model answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.consolidation.models import (
    Agreement,
    CarriedPart,
    StatementCheck,
    StatementQuote,
    Verification,
)
from graphmem.memories.fact import Fact

Json = dict[str, Any]


def quoting(facts: Sequence[Fact], merged: str, *restated: tuple[str, str]) -> Verification:
    """Quote each source and the whole merged text, and what is restated in a part of its own."""
    checks = []
    for fact in facts:
        own = [CarriedPart(words=words, result=result) for words, result in restated if words in fact.content]
        parts = [CarriedPart(words=fact.content, result=merged), *own]
        checks.append(StatementCheck(memory_id=fact.memory_id, parts=parts, agreement=Agreement.SAME))
    return Verification(one_fact=True, statements=checks)


def identifying(fact: Fact, words: str) -> Verification:
    """Quote from a statement that two names are one."""
    return Verification(identity=[StatementQuote(memory_id=fact.memory_id, words=words)])


def checked(number: int = 1, **fields: Any) -> Json:
    """Return the answer for one proposal."""
    empty: Json = {
        "one_fact": True,
        "statements": [],
        "added": [],
        "closing": [],
        "identity": [],
        "apart": [],
        "values": [],
    }
    return {"proposal": number, "differences": "", **empty, **fields}


def carried(statement: int, *parts: tuple[str, str], agreement: str = "same") -> Json:
    """Return the answer for one statement of a merge."""
    said = [{"words": words, "result": result} for words, result in parts]
    return {"statement": statement, "parts": said, "agreement": agreement}
