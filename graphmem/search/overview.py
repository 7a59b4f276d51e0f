"""Overviews: questions that ask for a summary or for the order of events, and the topic that they ask about. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from graphmem.text.tokenising import split_words
from graphmem.text.word_lists import load_words


def overview_topic(question: str, languages: Sequence[str] = ("en",)) -> str | None:
    """Return the topic of a question that asks for an overview, None if the question asks for something else.

    "Can you list the order in which I brought up different aspects of my app throughout our conversations?" is about
    an app, and most like messages that list and order. A question without a topic is its own topic.
    """
    if not _overview_pattern(tuple(languages)).search(question):
        return None
    words = load_words(*languages)
    asking = words.overview_words | words.topicless_words | words.stop_words | words.numbers.keys()
    topic = [word for word in split_words(question) if word.casefold() not in asking]
    return " ".join(topic) or question


@cache
def _overview_pattern(languages: tuple[str, ...]) -> re.Pattern[str]:
    phrases = sorted(load_words(*languages).overview_phrases)
    alternatives = "|".join(map(re.escape, phrases))
    return re.compile(rf"\b(?:{alternatives})\b" if phrases else r"(?!)", re.IGNORECASE)
