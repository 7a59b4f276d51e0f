"""The source of a statement, and how much each source is trusted in a tenant. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from functools import lru_cache
from itertools import chain
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, model_validator

from graphmem.runtime.errors import Forbidden
from graphmem.runtime.validation import RequestBody

StatedKind = Literal["user", "operator", "import", "document", "assistant", "tool", "web"]
"""The possible sources of a statement, which an order of trust ranks."""

SourceKind = Literal["user", "operator", "import", "document", "assistant", "tool", "web", "consolidation"]
"""The source of a memory; `consolidation` means that graphmem derived it from other memories or a conversation."""

KindT = TypeVar("KindT", bound=SourceKind)

STATED_KINDS: tuple[StatedKind, ...] = get_args(StatedKind)
"""The kinds in an order of trust, in the default order."""

CONSOLIDATION: SourceKind = "consolidation"
"""The kind of derived memories."""

TEXT_OF_OTHERS: frozenset[SourceKind] = frozenset({"document", "tool", "web"})
"""Kinds whose text strangers may have written; it is screened before it becomes a memory."""


QUOTED_AS = {"document": "a document", "tool": "a tool", "web": "a web page"}
"""Attributions of quoted third-party text without a speaker."""


class Effect(Enum):
    """The effect of a write on another source's statement."""

    END = auto()
    """It ends or replaces the statement, or contradicts its valid time."""
    NARROW = auto()
    """It gives the statement a start or an end, with another value of the same slot."""
    LOCK = auto()
    """It is immutable, and keeps the other source from changing or replacing it."""
    REDIRECT = auto()
    """It makes a name that the other source uses mean something else."""
    RENAME = auto()
    """It changes the names, the summary or an attribute of an entity."""
    HIDE = auto()
    """It deletes the statement, or changes the labels by which it is found."""
    OUTRANK = auto()
    """It changes the statement's weight, or adds words by which it is found."""
    QUOTE_AS = auto()
    """It attributes words to the other source."""


class Verdict(Enum):
    """The outcome of a write: applied, stored as contested, or refused."""

    APPLY = auto()
    CONTEST = auto()
    REFUSE = auto()


_CONTESTED_EFFECTS = frozenset({Effect.END, Effect.NARROW})
"""Effects of statements about the world; less trusted ones are kept as contested."""


@dataclass(frozen=True, slots=True)
class TrustOrder:
    """The sources of a tenant in groups of equal trust, the most trusted group first."""

    groups: tuple[tuple[StatedKind, ...], ...]

    def level(self, kind: SourceKind) -> int:
        """Return a source's level of trust: 0 for the most trusted and for derived memories, more for less trusted."""
        return next((level for level, group in enumerate(self.groups) if kind in group), 0)

    def _is_less(self, kind: SourceKind, than: SourceKind) -> bool:
        """Return whether a source is less trusted than another one."""
        return self.level(kind) > self.level(than)

    def decide(self, effect: Effect, by: SourceKind | None, on: SourceKind) -> Verdict:
        """Return the verdict on a write by one source with an effect on another source's statement.

        `by` is None for an admin, who may change anything. Every effect across sources is decided here.
        """
        if by is None or not self._is_less(by, than=on):
            return Verdict.APPLY
        return Verdict.CONTEST if effect in _CONTESTED_EFFECTS else Verdict.REFUSE

    def permits(self, effect: Effect, by: SourceKind | None, on: SourceKind) -> bool:
        """Return whether a write is applied unchanged."""
        return self.decide(effect, by, on) is Verdict.APPLY

    def require(self, effect: Effect, by: SourceKind | None, on: SourceKind, what: str) -> None:
        """Raise Forbidden unless a write is applied unchanged; `what` names the other source's statement."""
        if not self.permits(effect, by, on):
            raise Forbidden(
                f"{what} is from a more trusted source ({on}) than this key ({by}): ask an admin, or use a key that is "
                "trusted as much."
            )

    def permitted_on(self, effect: Effect, by: SourceKind | None) -> list[SourceKind]:
        """Return the kinds of sources on whose statements a write with this effect is applied unchanged."""
        return [on for on in get_args(SourceKind) if self.permits(effect, by, on)]

    def most_trusted(self, kinds: Iterable[KindT]) -> KindT:
        """Return the most trusted kind, the first of several."""
        return min(kinds, key=self.level)

    def least_trusted(self, kinds: Iterable[KindT]) -> KindT:
        """Return the least trusted kind, the first of several."""
        return max(kinds, key=self.level)

    def of_statement(self, stated_by: Iterable[Sequence[SourceKind]]) -> SourceKind:
        """Return the source of a statement: the most trusted source among the lines that state it.

        `stated_by` has each line's source and the sending key's source; the less trusted of the two counts.
        """
        return self.most_trusted([self.least_trusted(line) for line in stated_by if line] or ["user"])

    def passes(self, kind: SourceKind, least: SourceKind | None) -> bool:
        """Return whether a source is at least as trusted as `least`; None accepts any."""
        return least is None or not self._is_less(kind, than=least)

    def trusted_as_much_as(self, kind: SourceKind) -> list[str]:
        """Return the kinds that are at least as trusted as `kind`."""
        return [other for other in get_args(SourceKind) if self.passes(other, kind)]

    def distance(self, kind: SourceKind) -> float:
        """Return a source's distance from the most trusted one, from 0 to 1."""
        return self.level(kind) / max(1, len(self.groups) - 1)


DEFAULT_ORDER = TrustOrder((("user",), ("operator", "import"), ("document",), ("assistant",), ("tool",), ("web",)))
"""The order of tenants that have not set one."""

_GROUPS: TypeAdapter[tuple[tuple[StatedKind, ...], ...]] = TypeAdapter(tuple[tuple[StatedKind, ...], ...])


@lru_cache(maxsize=1024)
def parse_order(stored: str | None) -> TrustOrder:
    """Return the order stored as JSON; the default order if none is stored."""
    return TrustOrder(_GROUPS.validate_json(stored)) if stored else DEFAULT_ORDER


def dump_order(order: TrustOrder) -> str:
    """Return an order as JSON."""
    return _GROUPS.dump_json(order.groups).decode()


def _as_group(value: object) -> object:
    return [value] if isinstance(value, str) else value


TrustGroup = Annotated[list[StatedKind], Field(min_length=1), BeforeValidator(_as_group)]
"""Sources of equal trust; a single source may stand for a list of one."""


class TrustIn(RequestBody):
    """The order of trust to set, most trusted first; an empty order restores the default."""

    order: list[TrustGroup] = Field(
        max_length=len(STATED_KINDS),
        description="Sources, or lists of equally trusted ones, most trusted first; others keep the default order.",
        examples=[["user", ["operator", "import"], "document", "assistant", "tool", "web"]],
    )

    @model_validator(mode="after")
    def _check_kinds(self) -> Self:
        named = list(chain.from_iterable(self.order))
        if repeated := sorted({kind for kind in named if named.count(kind) > 1}):
            raise ValueError(f"order names {', '.join(repeated)} twice: name each source once")
        return self

    def to_order(self) -> TrustOrder:
        """Return the complete order: omitted sources follow in the default order."""
        named = set(chain.from_iterable(self.order))
        rest = [tuple(kind for kind in group if kind not in named) for group in DEFAULT_ORDER.groups]
        return TrustOrder((*map(tuple, self.order), *filter(None, rest)))


class Trust(BaseModel):
    """The order of trust of a tenant, with who set it and when; both are null for the default order."""

    order: list[list[StatedKind]] = Field(description="Sources in groups of equal trust, most trusted first.")
    updated_at: datetime | None = None
    updated_by: str | None = None
