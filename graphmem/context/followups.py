"""Prediction of what a user asks next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from graphmem.context.models import ContextSnapshot

MAX_FOLLOWUPS = 3
"""Intents predicted at most."""


def likely_followups(snapshot: ContextSnapshot, intent: str | None) -> list[str]:
    """Return the intents that followed `intent` most often in the sessions of the user, most frequent first."""
    current = [tuple(snapshot.session.intent_sequence)] if snapshot.session else []
    return predict_followups([*(session.intents for session in snapshot.sessions), *current], intent)


def predict_followups(sequences: Sequence[Sequence[str]], intent: str | None) -> list[str]:
    """Return the intents that followed `intent` most often in sequences of intents, most frequent first."""
    if intent is None:
        return []
    after = Counter(
        following
        for sequence in sequences
        for current, following in pairwise(sequence)
        if current == intent != following
    )
    return [following for following, _ in after.most_common(MAX_FOLLOWUPS)]
