"""Which transactions of which groups are known to be applied in full.

Neo4j applies a transaction to one index after the other before it answers the commit, and another transaction may read
its revision before its changes. Whatever a cache holds for a revision must therefore be read after the transaction of
that revision was applied: when its commit was answered, or when the lock that it held was free again. The transactions
before it are applied, because each waited for the lock of the one before.
"""

from __future__ import annotations

from cachetools import LRUCache

MAX_GROUPS = 20_000
"""Groups that are remembered; of others it is found out again."""


class AppliedRevisions:
    """The latest revision of each group, in its life, whose transaction is known to be applied in full."""

    def __init__(self) -> None:
        self._known: LRUCache[str, tuple[str, int]] = LRUCache(MAX_GROUPS)

    def note(self, group_id: str, life: str, revision: int) -> None:
        """Remember that a revision is applied, and those before it."""
        known_life, known = self._known.get(group_id, (life, 0))
        self._known[group_id] = (life, max(revision, known) if known_life == life else revision)

    def include(self, group_id: str, life: str, revision: int) -> bool:
        """Return whether a revision is known to be applied."""
        known_life, known = self._known.get(group_id, ("", 0))
        return known_life == life and revision <= known
