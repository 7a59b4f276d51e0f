"""Which sentences that a model wrote of an entity stand in the facts that they cite. Pure.

A sentence is dropped as a whole: a profile that says less is right, one that says more is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphmem.consolidation.text_checks import find_untold
from graphmem.memories.entity_profile import ProfileSentence
from graphmem.memories.names import mentions_name

MIN_SENTENCES = 2
"""Sentences below which there is no profile: a single one says no more than a fact does."""

MAX_SENTENCES = 8
"""Most sentences of a profile; the first are kept."""

MAX_SENTENCE_LENGTH = 500
"""Longest sentence of a profile, in characters."""


@dataclass(frozen=True, slots=True)
class CitableFact:
    """A fact as a prompt shows it: its statement and the days between which it holds."""

    memory_id: str
    content: str
    days: str = ""

    @property
    def text(self) -> str:
        """All that a sentence may take from it."""
        return f"{self.content} {self.days}"


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """What the sentences about one entity are compared with.

    `names` are those of the entity, `other_names` those of each other entity that the facts name; `has_secret` says
    whether a text holds what must not be stored.
    """

    facts: Sequence[CitableFact]
    names: Sequence[str]
    other_names: Sequence[Sequence[str]]
    has_secret: Callable[[str], bool]

    def keep_supported(self, answered: Iterable[tuple[str, Sequence[int]]]) -> list[ProfileSentence]:
        """Return the sentences, given with the numbers of facts, that cite known facts and say nothing else."""
        kept: list[ProfileSentence] = []
        for content, numbers in answered:
            content, numbers = " ".join(content.split()), list(dict.fromkeys(numbers))
            if self.find_problem(content, numbers) is None:
                memory_ids = [self.facts[number - 1].memory_id for number in numbers]
                kept.append(ProfileSentence(content=content, memory_ids=memory_ids))
        return kept[:MAX_SENTENCES]

    def find_problem(self, content: str, numbers: Sequence[int]) -> str | None:
        """Return why a sentence is not part of a profile, or None."""
        if not content or len(content) > MAX_SENTENCE_LENGTH:
            return "it is empty or too long"
        if not numbers or not all(0 < number <= len(self.facts) for number in numbers):
            return "it cites no fact, or one that was not shown"
        if self.has_secret(content):
            return "it holds a secret"
        sources = [self.facts[number - 1].text for number in numbers]
        for names in self.other_names:
            named = next((name for name in names if mentions_name(content, name)), None)
            if named and not any(mentions_name(source, name) for source in sources for name in names):
                return f"no source names {named}"
        return find_untold(sources, content, self.names)
