"""What the plan of a window consists of. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.memories.memory import MemoryIn


@dataclass(frozen=True, slots=True)
class PlannedSave:
    """A statement to save; it ends the memories in `memory.supersedes`, for `reason`.

    They end when it starts, or at their own time in `ends`, by memory id. `is_reinforcement` marks a statement that
    repeats a known memory word for word, to reinforce it.
    """

    candidate_index: int
    memory: MemoryIn
    reason: str = "superseded"
    is_reinforcement: bool = False
    ends: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedEnd:
    """A memory that stays as it is and gets the end that a statement gives, in UTC and as it was stated."""

    candidate_index: int
    memory_id: str
    at: datetime
    stated: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """A memory to delete because the user took it back."""

    candidate_index: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """An action that was proposed for a candidate and is not done; `is_saved` says that the candidate is saved."""

    candidate_index: int
    action: str
    reason: str
    memory_id: str | None = None
    is_saved: bool = False


@dataclass(slots=True)
class ActionPlan:
    """What to do, in order, and what was vetoed.

    `unusable` are the parts of the answer that are about nothing that the prompt showed, as sentences.
    """

    ends: list[PlannedEnd] = field(default_factory=list)
    saves: list[PlannedSave] = field(default_factory=list)
    deletions: list[PlannedDeletion] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    resolved_names: dict[str, str] = field(default_factory=dict)
    """Ids of the known entities that ambiguous names mean, by name key."""

    def without(self, indexes: Collection[int]) -> ActionPlan:
        """Return the plan without what it does, or vetoes, for some candidates."""

        def is_kept(action: PlannedSave | PlannedEnd | PlannedDeletion | Veto) -> bool:
            return action.candidate_index not in indexes

        return replace(
            self,
            ends=[end for end in self.ends if is_kept(end)],
            saves=[save for save in self.saves if is_kept(save)],
            deletions=[deletion for deletion in self.deletions if is_kept(deletion)],
            vetoes=[veto for veto in self.vetoes if is_kept(veto)],
        )
