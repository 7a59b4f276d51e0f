"""The rules by which memories change, over the facts that one write may change. Pure.

Nothing is overwritten: a change ends the believed version at the time of the write and creates the next version of the
same memory. `graphmem/README.md` has the rules as a table.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.memories.contests import Contests
from graphmem.memories.end_reasons import (
    HOLDS_REASON,
    MERGED_REASON,
    REFUTED_REASON,
    REVERTED_REASON,
    REWRITTEN_REASON,
    SETTLED_REASON,
)
from graphmem.memories.fact import Fact, ImportProvenance, changes_of_patch
from graphmem.memories.latest_versions import LatestVersions
from graphmem.memories.memory import MemoryPatch, MemoryStatus, MemoryType, SaveAction, Scope
from graphmem.memories.rivals import refuse_rivals
from graphmem.memories.timeline import Timeline, is_ended_by_start
from graphmem.memories.trust_checks import TrustChecks
from graphmem.memories.version_log import VersionLog, ensure_mutable, without_end
from graphmem.runtime.errors import Conflict, InvalidInput, VersionConflict
from graphmem.runtime.field_types import deduplicate
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.trust import DEFAULT_ORDER, SourceKind, TrustOrder

FIXED_ASSOCIATIONS_REASON = "it is immutable, so that its relations stay as they are"
"""Why an immutable memory is not associated with further ones."""

_CLAIMS = frozenset({"content", "type", "valid_at", "invalid_at", "expires_at"})
"""The fields of a correction that change what a memory says of the world, or for how long."""


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """The result of a save: the fact that was inserted or reinforced, and the ids of the memories it superseded."""

    action: SaveAction
    fact: Fact
    superseded: tuple[str, ...] = ()
    reason: str | None = None


class Ledger:
    """Applies saves, corrections, ends and reverts to the latest believed versions of some memories, in order.

    `now` must be later than every earlier write of the user. By `order` no statement ends or narrows one of a more
    trusted source: it becomes contested. `kind` is whose word corrections, deletions and reverts are, None for somebody
    who may change anything. `created`, `changed` and `vector_source_uuid` are those of its `VersionLog`.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        now: datetime,
        actor: str | None = None,
        order: TrustOrder = DEFAULT_ORDER,
        kind: SourceKind | None = None,
    ) -> None:
        self._log = VersionLog(facts, now, actor)
        self._trust = TrustChecks(order, kind)
        self._timeline = Timeline(self._log, self._trust)
        self._contests = Contests(self._log, self._timeline, self._trust)
        self.created = self._log.created
        self.changed = self._log.changed
        self.vector_source_uuid = self._log.vector_source_uuid

    @property
    def now(self) -> datetime:
        """The time of the latest change."""
        return self._log.now

    @property
    def latest(self) -> LatestVersions:
        """The latest versions, with all changes made."""
        return self._log.latest

    def ensure_unique(self, fact: Fact, others: Iterable[Fact]) -> None:
        """Raise Conflict when one of `others` is current and states the same as `fact`, as in `VersionLog`."""
        self._log.ensure_unique(fact, others)

    # Saving

    def save(
        self,
        draft: Fact,
        supersedes: Iterable[str] = (),
        reason: str = "superseded",
        ends: Mapping[str, datetime] | None = None,
    ) -> SaveOutcome:
        """Insert a statement, or reinforce the memory that states it already; end the memories it supersedes.

        They end when the statement starts, or at their own time in `ends`, by memory id. `reason` is stored with what
        it ends. A statement that would change one of a more trusted source is stored as contested instead, or
        reinforces the contested memory that says the same. Raises NotFound, Conflict or ImmutableMemory when a memory
        in `supersedes` cannot be ended.
        """
        now = self._log.next_time()
        draft = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._log.actor)
        targets = [self._get_closable(memory_id) for memory_id in deduplicate(supersedes)]
        if known := self._timeline.find_same_statement(draft, now):
            known = self._timeline.reinforce(known, draft, now)
            others = [fact for fact in targets if fact.memory_id != known.memory_id]
            kept = self._trust.find_more_trusted(draft, others)
            closed = self._timeline.supersede_all(
                [fact for fact in others if fact not in kept], known, now, reason, ends
            )
            known_reason = "the same statement is already known"
            if kept:
                known_reason += f"; {kept[0].memory_id} is of a more trusted source and does not end"
            return SaveOutcome(SaveAction.REINFORCE, known, closed, known_reason)
        return self._insert(draft, targets, now, reason, ends)

    def _insert(
        self, draft: Fact, targets: list[Fact], now: datetime, reason: str, ends: Mapping[str, datetime] | None
    ) -> SaveOutcome:
        # The targets are ended in any case, so they neither follow the draft nor precede it.
        competing = [fact for fact in self._timeline.find_competing(draft, now) if fact not in targets]
        undated = draft
        if draft.valid_at is None and (targets or (competing and draft.valid_to > now)):
            draft = replace(draft, valid_at=now)
        if rivals := self._trust.find_more_trusted(
            draft, [*targets, *self._timeline.find_changed_by(draft, competing)]
        ):
            contested, why = self._contests.contest(undated, rivals, now)
            return SaveOutcome(SaveAction.CONTEST, contested, (), why)
        draft, successor = self._timeline.close_before_successor(draft, competing)
        predecessors = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        for fact in predecessors:
            ensure_mutable(fact)
        draft = self._log.add_version(draft)
        self._contests.settle_same_statement(draft)
        ending = {fact.memory_id: fact for fact in [*targets, *predecessors]}.values()
        closed = self._timeline.supersede_all(ending, draft, draft.valid_from, reason, ends)
        if closed:
            draft = self._log.replace_in_place(replace(draft, supersedes=closed))
            return SaveOutcome(SaveAction.SUPERSEDE, draft, closed, f"replaced {len(closed)} earlier")
        if successor:
            return SaveOutcome(SaveAction.INSERT, draft, (), f"arrived late: {successor.memory_id} follows it")
        return SaveOutcome(SaveAction.INSERT, draft)

    def import_version(self, draft: Fact, provenance: ImportProvenance) -> SaveOutcome:
        """Insert a statement of another memory with its known time there; it ends no memory.

        A belief that ended there becomes a second version with the end of the statement when the statement has one,
        and a deleted memory otherwise.
        """
        now = self._log.next_time()
        began = provenance.created_at or now
        updated = max(began, provenance.updated_at or began)
        draft = replace(draft, created_at=began, first_created_at=began, updated_at=updated, actor=self._log.actor)
        if provenance.superseded_by:
            draft = replace(draft, status=MemoryStatus.SUPERSEDED, superseded_by=provenance.superseded_by)
        ended = provenance.expired_at
        can_be_current = (ended is None or draft.invalid_at) and draft.is_valid_at(now)
        if can_be_current and (known := self._timeline.find_same_statement(draft, now)):
            known = self._timeline.reinforce(known, draft, now)
            return SaveOutcome(SaveAction.REINFORCE, known, (), "the same statement is already known")
        if ended is None or (draft.invalid_at and ended <= began):
            return SaveOutcome(SaveAction.INSERT, self._log.add_version(draft))
        if draft.invalid_at is None:
            ended = max(ended, began + MICROSECOND)
            deleted = replace(
                draft, expired_at=ended, end_status=MemoryStatus.DELETED, ended_reason="no longer believed"
            )
            self._log.created[deleted.uuid] = deleted
            return SaveOutcome(SaveAction.INSERT, deleted)
        open_ended = replace(
            draft, invalid_at=None, claimed_invalid_at=None, expired_at=ended, ended_reason="its end became known"
        )
        self._log.add_version(open_ended)
        next_version = replace(draft, uuid=str(uuid.uuid4()), version=2, created_at=ended, updated_at=ended)
        return SaveOutcome(SaveAction.INSERT, self._log.add_version(next_version, open_ended.uuid))

    # Changing, ending, undoing

    def amend(self, memory_id: str, patch: MemoryPatch, *, if_version: int | None = None) -> Fact:
        """Create a version with the changes of a patch, but for its associations.

        A superseded memory that gets another end is no longer superseded. A patch of a less trusted source that changes
        what the memory says becomes a contested memory beside it; one of a more trusted source becomes its source.

        Raises VersionConflict when `if_version` is not the latest version, InvalidInput for a profile and when the
        memory would end before it starts or would need another owner, and Conflict when it would be valid together
        with another value of a single-valued predicate.
        """
        fact = self._log.get_mutable(memory_id)
        if fact.type is MemoryType.PROFILE:
            raise InvalidInput(
                "A profile says what other memories state: correct those in `derived_from`, and the next consolidation "
                "writes it anew."
            )
        if if_version is not None and fact.version != if_version:
            raise VersionConflict(
                f"Version {if_version} was given, but the latest is {fact.version}: read the memory again."
            )
        changes = changes_of_patch(patch)
        if "scope" in changes:
            _refuse_other_owner(fact, changes["scope"])
        amended = replace(without_end(fact), **changes)
        if "invalid_at" in changes:
            amended = replace(amended, claimed_invalid_at=amended.invalid_at)
        if amended.valid_at and amended.invalid_at and amended.invalid_at < amended.valid_at:
            raise InvalidInput("invalid_at is before valid_at.")
        kind = self._trust.kind
        if kind is not None and not _CLAIMS.isdisjoint(patch.model_fields_set):
            if self._trust.order.is_less(kind, than=fact.trust_kind):
                return self._contests.contest_by_patch(fact, amended, kind)
            if self._trust.order.is_less(fact.trust_kind, than=kind):
                amended = replace(amended, source_kind=kind, trusted_as=None, speaker=None)
        now = self._log.next_time()
        if "invalid_at" in changes and not fact.retired and amended.valid_to > now:
            amended = replace(amended, status=MemoryStatus.ACTIVE, superseded_by=None)
        refuse_rivals(amended, self._log.latest.values(), fact)
        return self._log.add_next_version(
            fact, amended, "amended", None, needs_new_vector=amended.content != fact.content
        )

    def rewrite_profile(self, draft: Fact, by: str) -> Fact:
        """Insert a profile, or create the next version of the one that it replaces, whose id it has.

        `by` is the run that wrote it. Raises Conflict when another memory of the entity states the same.
        """
        if draft.memory_id not in self._log.latest:
            now = self._log.next_time()
            return self._log.add_version(
                replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._log.actor)
            )
        earlier = self._log.get_latest(draft.memory_id)
        rewritten = replace(
            without_end(earlier),
            invalid_at=None,
            claimed_invalid_at=None,
            status=MemoryStatus.ACTIVE,
            superseded_by=None,
            content=draft.content,
            content_hash=draft.content_hash,
            content_data=draft.content_data,
            derived_from=draft.derived_from,
            trusted_as=draft.trusted_as,
            confidence=draft.confidence,
            search_text=draft.search_text,
        )
        return self._log.add_next_version(earlier, rewritten, REWRITTEN_REASON, by, needs_new_vector=True)

    def annotate(self, memory_id: str, **annotations: Any) -> Fact:
        """Change attributes of a memory that claim nothing about the world, without a new version."""
        return self._log.replace_in_place(replace(self._log.get_mutable(memory_id), **annotations))

    def associate(
        self, memory_id: str, others: Iterable[str], *, replace_all: bool = False, new: Collection[str] = ()
    ) -> Fact:
        """Associate a memory with others, in both directions; with `replace_all` with no others than these.

        An immutable memory stays as it is, unless it is new: created by this ledger, or among the memory ids in `new`.
        Raises NotFound for an unknown memory.
        """
        wanted = [self._log.get_latest(other).memory_id for other in deduplicate(others) if other != memory_id]
        before = self._log.get_latest(memory_id).associations
        dropped = [other for other in before if other not in wanted] if replace_all else []
        for other in dropped:
            if other in self._log.latest:
                kept = [key for key in self._log.latest[other].associations if key != memory_id]
                self._set_associations(other, kept, new)
        for other in wanted:
            self._set_associations(other, [*self._log.latest[other].associations, memory_id], new)
        return self._set_associations(memory_id, [*(key for key in before if key not in dropped), *wanted], new)

    def _set_associations(self, memory_id: str, associations: Iterable[str], new: Collection[str]) -> Fact:
        fact, ids = self._log.latest[memory_id], tuple(deduplicate(associations))
        is_fixed = fact.immutable and fact.uuid not in self._log.created and memory_id not in new
        if fact.associations == ids or is_fixed:
            return fact
        return self._log.replace_in_place(replace(fact, associations=ids))

    def delete(self, memory_id: str, reason: str = "deleted", by: str | None = None) -> Fact:
        """End the belief in a memory; its versions stay in history.

        Raises Forbidden for a memory of a more trusted source.
        """
        self._trust.ensure_trusted([self._log.get_latest(memory_id)])
        return self._end_memory(memory_id, MemoryStatus.DELETED, reason, by)

    def archive(self, memory_id: str, reason: str, by: str | None = None) -> Fact:
        """End a memory whose time is over, which nobody deleted; its versions stay in history."""
        return self._end_memory(memory_id, MemoryStatus.ARCHIVED, reason, by)

    def retire(self, memory_id: str, reason: str, by: str | None, status: MemoryStatus) -> Fact:
        """Make a memory valid at no time; it stays readable and names `by` as its replacement."""
        fact = self._log.get_mutable(memory_id)
        self._log.next_time()
        return self._log.retire_version(fact, reason, by, status, superseded_by=by)

    def merge(self, draft: Fact, memory_ids: Iterable[str], by: str | None) -> Fact:
        """Insert one statement that takes the place of several memories; they name `by` as what ended them.

        A memory that holds before the statement does keeps its validity up to there; the others are retired. Raises
        ImmutableMemory when one cannot be ended, and Conflict when another current memory states the same.
        """
        sources = [self._get_closable(memory_id) for memory_id in memory_ids]
        self._log.next_time()
        for fact in sources:
            if fact.valid_from < draft.valid_from:
                self._timeline.end_at(fact, draft.valid_from, MERGED_REASON, by, draft.memory_id)
            else:
                self._log.retire_version(
                    fact, MERGED_REASON, by, MemoryStatus.SUPERSEDED, superseded_by=draft.memory_id
                )
        now = self._log.next_time()
        supersedes = tuple(fact.memory_id for fact in sources)
        merged = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._log.actor)
        return self._log.add_version(replace(merged, supersedes=supersedes))

    def resolve(self, memory_id: str, *, holds: bool) -> Fact:
        """Say whether a contested memory holds; one that does not is retired.

        One that holds starts when it was stated to, or else when it was first said, ends what is in force then, and
        holds until the next value that is known; one that only states a past end ends what it contests at that. It is
        trusted as what it ends. Raises Conflict for a memory that is not contested and for one whose statement is
        current already, Forbidden when what would end is of a more trusted source.
        """
        return self._contests.resolve(memory_id, holds=holds)

    def revert(self, memory_id: str) -> Fact:
        """Undo one supersession, or the resolution of a contested memory.

        A supersession is undone by restoring the memory and retiring its replacement; a contested memory that was
        resolved becomes contested again, and what it had ended is restored. Raises Forbidden when what would be retired
        is of a more trusted source. Raises Conflict when the memory is not superseded, when a consolidation run merged
        it, when its replacement was replaced itself, when another memory states the same by now, and when another value
        of a single-valued predicate that started earlier has not ended.
        """
        fact = self._log.get_latest(memory_id)
        if fact.contests and (fact.status is MemoryStatus.ACTIVE or fact.ended_reason == REFUTED_REASON):
            return self._contests.reopen(fact)
        if fact.status is not MemoryStatus.SUPERSEDED:
            raise Conflict("The memory is not superseded, so there is nothing to revert.")
        ensure_mutable(fact)
        if fact.ended_reason == MERGED_REASON:
            raise Conflict(f"It was merged with others by the consolidation run {fact.ended_by}: roll that run back.")
        if fact.ended_reason == SETTLED_REASON:
            raise Conflict(f"Its statement became a memory of its own: delete {fact.superseded_by} to end it.")
        replacement = self._log.latest.get(fact.superseded_by)
        if replacement and not replacement.retired and not replacement.is_contested:
            if replacement.status is MemoryStatus.SUPERSEDED:
                raise Conflict(f"What replaced it was replaced itself: revert {replacement.memory_id} first.")
            if fact.ended_reason == HOLDS_REASON and replacement.contests:
                self._contests.reopen(replacement)
                return self._log.latest[memory_id]
            self._trust.ensure_trusted([replacement])
            self.retire(replacement.memory_id, REVERTED_REASON, memory_id, MemoryStatus.SUPERSEDED)
        self._log.next_time()
        return self._timeline.reopen(fact, fact.superseded_by)

    # Parts

    def _end_memory(self, memory_id: str, status: MemoryStatus, reason: str, by: str | None) -> Fact:
        fact = self._log.get_mutable(memory_id)
        now = self._log.next_time()
        self._log.latest.remove(memory_id)
        ended = replace(fact, end_status=status, ended_actor=self._log.actor)
        return self._log.end_version(ended, now, reason, by)

    def _get_closable(self, memory_id: str) -> Fact:
        fact = self._log.get_mutable(memory_id)
        if fact.status is MemoryStatus.SUPERSEDED:
            raise Conflict(f"{memory_id} is already superseded by {fact.superseded_by}.")
        if fact.is_contested:
            raise Conflict(f"{memory_id} is contested: resolve it first.")
        return fact


def _refuse_other_owner(fact: Fact, scope: Scope) -> None:
    """Raise InvalidInput for a scope that only a memory of another owner can have: a save decides who owns a memory."""
    if (scope is Scope.GLOBAL) == fact.is_global:
        return
    if fact.is_global:
        raise InvalidInput(
            "A global memory keeps its scope: save the statement anew for the user it concerns, and delete this one."
        )
    raise InvalidInput(
        "A user's memory cannot become global: have an admin save the statement anew with scope global, then delete "
        "this one."
    )
