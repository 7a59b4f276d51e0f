"""Product profiles: additions of one product to a general assistant's memory, as data in `profiles/*.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from graphmem.runtime.errors import ConfigurationError
from graphmem.text.normalising import fold
from graphmem.text.text_cache import cache_by_text
from graphmem.text.word_lists import WordsByLanguage, all_words, compile_words


class PatternType(StrEnum):
    """Families of behaviour patterns."""

    QUERY_FREQUENCY = "query_frequency"
    SPENDING_CONCERN = "spending_concern"
    GOAL_FOCUS = "goal_focus"
    TIME_OF_DAY = "time_of_day"


GENERAL_PROFILE = "general"
"""Profile of tenants without a configured one; every other profile starts from its fields."""

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\W\d_])|\n+")
_MAX_SENTENCE = 400
"""Maximum characters of a sentence read at once, so that the patterns take time linear in the text length."""

_FOLDER = files("graphmem.tenants") / "profiles"
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


class _ProfilePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ConcernRule(_ProfilePart):
    """A topic that a user keeps asking about, counted for each category.

    A message counts if its intent contains `topic` and it names the category as the entity `entity`. A reply that
    contains `topic` gets `example`. In the texts, `{name}` stands for the category. In `example`, `{average}` stands
    for `average` if messages name amounts as the entity `amount_entity`; `{amount}` in it is their mean.
    """

    pattern_type: PatternType
    topic: str
    entity: str
    amount_entity: str
    window_days: int = Field(ge=1)
    min_messages: int = Field(ge=1)
    full_confidence_messages: int = Field(ge=1)
    description: str
    example: str
    average: str


class ContinuityPhrase(_ProfilePart):
    """A phrase that ties a reply to the conversation if a recent question had this intent."""

    intent: str
    phrase: str
    continued: str


class TemporaryStateRules(_ProfilePart):
    """Patterns of sentences that state a temporary condition, unless they match `lasting`.

    A sentence must also match `needed`. `{{name}}` in a pattern stands for the word list or part of that name.
    """

    needed: str
    lasting: str
    patterns: tuple[str, ...]
    parts: Mapping[str, str]
    words: Mapping[str, WordsByLanguage]

    def are_met_by(self, text: str) -> bool:
        """Return whether a sentence of the text states a temporary condition and nothing lasting."""
        return self.check(text)

    def remove_from(self, text: str) -> str:
        """Return a text without its sentences that state a temporary condition."""
        if not self.check(text):
            return text
        return " ".join(sentence for sentence in _SENTENCE_END.split(text) if not self.check(sentence)).strip()

    @cached_property
    def check(self) -> Callable[[str], bool]:
        """The function behind `are_met_by`: the compiled patterns, with a cache of recent sentences' results."""
        needed, lasting = self._compile(self.needed), self._compile(self.lasting)
        temporary = [self._compile(pattern) for pattern in self.patterns]

        @cache_by_text
        def is_temporary(sentence: str) -> bool:
            folded = fold(sentence).text
            return (
                needed.search(folded) is not None
                and not lasting.search(folded)
                and any(pattern.search(folded) for pattern in temporary)
            )

        return lambda text: any(map(is_temporary, _split_sentences(text)))

    def _compile(self, template: str) -> re.Pattern[str]:
        return re.compile(self._expand(template), re.IGNORECASE)

    def _expand(self, template: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._expand(self._definition(match[1])), template)

    def _definition(self, name: str) -> str:
        return self.parts[name] if name in self.parts else f"(?:{'|'.join(all_words(self.words[name]))})"


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        for start in range(0, len(sentence), _MAX_SENTENCE):
            yield sentence[start : start + _MAX_SENTENCE]


class ProductRules(_ProfilePart):
    """Rules by which a product derives more from conversations than a general assistant."""

    name: str
    topic_tags: frozenset[str] = Field(frozenset(), description="The tags that label a session; none: any tag does.")
    concerns: tuple[ConcernRule, ...] = ()
    continuity: tuple[ContinuityPhrase, ...] = ()
    technical_cues: tuple[str, ...] = Field((), description="Terms that show a technical style of asking.")
    glossary: Mapping[str, str] = Field({}, description="Terms explained to users who want simple words.")
    goal_words: WordsByLanguage = Field(description="Words that show that a reply is about a goal.")
    amount_contexts: Mapping[str, WordsByLanguage] = Field(
        {}, description="Possible subjects of an amount of money, by the words near it."
    )
    known_domains: tuple[str, ...] = Field(
        (), description="Domains that a question may clearly belong to, besides those of the user's memories."
    )
    leisure: tuple[str, ...] = Field(
        (), description="Topics after which a remark about a person or a pet may be welcome."
    )
    temporary_states: TemporaryStateRules
    momentary_states: TemporaryStateRules = Field(description="Temporary conditions that are saved only as feelings.")

    @cached_property
    def goal_pattern(self) -> re.Pattern[str]:
        """The pattern that finds a goal word."""
        return compile_words(all_words(self.goal_words))

    @cached_property
    def amount_context_patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """Possible subjects of an amount, each with a pattern for its words."""
        return [(name, compile_words(all_words(words))) for name, words in self.amount_contexts.items()]

    def session_tags(self, tags: Iterable[str]) -> list[str]:
        """Return the memory tags that label their session: the profile's tags, or all tags that no product owns."""
        unique = dict.fromkeys(tags)
        if self.topic_tags:
            return [tag for tag in unique if tag in self.topic_tags]
        return [tag for tag in unique if tag not in known_topic_tags()]


OTHER_TOPIC = "OTHER"
"""Topic tag of everything that fits no other tag."""


class TenantProfiles:
    """The profile of each tenant: one for everybody (`finance`), others for single tenants (`acme:finance`)."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """Parse the setting; raise ConfigurationError for an unknown profile or a second one for a tenant."""
        self._names: dict[str, str] = {}
        for entry in entries:
            tenant, _, name = entry.strip().rpartition(":")
            if name not in profile_names():
                raise ConfigurationError(
                    f"GRAPHMEM_PROFILES names the unknown profile {name!r}; the profiles are "
                    f"{', '.join(profile_names())}.",
                    retry_after=None,
                )
            if tenant in self._names:
                raise ConfigurationError(
                    f"GRAPHMEM_PROFILES names two profiles for {tenant or 'all tenants'}.", retry_after=None
                )
            self._names[tenant] = name

    def for_tenant(self, tenant: str) -> ProductRules:
        """Return the tenant's own profile, else the one for all tenants, else `general`."""
        return load_profile(self._names.get(tenant) or self._names.get("") or GENERAL_PROFILE)


@cache
def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir()))


@cache
def load_profile(name: str) -> ProductRules:
    """Return a profile: the fields of `general`, overridden by those in its own file."""
    return ProductRules.model_validate({**_read(GENERAL_PROFILE), **_read(name), "name": name})


@cache
def known_topic_tags() -> frozenset[str]:
    """Return the topic tags of all profiles; every tenant may use them."""
    return frozenset(tag for name in profile_names() for tag in _read(name).get("topic_tags", ()))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
