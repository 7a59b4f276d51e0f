"""Conversations with questions about them, whatever file they come from, and which of the questions are asked. Pure."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain, groupby, zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SEED = 20261123
"""Seed of the order in which questions are drawn."""


class Benchmark(StrEnum):
    """A set of conversations with published rules of judging; `other` is a file of one's own."""

    LOCOMO = "locomo"
    LONGMEMEVAL = "longmemeval"
    BEAM = "beam"
    OTHER = "other"


ADDRESSES: Mapping[Benchmark, str] = {
    Benchmark.LOCOMO: "https://github.com/snap-research/locomo (data/locomo10.json, CC BY-NC 4.0)",
    Benchmark.LONGMEMEVAL: "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned (…_s_cleaned.json)",
    Benchmark.BEAM: "https://github.com/mohammadtavakoli78/BEAM (a folder such as chats/100K)",
}
"""Where the files of a benchmark are to be had; none is a part of this package."""


class _ReadModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class BenchmarkMessage(_ReadModel):
    """A message of a conversation."""

    id: str
    session: str
    role: str
    content: str
    name: str | None = None
    timestamp: datetime | None = None

    @property
    def speaker(self) -> str:
        """The name of the speaker, or else the role."""
        return self.name or self.role


class GivenFact(_ReadModel):
    """A fact that a file states of a conversation, for runs that extract nothing; `memory` has fields of `MemoryIn`."""

    memory: dict[str, Any]
    message_ids: list[str]


class BenchmarkConversation(_ReadModel):
    """A conversation in the order in which it was held; it becomes a user of its own."""

    id: str
    messages: list[BenchmarkMessage]
    facts: list[GivenFact] = Field(default_factory=list)

    def sessions(self) -> list[tuple[str, list[BenchmarkMessage]]]:
        """Return the messages of each session, in order."""
        return [(key, list(group)) for key, group in groupby(self.messages, key=lambda message: message.session)]


class AskedQuestion(_ReadModel):
    """A question about a conversation; `evidence` are the messages that answer it.

    `criteria` are what an answer is judged by one by one. For a question that nothing answers, `expected` may be what
    it tempts to answer. `asked_at` is the day of the question.
    """

    id: str
    conversation: str
    text: str
    category: str
    expected: str
    evidence: list[str] = Field(default_factory=list)
    criteria: list[str] = Field(default_factory=list)
    is_unanswerable: bool = False
    asked_at: str | None = None


class BenchmarkData(_ReadModel):
    """The conversations of a file and the questions about them."""

    benchmark: Benchmark
    name: str
    conversations: list[BenchmarkConversation]
    questions: list[AskedQuestion]

    def limit(self, conversations: Sequence[str] | int | None, questions: int | None) -> BenchmarkData:
        """Return the conversations of these ids, or the first of them, and up to so many questions about them.

        Conversations without a question among them are left out.
        """
        kept = self.conversations
        if isinstance(conversations, int):
            kept = kept[:conversations]
        elif conversations is not None:
            kept = [conversation for conversation in kept if conversation.id in conversations]
        ids = {conversation.id for conversation in kept}
        asked = [question for question in self.questions if question.conversation in ids]
        if questions is not None:
            asked = draw_questions(asked, questions)
        used = {question.conversation for question in asked}
        return self.model_copy(
            update={"conversations": [kept_one for kept_one in kept if kept_one.id in used], "questions": asked}
        )


def draw_questions(questions: Iterable[AskedQuestion], count: int, seed: int = SEED) -> list[AskedQuestion]:
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


def single_line(text: str) -> str:
    """Return a text with its white space as single spaces."""
    return " ".join(text.split())
