"""Selects memories for a question by domain and session, and excerpts of long messages. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from graphmem.context import cues
from graphmem.conversations.session import Message, MessageRole
from graphmem.memories.memory import Memory, MemoryType, Scope
from graphmem.search.models import MessageHit, SearchHit
from graphmem.text.normalising import fold_accents, normalise
from graphmem.text.text_cache import cache_by_text
from graphmem.text.token_counts import count_tokens, truncate_to_tokens
from graphmem.text.tokenising import split_words, stem_all, stem_prefix
from graphmem.text.word_lists import WESTERN_LANGUAGES, WRITTEN_LANGUAGES, load_words

CLEAR_MATCH_SCORE = 0.65
"""Minimum cosine similarity, as (1 + cos) / 2, at which a memory means the same as the question."""

TOPIC_SCORE = 0.59
"""Minimum score for a question to be about a memory's domain; greetings and small talk stay below 0.58."""

TOPIC_LEAD = 0.05
"""Minimum lead over the score of every other domain, and over the score of unrelated texts, which is 0.5."""

SAME_TOPIC_SCORE = 0.62
"""Minimum cosine similarity, as (1 + cos) / 2, of a wish for something else and the memory that it replaces."""

MAYBE_SAME_TOPIC_SCORE = 0.58
"""Minimum similarity at which the wish may replace the memory."""

HOME = "LIVES_IN"
"""The predicate of a slot whose value is a place."""

PLACE, OTHER_KINDS = "a town", ("software", "field of work", "business")
"""Texts to which the value of a home is compared by meaning: people also move to another department or program."""

OTHER_KIND_LEAD = 0.15
"""Minimum lead of another kind over a place at which the value may be no place."""

MIN_ROOT_LENGTH = 4
"""Minimum letters with which a word and a domain must both begin."""

MAX_SUFFIX_LENGTH = 4
"""Maximum letters by which one of them may be longer, as "cooking" is than "cook"."""

MAX_ENDING_LENGTH = 3
"""Maximum letters by which forms of a word differ at the end, as "guido" and "guida" do."""

_CLAUSE_END = re.compile(r"[,;:]\s")
_TOKEN = re.compile(r"\w[\w.-]*")

_WORDS = load_words(*WESTERN_LANGUAGES)
_STOP_WORDS = _WORDS.stop_words | _WORDS.topicless_words
_FUNCTION_WORDS = load_words(*WRITTEN_LANGUAGES).function_words | frozenset.intersection(*cues.SLOT_WORDS.values())
"""Words that say nothing about a statement's relation, or about anybody in it besides the user."""


@cache_by_text
def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    return frozenset(_find_content_words(text).values())


def content_word_prefixes(text: str) -> list[str]:
    """Return the initial letters shared by the forms of each content word, distinct and in order."""
    return list(dict.fromkeys(map(stem_prefix, _find_content_words(text))))


def refers_to_past_session(question: str) -> bool:
    """Return whether a question refers to an earlier conversation."""
    return cues.PAST_SESSION.search(question) is not None


def find_ticket_ids(question: str) -> list[str]:
    """Return the ids of tickets that a question refers to, in lower case: 1234 for "issue #1234"."""
    matches = cues.TICKET.finditer(question)
    return list(dict.fromkeys((match["marked"] or match["named"]).lower() for match in matches))


def match_domains(question: str, requested: Collection[str], hits: Iterable[SearchHit]) -> set[str]:
    """Return the domains a question belongs to: the requested ones, else those it names and that of its clear topic.

    The clear topic is the domain of the nearest domain memory with a score of at least `CLEAR_MATCH_SCORE`, or of at
    least `TOPIC_SCORE` if no memory of another domain is nearly as close.
    """
    if requested:
        return set(requested)
    words = split_words(normalise(question))
    domains: set[str] = set()
    nearest: dict[str, float] = {}
    for hit in hits:
        domain = hit.memory.domain
        if domain is None or hit.memory.scope is not Scope.DOMAIN:
            continue
        if all(any(_begin_alike(part, word) for word in words) for part in split_words(normalise(domain))):
            domains.add(domain)
        nearest[domain] = max(nearest.get(domain, 0.0), semantic_score(hit))
    (best, score), (_, next_score) = sorted([*nearest.items(), ("", 0.0), ("", 0.0)], key=lambda pair: -pair[1])[:2]
    is_clear = score >= CLEAR_MATCH_SCORE or (score >= TOPIC_SCORE and score - max(next_score, 0.5) >= TOPIC_LEAD)
    return domains | ({best} if is_clear else set())


def semantic_score(hit: SearchHit) -> float:
    """Return the semantic score of a hit, 0 if the semantic channel did not find it."""
    return hit.explain.semantic.score if hit.explain and hit.explain.semantic else 0.0


def is_in_scope(memory: Memory, domains: set[str], session_id: str | None, *, refers_to_past: bool) -> bool:
    """Return whether a memory's scope covers a question of these domains in this session.

    An episodic memory covers its own session, and any session if the question refers to a past one.
    """
    if is_of_domain(memory):
        return memory.domain in domains
    if memory.scope is Scope.EPISODIC:
        return refers_to_past or memory.source.session_id in (None, session_id)
    return True


def is_of_domain(memory: Memory) -> bool:
    """Return whether a memory belongs only to questions of its domain; a global memory may have a domain, too."""
    return memory.scope in (Scope.DOMAIN, Scope.GLOBAL) and memory.domain is not None


CLEAR_DOMAIN_SIMILARITY = 0.25
"""Minimum cosine similarity to a domain's name for a question to clearly belong to it."""

CLEAR_DOMAIN_LEAD = 0.15
"""Minimum lead over the similarity to the name of a domain that the question clearly does not belong to."""


def other_domains(similarities: Mapping[str, float], domains: Collection[str]) -> frozenset[str]:
    """Return the given domains that a question clearly does not belong to, because it belongs to another.

    `similarities` are the cosines of the question with the names of domains.
    """
    nearest = max(similarities, key=similarities.__getitem__, default="")
    if similarities.get(nearest, 0.0) < CLEAR_DOMAIN_SIMILARITY:
        return frozenset()
    return frozenset(domain for domain in domains if similarities[nearest] - similarities[domain] >= CLEAR_DOMAIN_LEAD)


MIN_STATED_WORDS = 3
"""Number of content words at which a sentence states something whatever its form."""

_SENTENCE = re.compile(r"[^.!?…。！？؟;\n]+[.!?…。！？؟;]*")
_QUESTION_MARKS = ("?", "？", "؟", ";")
_EXCLAMATION_MARKS = ("!", "！")


def states_something(text: str, *, by_user: bool = True) -> bool:
    """Return whether a text says more than a question, a greeting or thanks, judging by its form.

    A sentence states something if it is not a question and has enough content words or, in a user's text, is a sentence
    with function words that does not merely exclaim.
    """
    return any(_states(sentence.strip(), by_user) for sentence in _SENTENCE.findall(text))


def is_statement(message: Message) -> bool:
    """Return whether a message says more than a question, a greeting or thanks, judging by its form."""
    return states_something(message.content, by_user=message.role is MessageRole.USER)


def statements_first(hits: Sequence[MessageHit]) -> list[MessageHit]:
    """Return messages with statements first, otherwise in their order."""
    return sorted(hits, key=lambda hit: not is_statement(hit.message))


def says_words(text: str) -> bool:
    """Return whether a sentence of a text has content words, and neither asks nor exclaims."""
    marks = _QUESTION_MARKS + _EXCLAMATION_MARKS
    return any(content_words(part) and not part.strip().endswith(marks) for part in _SENTENCE.findall(text))


def _states(sentence: str, by_user: bool) -> bool:
    if not sentence or sentence.endswith(_QUESTION_MARKS):
        return False
    words = content_words(sentence)
    if len(words) >= MIN_STATED_WORDS:
        return True
    is_whole = len(split_words(sentence)) > len(words) and not sentence.endswith(_EXCLAMATION_MARKS)
    return by_user and bool(words) and is_whole


def is_changeable(memory: Memory) -> bool:
    """Return whether another value may replace a memory's."""
    return memory.type is MemoryType.PREFERENCE or memory.single_valued


class JustSaid:
    """The user's words in a question and in recent statements, as evidence that memories are contradicted.

    Clearly contradicted memories are left out of a context; possibly contradicted ones are marked.

    `user_name` is the name of the subject of memories about the user, None if there is none yet; `unclear_homes` are
    those of `find_homes` that may be no places.
    """

    def __init__(
        self,
        user_name: str | None,
        question: str,
        recent_statements: Sequence[str] = (),
        unclear_homes: Collection[str] = (),
    ) -> None:
        texts = (question, *recent_statements)
        self._user_name = user_name
        slot_values = [pair for text in texts for pair in _find_slot_values(text)]
        self._slot_values = [
            (predicate, content_words(value)) for predicate, value in slot_values if value not in unclear_homes
        ]
        self._unclear_values = [(HOME, content_words(value)) for _, value in slot_values if value in unclear_homes]
        self._question_words = content_words(question)
        self._abandoned = [words for text in texts for words in _extract_abandoned(text)]
        self._clauses = [clause for text in texts for clause in _Clause.of_text(text)]

    def contradicts(self, memory: Memory, wish_score: float) -> bool:
        """Return whether the user has just contradicted a memory.

        `wish_score` is the similarity of the memory to the wish that `find_wish` finds in the question, 0 without one.

        A statement abandons the memory's subject matter ("no longer X", "from X to Y", "Y instead of X"), or gives its
        slot another value. Or the question asks for an alternative ("Y this time"), and the memory is changeable, is
        about the same topic, and names something that the question does not.
        """
        if memory.single_valued and self._gives_other_value(memory, self._slot_values):
            return True
        content = _words_of(memory)
        if any(abandoned <= content for abandoned in self._abandoned):
            return True
        return wish_score >= SAME_TOPIC_SCORE and self._is_replaced(memory)

    def may_contradict(self, memory: Memory, wish_score: float) -> bool:
        """Return whether the user may have just contradicted a memory; the score is that of `contradicts`.

        The question may ask for an alternative to the memory, or a statement gives a home that may be no place. Or the
        memory was saved without a slot, and a statement says the same with another name or number, or gives another
        value to the slot described by the memory's text. As the memory has no slot, both may hold.
        """
        if wish_score >= MAYBE_SAME_TOPIC_SCORE and self._is_replaced(memory):
            return True
        if memory.single_valued:
            return bool(self._unclear_values) and self._gives_other_value(memory, self._unclear_values)
        if memory.subject.name != self._user_name:
            return False
        first = content_words(memory.content.partition(" ")[0])
        others = [entity for entity in memory.entities if entity.id != memory.subject.id]
        if any(first and first <= content_words(entity.name) for entity in others):
            return False
        if any(clause.gives_other_value(memory, is_about_user=True) for clause in self._clauses):
            return True
        return any(_says_other_value(memory, predicate, value) for predicate, value in self._slot_values)

    def _is_replaced(self, memory: Memory) -> bool:
        """Return whether an alternative to a memory is wanted if the question wants one for its topic."""
        return (
            is_changeable(memory) and not _words_of(memory) - content_words(memory.subject.name) <= self._question_words
        )

    def _gives_other_value(self, memory: Memory, slot_values: Iterable[tuple[str, frozenset[str]]]) -> bool:
        is_about_user = memory.subject.name == self._user_name
        slot = cues.SAME_SLOTS.get(memory.predicate, memory.predicate)
        if is_about_user and slot in cues.SLOTS:
            known = content_words(memory.object.name if memory.object else memory.content)
            return any(predicate == slot and value.isdisjoint(known) for predicate, value in slot_values)
        return any(clause.gives_other_value(memory, is_about_user=is_about_user) for clause in self._clauses)


def find_wish(question: str) -> str | None:
    """Return the first sentence of a question that asks for something other than usual, or None."""
    return next((sentence.strip() for sentence in _SENTENCE.findall(question) if cues.CHANGE.search(sentence)), None)


def find_homes(texts: Iterable[str]) -> list[str]:
    """Return the names that texts give to the user's home."""
    return [value for text in texts for predicate, value in _find_slot_values(text) if predicate == HOME]


def may_be_no_place(similarities: Mapping[str, float]) -> bool:
    """Return whether a name may be no place, by its cosines with `PLACE` and `OTHER_KINDS`."""
    return max(similarities[kind] for kind in OTHER_KINDS) - similarities[PLACE] >= OTHER_KIND_LEAD


def _words_of(memory: Memory) -> frozenset[str]:
    words = content_words(memory.content)
    return words | content_words(memory.object.name) if memory.object else words


def _find_slot_values(text: str) -> Iterator[tuple[str, str]]:
    """Yield the user's slots that a text gives a value, by predicate, with the value."""
    for sentence in _SENTENCE.findall(text):
        for predicate, patterns in cues.SLOTS.items():
            for match in filter(None, (pattern.match(sentence.strip()) for pattern in patterns)):
                yield predicate, match["value"]


def _says_other_value(memory: Memory, predicate: str, value: frozenset[str]) -> bool:
    """Return whether a text without a slot describes a slot of the user, by its words, and gives it another value."""
    tokens = _TOKEN.findall(memory.content)
    known = _named_words(tokens)
    if not known or not known.isdisjoint(value):
        return False
    joint, _ = _find_run(tokens, known)
    slot_words = cues.SLOT_WORDS[predicate]
    return (not joint or joint in slot_words) and any(
        _same_word(word, other) for word in _relation_words(memory.content) - known for other in slot_words
    )


def _named_words(tokens: Sequence[str]) -> frozenset[str]:
    """Return the content words of the names and numbers in a sentence, ignoring its first word."""
    return content_words(" ".join(token for token in tokens[1:] if token[0].isupper() or token[0].isdigit()))


class _Clause(NamedTuple):
    """The content of a statement's clause: its words in order, its content words, and its names and numbers."""

    tokens: Sequence[str]
    words: frozenset[str]
    values: frozenset[str]

    @classmethod
    def of_text(cls, text: str) -> Iterator[_Clause]:
        """Yield the clauses of a text that are not questions."""
        for sentence in _SENTENCE.findall(text):
            if sentence.strip().endswith(_QUESTION_MARKS):
                continue
            for part in _CLAUSE_END.split(sentence):
                tokens = _TOKEN.findall(part)
                if named := _named_words(tokens):
                    yield cls(tokens, _relation_words(cues.PRESENT.sub(" ", part)) | named, named)

    def gives_other_value(self, memory: Memory, *, is_about_user: bool) -> bool:
        """Return whether the clause fills the slot of a memory with another value, and says nothing else.

        It shares words of the relation, names the subject unless that is the user, and its only new content is one name
        or number, which follows the same function word as the value of the memory: somebody who works at a company may
        work in a city.
        """
        subject, content = content_words(memory.subject.name), _relation_words(memory.content)
        if memory.object:
            value = content_words(memory.object.name)
        else:
            value = _named_words(_TOKEN.findall(memory.content)) - self.words - subject
        relation = (content | content_words(memory.predicate.replace("_", " "))) - subject - value
        shared = {word for word in self.words if any(_same_word(word, other) for other in relation)}
        new = self.words - content - shared
        if not (new and new <= self.values and shared) or not value or value <= self.words:
            return False
        names_subject = subject <= self.words
        if content_words(self.tokens[0]) & new or not (names_subject or (is_about_user and not subject & self.words)):
            return False
        (place, is_one), (known, _) = _find_run(self.tokens, new), _find_run(_TOKEN.findall(memory.content), value)
        return is_one and place == known


def _relation_words(text: str) -> frozenset[str]:
    return content_words(" ".join(word for word in split_words(text.lower()) if word not in _FUNCTION_WORDS))


def _find_run(tokens: Sequence[str], words: frozenset[str]) -> tuple[str, bool]:
    """Return the function word before the first token with one of the words, and whether the others follow at once."""
    places = [place for place, token in enumerate(tokens) if content_words(token) & words]
    if not places:
        return "", False
    before = [token.casefold() for token in tokens[: places[0]] if token.casefold() not in _WORDS.articles]
    joint = before[-1] if before and not _relation_words(before[-1]) else ""
    return joint, places[-1] - places[0] < len(places)


def _find_content_words(text: str) -> dict[str, str]:
    """Return the content words of a text, in order, with their stems."""
    words = [word for word in split_words(normalise(text)) if word not in _STOP_WORDS]
    return {word: stem for word, stem in zip(words, stem_all(words), strict=True) if stem not in _STOP_WORDS}


def _same_word(first: str, second: str) -> bool:
    """Return whether two words are forms of one ("guido", "guida"), judging by their beginnings."""
    first, second = fold_accents(first), fold_accents(second)
    root = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    is_root_shared = root >= MIN_ROOT_LENGTH and max(len(first), len(second)) - root <= MAX_ENDING_LENGTH
    return first == second or is_root_shared


def _begin_alike(first: str, second: str) -> bool:
    """Return whether two words are equal, or one is the other with a suffix ("cook", "cooking")."""
    short, long = sorted((first, second), key=len)
    return first == second or (
        len(short) >= MIN_ROOT_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH and long.startswith(short)
    )


def _extract_abandoned(text: str) -> list[frozenset[str]]:
    matches = (match for pattern in cues.ABANDONED for match in pattern.finditer(text))
    return [words for match in matches if (words := content_words(match["thing"]))]


CHARACTERS_PER_TOKEN = 4
"""Characters per token for estimating the length of a part; the excerpt is counted exactly at the end."""

OMISSION = "…"
"""Stands for omitted text in an excerpt."""

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\s*\n\s*")


class ExcerptWords:
    """The words of a question, for finding the part of a text that answers it."""

    def __init__(self, question: str) -> None:
        prefixes = content_word_prefixes(question)
        self.count = len(prefixes)
        alternatives = "|".join(f"({re.escape(prefix)})" for prefix in prefixes)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{alternatives})" if prefixes else r"(?!)")
        self._found: dict[str, frozenset[int]] = {}

    def count_in(self, text: str) -> int:
        """Return the number of the words found in a text."""
        return len(self.find_in(text))

    def find_in(self, text: str) -> frozenset[int]:
        """Return the indexes of the words found in a text."""
        if text not in self._found:
            self._found[text] = frozenset(number for _, number in self._find(text))
        return self._found[text]

    def excerpt(self, text: str, limit: int) -> str:
        """Return the part of a text with most of the words, on one line and in at most `limit` tokens.

        It consists of consecutive sentences, the first such part in a tie. A part from further on follows the first
        sentence of the text, which gives its topic.
        """
        flat = " ".join(text.split())
        if len(flat) <= 2 * CHARACTERS_PER_TOKEN * limit and count_tokens(flat) <= limit:
            return flat
        start, end = self._find_best_part(text, CHARACTERS_PER_TOKEN * limit)
        if start:
            opening = _opening(text, limit // 2)
            rest = limit - count_tokens(opening) - 1
            part = self._find_best_part(text, CHARACTERS_PER_TOKEN * rest)
            if part[0]:
                return opening + _cut_out(text, *part, rest)
        return _cut_out(text, start, end, limit)

    def _find_best_part(self, text: str, limit: int) -> tuple[int, int]:
        """Return the start and end of the best part of a text, of at most `limit` characters or one sentence."""
        starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text) if match.end() < len(text)), len(text)]
        words: list[set[int]] = [set() for _ in starts]
        for position, number in self._find(text):
            words[bisect_right(starts, position) - 1].add(number)
        best, most = (starts[0], starts[1]), -1
        last = 1
        for first in range(len(starts) - 1):
            last = max(last, first + 1)
            while last + 1 < len(starts) and starts[last + 1] - starts[first] <= limit:
                last += 1
            found = len(set().union(*words[first:last]))
            if found > most:
                best, most = (starts[first], starts[last]), found
        return best

    def _find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the position and the index of each of the words found."""
        folded = text.casefold()
        for match in self._pattern.finditer(folded if len(folded) == len(text) else text.lower()):
            yield match.start(), match.lastindex or 0


def _opening(text: str, limit: int) -> str:
    """Return the first sentence of a text, in at most `limit` tokens."""
    end = _SENTENCE_END.search(text)
    sentence = " ".join(text[: end.start() if end else len(text)].split())
    return sentence if count_tokens(sentence) <= limit else truncate_to_tokens(sentence, limit).rstrip()


def _cut_out(text: str, start: int, end: int, limit: int) -> str:
    """Return a part of a text on one line, in at most `limit` tokens, with marks for omitted text."""
    part = " ".join(text[start:end].split())
    before, after = (OMISSION if start else ""), (OMISSION if end < len(text) else "")
    if count_tokens(f"{before}{part}{after}") > limit:
        part, after = truncate_to_tokens(part, limit - count_tokens(before + OMISSION)).rstrip(), OMISSION
    return f"{before}{part}{after}"
