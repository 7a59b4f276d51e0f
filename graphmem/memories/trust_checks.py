"""Whose statements and corrections may end or narrow those of whom. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphmem.memories.fact import Fact
from graphmem.runtime.errors import Forbidden
from graphmem.tenants.trust import SourceKind, TrustOrder


@dataclass(slots=True)
class TrustChecks:
    """Which memories a change may end or narrow.

    By `order` no statement does so to one of a more trusted source. `kind` is whose word corrections, deletions and
    reverts are, None for somebody who may change anything.
    """

    order: TrustOrder
    kind: SourceKind | None

    def find_more_trusted(self, draft: Fact, facts: Iterable[Fact]) -> list[Fact]:
        """Return the facts of sources that are trusted more than that of the draft."""
        return [fact for fact in facts if self.order.is_less(draft.trust_kind, than=fact.trust_kind)]

    def ensure_trusted(self, facts: Iterable[Fact]) -> None:
        """Raise Forbidden for a fact of a source that is trusted more than whoever makes the change."""
        for fact in facts:
            if self.kind is not None and self.order.is_less(self.kind, than=fact.trust_kind):
                raise Forbidden(
                    f"{fact.memory_id} is the word of a more trusted source ({fact.trust_kind}) than that of this key "
                    f"({self.kind}): ask an admin, or use a key that is trusted as much."
                )
