"""Questions about conversations: read from files and drawn evenly over categories and conversations. Pure.

`benches/conversations.py` describes the files. A question has `answer`, and `category` (a number that `categories` of
the file names) or `ability`; `rubric` lists what an answer must contain.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from benches.conversations import ANSWERABLE_CATEGORIES

SEED = 20261123
"""Seed of the order in which questions are drawn."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question about a conversation, with its expected answer and the messages that support it."""

    id: str
    source: str
    conversation: str
    text: str
    category: str
    expected: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of conversations; `conversations` are its entries, of which only those with facts if any has some."""

    name: str
    conversations: Sequence[dict[str, Any]]
    questions: Sequence[AskedQuestion]


def read_file(path: Path) -> SourceFile:
    """Return the conversations of a file and the questions that can be asked about them."""
    data = json.loads(path.read_text("utf-8"))
    name = path.parent.name if path.stem == "dev" else path.stem
    names = {int(key): value for key, value in data.get("categories", {}).items()}
    entries = [entry for entry in data["conversations"] if entry.get("facts")] or data["conversations"]
    questions = [
        _to_question(f"{name}/{entry['id']}/{number}", name, entry["id"], asked, names)
        for entry in entries
        for number, asked in enumerate(entry["qa"])
        if _is_answerable(asked)
    ]
    return SourceFile(name, entries, questions)


def draw(questions: Iterable[AskedQuestion], count: int, seed: int = SEED) -> list[AskedQuestion]:
    """Return up to `count` questions, spread evenly over categories and within these over conversations."""
    shuffled = sorted(questions, key=lambda question: question.id)
    random.Random(seed).shuffle(shuffled)
    by_category: dict[str, dict[str, list[AskedQuestion]]] = defaultdict(lambda: defaultdict(list))
    for question in shuffled:
        by_category[question.category][question.conversation].append(question)
    within = [_take_turns(by_category[category].values()) for category in sorted(by_category)]
    return sorted(_take_turns(within)[:count], key=lambda question: question.id)


def _take_turns(groups: Iterable[Sequence[AskedQuestion]]) -> list[AskedQuestion]:
    """Return the first of every group, then the second of every group, and so on."""
    return [question for question in chain.from_iterable(zip_longest(*groups)) if question is not None]


def _is_answerable(asked: dict[str, Any]) -> bool:
    """Return whether a question can be asked: a numbered one only with evidence and of an answerable category."""
    return "category" not in asked or (asked["category"] in ANSWERABLE_CATEGORIES and bool(asked["evidence"]))


def _to_question(
    question_id: str, source: str, conversation: str, asked: dict[str, Any], names: dict[int, str]
) -> AskedQuestion:
    category = names[asked["category"]] if "category" in asked else asked["ability"].replace("_", " ")
    rubric = "".join(f"\n- {line}" for line in asked.get("rubric", ()))
    return AskedQuestion(
        id=question_id,
        source=source,
        conversation=conversation,
        text=asked["question"],
        category=category,
        expected=f"{asked.get('answer', '')}{rubric}".strip(),
        evidence=frozenset(asked["evidence"]),
    )
