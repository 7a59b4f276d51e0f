"""Answers of a model over everything that its prompt lists, and some things that it does not, all within the schema."""

from __future__ import annotations

import random
import re
from typing import Any

from torture.hostile_values import TEXTS

Json = dict[str, Any]

CONTENTS = [
    "Ada lives in Lund",
    "Ada lives in Oslo",
    "Ada works at Acme",
    "Ada likes green tea",
    "Paul lives in Rome",
    "Paul Smith is Ada's boss",
    "Calvin moves to Lund in May",
    "Calvin's dad is a pilot",
    "Ada plans a trip to Rome with Calvin",
]
"""Statements, several of which say something of one subject by one relation."""

NAMES = [
    "Ada",
    "Paul",
    "Paul Smith",
    "Paul Jones",
    "Paul (boss)",
    "Calvin",
    "Calvin's dad",
    "Lund",
    "Rome",
    "Acme",
    "User",
]
PREDICATES = ["LIVES_IN", "WORKS_AT", "LIKES", "PLANS", "KNOWS", "", "1", "A" * 90]
DATES = [
    None,
    "2019",
    "2024-03",
    "2026-05-01",
    "2026-05-01T09:30",
    "2031-01-01",
    "0001",
    "9999-12-31",
    "2026-02-30",
    "soon",
]
TYPES = [
    "fact",
    "preference",
    "plan",
    "open_loop",
    "feeling",
    "inferred_interest",
    "recommendation",
    "conversation_topic",
]
ACTIONS = ["insert", "reinforce", "supersede", "delete", "ignore"]
ODD_TEXTS = [*TEXTS, "a\x00b", "\x00", "x" * 301, "Ada\nlives\nin Lund"]


def answer_extraction(prompt: str, chance: random.Random) -> Json:
    """Return an answer of the first call: statements over the names that are known, among odd ones."""
    names = [*NAMES, *_known_names(prompt)]
    return {
        "skip": chance.random() < 0.03,
        "reason": _text(chance, ["", "small talk"]),
        "keywords": [_text(chance, CONTENTS) for _ in range(chance.randint(0, 3))],
        "names": [
            {"name": _text(chance, names), "others": [_text(chance, names) for _ in range(chance.randint(0, 3))]}
            for _ in range(chance.randint(0, 3))
        ],
        "candidates": [_candidate(names, prompt, chance) for _ in range(chance.randint(1, 6))],
        "summarize": False,
        "turns": [
            {"message": _number(chance, 2), "intent": _text(chance, ["ask"]), "entities": [_named_value(chance)]}
            for _ in range(chance.randint(0, 2))
        ],
    }


def answer_reconciliation(prompt: str, chance: random.Random) -> Json:
    """Return an answer of the second call: decisions on statements, memories and names, listed or not, also twice."""
    statements, memories = _count(prompt, "new_statements"), _count(prompt, "known_memories")
    names, entities = _count(prompt, "unclear_names"), _count(prompt, "known_entities")
    contents = [*CONTENTS, *_entries(prompt, "known_memories")]
    return {
        "decisions": [
            {
                "new": number,
                "action": chance.choice(ACTIONS),
                "known": [_number(chance, memories) for _ in range(chance.randint(0, 4))],
                "ended_at": chance.choice(DATES),
                "remaining": [{"known": _number(chance, memories), "content": _text(chance, contents)}]
                if chance.random() < 0.3
                else chance.choice([None, []]),
                "reason": _text(chance, ["moved"]),
            }
            for number in (
                *(number for number in range(1, statements + 1) if chance.random() < 0.9),
                *(_number(chance, statements) for _ in range(chance.randint(0, 2))),
            )
        ],
        "same_entities": [
            {"name": _number(chance, names), "known": chance.choice([None, *[_number(chance, entities)] * 3])}
            for _ in range(names + chance.randint(0, 2))
        ],
    }


def find_statement(prompt: str, content: str) -> int | None:
    """Return the number of a new statement in the prompt of the second call."""
    entries = _entries(prompt, "new_statements")
    return next((number for number, entry in enumerate(entries, start=1) if content in entry), None)


def _candidate(names: list[str], prompt: str, chance: random.Random) -> Json:
    content = _text(chance, [*CONTENTS, *_entries(prompt, "conversation")])
    # Most statements are about whom they name first: only then may they repeat, end or replace what is known.
    is_plain = content in CONTENTS and chance.random() < 0.7
    return {
        "content": content,
        "type": chance.choice(TYPES[:4] * 4 + TYPES),
        "subject": _named([content.split()[0].removesuffix("'s")] if is_plain else names, chance),
        "predicate": chance.choice(PREDICATES[:5] * 4 + PREDICATES),
        "object": _named(names, chance) if chance.random() < 0.7 else None,
        "entities": [_named(names, chance) for _ in range(chance.randint(0, 2))],
        "valid_at": chance.choice(DATES),
        "invalid_at": chance.choice([None, None, *DATES]),
        "confidence": chance.choice([0.9, 0.9, 0.9, 0.9, 0.0, 1.0, -3.0, 1e300]),
        "importance": chance.choice([0.5, 0.0, 7.0]),
        "tags": [_text(chance, ["OTHER", "temporary"])],
        "domain": _text(chance, ["travel"]) if chance.random() < 0.3 else None,
        "single_valued": chance.random() < 0.6,
        "retracts": chance.random() < 0.15,
        "messages": [1, _number(chance, 2)],
    }


def applicable_candidate(content: str) -> Json:
    """Return a statement about the user, of the first message, that nothing known can prevent from being saved."""
    return {
        "content": content,
        "type": "fact",
        "subject": {"name": "User", "type": "Person"},
        "predicate": "NOTES",
        "object": None,
        "entities": [],
        "valid_at": None,
        "invalid_at": None,
        "confidence": 0.9,
        "importance": 0.5,
        "tags": ["OTHER"],
        "domain": None,
        "single_valued": False,
        "retracts": False,
        "messages": [1],
    }


def _named(names: list[str], chance: random.Random) -> Json:
    return {"name": _text(chance, names), "type": _text(chance, ["Person", "Person", "Place", ""])}


def _named_value(chance: random.Random) -> Json:
    return {"type": _text(chance, ["city"]), "value": _text(chance, NAMES)}


def _text(chance: random.Random, usual: list[str]) -> str:
    return chance.choice(ODD_TEXTS) if chance.random() < 0.07 else chance.choice(usual)


def _number(chance: random.Random, count: int) -> int:
    """Return a number from 1 to `count`, or now and then one that was not listed."""
    if count == 0 or chance.random() < 0.1:
        return chance.choice([0, -1, count + 1, 10**12])
    return chance.randint(1, count)


def _entries(prompt: str, section: str) -> list[str]:
    """Return the numbered entries of a section, without what is in brackets at their end."""
    found = re.search(f"<{section}>\n(.*?)\n?</{section}>", prompt, re.DOTALL)
    lines = found[1].split("\n") if found else []
    return [re.sub(r" \([^()]*\)$", "", line.partition("] ")[2]) for line in lines if re.match(r"\[\d+\] ", line)]


def _count(prompt: str, section: str) -> int:
    return len(_entries(prompt, section))


def _known_names(prompt: str) -> list[str]:
    found = re.search("<known_names>\n(.*?)\n?</known_names>", prompt, re.DOTALL)
    return [line.partition(" (")[0] for line in found[1].split("\n") if line.strip()] if found else []
