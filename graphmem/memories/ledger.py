"""The rules by which memories change, over the facts that one write may change. Pure.

Nothing is overwritten: a change ends the believed version at the time of the write and creates the next version of the
same memory. `graphmem/README.md` has the rules as a table.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.memories.fact import (
    MAX_CONFIDENCE,
    MAX_SEARCH_TEXT,
    TYPE_PREDICATES,
    Fact,
    ImportProvenance,
    apply_reinforcement,
    changes_of_patch,
    join_sources,
)
from graphmem.memories.memory import MemoryPatch, MemoryStatus, MemoryType, SaveAction, Scope
from graphmem.memories.version_log import VersionLog, ensure_mutable, without_end
from graphmem.runtime.errors import Conflict, InvalidInput, VersionConflict
from graphmem.runtime.field_types import deduplicate
from graphmem.runtime.times import MICROSECOND, MIN_TIME
from graphmem.tenants.trust import CONSOLIDATION, DEFAULT_ORDER, Effect, SourceKind, TrustOrder, Verdict

MERGED_REASON = "merged"
"""The end reason of a memory that a consolidation run merged into another one."""

CLOSED_REASON = "carried out, given up or replaced"
"""The end reason of a plan that a consolidation run closed because of what another memory says."""

REWRITTEN_REASON = "rewritten"
"""The end reason of a version of a profile that a consolidation run replaced."""

RESTATED_REASON = "stated again"
"""The end reason of a version whose statement was repeated with something new."""

REVERTED_REASON = "reverted"
"""The end reason of a memory that a revert reopened or retired."""

HOLDS_REASON = "resolved: it holds"
"""The end reason of a contested version that was found to hold, and of the versions that it ended then."""

REFUTED_REASON = "resolved: it does not hold"
"""The end reason of a contested version that was found not to hold."""

CONTESTED_REASON = "contested by a more trusted source"
"""The end reason of a version that a late arrival of a more trusted source contradicts."""

SETTLED_REASON = "stated by a source that is trusted as much or more"
"""The end reason of a contested version whose statement became a memory of its own."""

FIXED_ASSOCIATIONS_REASON = "it is immutable, or one of the two is of a more trusted source, so that its relations stay"
"""Why a memory is not associated with another one."""

_CLAIMS = frozenset({"content", "valid_at", "invalid_at", "expires_at"})
"""The fields of a correction that change what a memory says of the world, or for how long."""


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """The result of a save: the fact that was inserted or reinforced, and the ids of the memories it superseded.

    `ignored` names what a repetition gave and the memory does not take over.
    """

    action: SaveAction
    fact: Fact
    superseded: tuple[str, ...] = ()
    reason: str | None = None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewDetails:
    """What a repetition gives that its memory does not have.

    `changes` are the attributes of the memory's next version, `taken` and `ignored` the names of the fields that are
    taken over and that are not.
    """

    changes: Mapping[str, Any]
    taken: tuple[str, ...]
    ignored: tuple[str, ...]


class Ledger(VersionLog):
    """Applies saves, corrections, ends and reverts to the latest believed versions of some memories, in order.

    `now` must be later than every earlier write of the user. By `order` no statement ends or narrows one of a more
    trusted source: it becomes contested. `kind` is the source of corrections, deletions and reverts, None for somebody
    who may change anything.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        now: datetime,
        actor: str | None = None,
        order: TrustOrder = DEFAULT_ORDER,
        kind: SourceKind | None = None,
    ) -> None:
        super().__init__(facts, now, actor)
        self._order = order
        self._kind = kind

    # Saving

    def save(
        self,
        draft: Fact,
        supersedes: Iterable[str] = (),
        reason: str = "superseded",
        ends: Mapping[str, datetime] | None = None,
        given: Collection[str] = (),
        contests: Iterable[str] = (),
    ) -> SaveOutcome:
        """Insert a statement, or reinforce the memory that states it already; end the memories it supersedes.

        They end when the statement starts, or at their own time in `ends`, by memory id. `reason` is stored with what
        it ends. The fields in `given` were stated and are no defaults: what a repetition has new in them is taken over
        into a next version of the memory. A statement that would change one of a more trusted source is stored as
        contested instead, or reinforces the contested memory that says the same; so is one that `contests` memories,
        by id. Raises NotFound, Conflict or ImmutableMemory when a memory in `supersedes` cannot be ended.
        """
        now = self.next_time()
        draft = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self.actor)
        targets = [self._get_closable(memory_id, draft.trust_kind) for memory_id in deduplicate(supersedes)]
        if known := self._find_same_statement(draft, now):
            repeated = self._repeat(known, draft, now, given)
            others = [fact for fact in targets if fact.memory_id != known.memory_id]
            kept = self._find_more_trusted(draft, others)
            closed = self._supersede_all(
                [fact for fact in others if fact not in kept], repeated.fact, now, reason, ends
            )
            known_reason = repeated.reason
            if kept:
                known_reason = f"{known_reason}; {kept[0].memory_id} is of a more trusted source and does not end"
            ignored = repeated.ignored if others == targets else (*repeated.ignored, "supersedes")
            return replace(repeated, superseded=closed, reason=known_reason, ignored=ignored)
        if rivals := [self.get_latest(memory_id) for memory_id in deduplicate(contests)]:
            contested, why = self._contest(draft, rivals, now)
            return SaveOutcome(SaveAction.CONTEST, contested, (), why)
        return self._insert(draft, targets, now, reason, ends)

    def _repeat(self, known: Fact, draft: Fact, now: datetime, given: Collection[str]) -> SaveOutcome:
        """Reinforce a memory whose statement is repeated, and give it a next version with what the repetition adds."""
        details = self._find_new_details(known, draft, given, now)
        known, reason = self._reinforce(known, draft, now), "the same statement is already known"
        if details.changes:
            known = self.add_next_version(known, replace(known, **details.changes), RESTATED_REASON, None)
            reason += f", now with the {', '.join(details.taken)} of this one"
        return SaveOutcome(SaveAction.REINFORCE, known, (), reason, details.ignored)

    def _insert(
        self, draft: Fact, targets: list[Fact], now: datetime, reason: str, ends: Mapping[str, datetime] | None
    ) -> SaveOutcome:
        draft = self._by_slot(draft)
        # The targets are ended in any case, so they neither follow the draft nor precede it.
        competing = [fact for fact in self._find_competing(draft, now) if fact not in targets]
        undated = draft
        if draft.valid_at is None and (targets or (competing and draft.valid_to > now)):
            draft = replace(draft, valid_at=now)
        rivals = self._find_more_trusted(draft, [*targets, *self._find_changed_by(draft, competing)])
        if rivals := rivals or self._find_contested_before(draft, now):
            contested, why = self._contest(undated, rivals, now)
            return SaveOutcome(SaveAction.CONTEST, contested, (), why)
        draft, successor = self._close_before_successor(draft, competing)
        predecessors = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        for fact in predecessors:
            self._ensure_mutable(fact, draft.trust_kind)
        draft = self.add_version(draft)
        self._settle_same_statement(draft)
        ending = {fact.memory_id: fact for fact in [*targets, *predecessors]}.values()
        closed = self._supersede_all(ending, draft, draft.valid_from, reason, ends)
        if closed:
            draft = self.replace_in_place(replace(draft, supersedes=closed))
            return SaveOutcome(SaveAction.SUPERSEDE, draft, closed, f"replaced {len(closed)} earlier")
        if successor:
            return SaveOutcome(SaveAction.INSERT, draft, (), f"arrived late: {successor.memory_id} follows it")
        return SaveOutcome(SaveAction.INSERT, draft)

    def import_version(self, draft: Fact, provenance: ImportProvenance, given: Collection[str] = ()) -> SaveOutcome:
        """Insert a statement of another memory with its known time there, or repeat a known one; it ends no memory.

        A belief that ended there becomes a second version with the end of the statement when the statement has one,
        and a deleted memory otherwise.
        """
        now = self.next_time()
        began = provenance.created_at or now
        updated = max(began, provenance.updated_at or began)
        draft = replace(draft, created_at=began, first_created_at=began, updated_at=updated, actor=self.actor)
        if provenance.superseded_by:
            draft = replace(draft, status=MemoryStatus.SUPERSEDED, superseded_by=provenance.superseded_by)
        ended = provenance.expired_at
        can_be_current = (ended is None or draft.invalid_at) and draft.is_valid_at(now)
        if can_be_current and (known := self._find_same_statement(draft, now)):
            return self._repeat(known, draft, now, given)
        draft = self._by_slot(draft)
        together = [fact for fact in self._find_competing(draft, now) if fact.overlaps(draft)]
        rivals = self._find_more_trusted(draft, together) or self._find_contested_before(draft, now)
        if ended is None and rivals:
            contested, why = self._contest(draft, rivals, now)
            return SaveOutcome(SaveAction.CONTEST, contested, (), why)
        if ended is None or (draft.invalid_at and ended <= began):
            return SaveOutcome(SaveAction.INSERT, self.add_version(draft))
        if draft.invalid_at is None:
            ended = max(ended, began + MICROSECOND)
            deleted = replace(
                draft, expired_at=ended, end_status=MemoryStatus.DELETED, ended_reason="no longer believed"
            )
            self.created[deleted.uuid] = deleted
            return SaveOutcome(SaveAction.INSERT, deleted)
        open_ended = replace(
            draft, invalid_at=None, claimed_invalid_at=None, expired_at=ended, ended_reason="its end became known"
        )
        self.add_version(open_ended)
        next_version = replace(draft, uuid=str(uuid.uuid4()), version=2, created_at=ended, updated_at=ended)
        return SaveOutcome(SaveAction.INSERT, self.add_version(next_version, open_ended.uuid))

    # Changing, ending, undoing

    def amend(self, memory_id: str, patch: MemoryPatch, *, if_version: int | None = None) -> Fact:
        """Create a version with the changes of a patch, but for its associations.

        A superseded memory that gets another end is no longer superseded. A patch of a less trusted source that changes
        what the memory says becomes a contested memory of its own; one of a more trusted source becomes its source, and
        the memory is no longer immutable.

        Raises Forbidden for the labels of a memory of a more trusted source.
        Raises VersionConflict when `if_version` is not the latest version, InvalidInput for a profile and when the
        memory would end before it starts or would need another owner, and Conflict when it would be valid together
        with another value of a single-valued predicate.
        """
        fact = self._get_mutable(memory_id)
        if fact.type is MemoryType.PROFILE:
            raise InvalidInput(
                "A profile is derived from other memories: correct those in `derived_from`, and the next consolidation "
                "rewrites it."
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
        kind, is_claim = self._kind, not _CLAIMS.isdisjoint(patch.model_fields_set)
        effect = Effect.END if is_claim else Effect.HIDE
        match self._order.decide(effect, kind, fact.trust_kind):
            case Verdict.REFUSE:
                self._ensure_trusted([fact])
            case Verdict.CONTEST if kind is not None:
                return self._contest_by_patch(fact, amended, kind)
        if kind is not None and is_claim and not self._order.permits(Effect.QUOTE_AS, fact.trust_kind, kind):
            amended = replace(amended, source_kind=kind, trusted_as=None, speaker=None, immutable=False)
        now = self.next_time()
        if "invalid_at" in changes and not fact.retired and amended.valid_to > now:
            amended = replace(amended, status=MemoryStatus.ACTIVE, superseded_by=None)
        refuse_rivals(amended, self.latest.values(), fact)
        return self.add_next_version(fact, amended, "amended", None, needs_new_vector=amended.content != fact.content)

    def rewrite_profile(self, draft: Fact, by: str) -> Fact:
        """Insert a profile, or create the next version of the one that it replaces, whose id it has.

        `by` is the run that wrote it. Raises Conflict when another memory of the entity states the same.
        """
        if draft.memory_id not in self.latest:
            now = self.next_time()
            return self.add_version(
                replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self.actor)
            )
        earlier = self.get_latest(draft.memory_id)
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
        return self.add_next_version(earlier, rewritten, REWRITTEN_REASON, by, needs_new_vector=True)

    def annotate(self, memory_id: str, **annotations: Any) -> Fact:
        """Change attributes of a memory that claim nothing about the world, without a new version."""
        return self.replace_in_place(replace(self.get_mutable(memory_id), **annotations))

    def link(self, memory_id: str, entity_id: str, name: str) -> Fact:
        """Let a memory refer to an entity that its text names; even an immutable one, whose text stays as it is.

        A memory that this ledger has ended stays as it is.
        """
        fact = self.get_latest(memory_id)
        if fact.expired_at is not None:
            return fact
        entity_ids = tuple(deduplicate([*fact.entity_ids, entity_id]))
        search_text = f"{name}\n{fact.search_text}"
        return self.replace_in_place(replace(fact, entity_ids=entity_ids, search_text=search_text))

    def associate(
        self,
        memory_id: str,
        others: Iterable[str],
        *,
        replace_all: bool = False,
        new: Collection[str] = (),
        by: SourceKind | None = None,
    ) -> Fact:
        """Associate a memory with others, in both directions; with `replace_all` with no others than these.

        An immutable memory stays as it is, unless it is new: created by this ledger, or among the memory ids in `new`.
        So do those of sources that are trusted more than `by`. Raises NotFound for an unknown memory.
        """
        latest = [self.get_latest(other) for other in (memory_id, *deduplicate(others))]
        may_change = {
            fact.memory_id: self._order.permits(Effect.OUTRANK, by, fact.trust_kind)
            for fact in (*latest, *filter(None, map(self.latest.get, latest[0].associations)))
        }
        if not may_change[memory_id]:
            return latest[0]
        wanted = [fact.memory_id for fact in latest if fact.memory_id != memory_id and may_change[fact.memory_id]]
        before = [other for other in latest[0].associations if may_change.get(other, True)]
        dropped = [other for other in before if other not in wanted] if replace_all else []
        for other in dropped:
            if other in self.latest:
                kept = [key for key in self.latest[other].associations if key != memory_id]
                self._set_associations(other, kept, new)
        for other in wanted:
            self._set_associations(other, [*self.latest[other].associations, memory_id], new)
        kept = [key for key in latest[0].associations if key not in dropped]
        return self._set_associations(memory_id, [*kept, *wanted], new)

    def _set_associations(self, memory_id: str, associations: Iterable[str], new: Collection[str]) -> Fact:
        fact, ids = self.latest[memory_id], tuple(deduplicate(associations))
        # Whoever made a memory immutable, its relations are part of what stays as it was.
        is_fixed = fact.immutable and fact.uuid not in self.created and memory_id not in new
        if fact.associations == ids or is_fixed:
            return fact
        return self.replace_in_place(replace(fact, associations=ids))

    def delete(self, memory_id: str, reason: str = "deleted", by: str | None = None) -> Fact:
        """End the belief in a memory; its versions stay in history.

        Raises Forbidden for a memory of a more trusted source.
        """
        self._ensure_trusted([self.get_latest(memory_id)])
        return self._end_memory(memory_id, MemoryStatus.DELETED, reason, by)

    def archive(self, memory_id: str, reason: str, by: str | None = None) -> Fact:
        """End a memory whose time is over, which nobody deleted; its versions stay in history."""
        return self._end_memory(memory_id, MemoryStatus.ARCHIVED, reason, by)

    def retire(self, memory_id: str, reason: str, by: str | None, status: MemoryStatus) -> Fact:
        """Make a memory valid at no time; it stays readable and names `by` as its replacement."""
        fact = self._get_mutable(memory_id)
        self.next_time()
        return self.retire_version(fact, reason, by, status, superseded_by=by)

    def merge(self, draft: Fact, memory_ids: Iterable[str], by: str | None) -> Fact:
        """Insert one statement that takes the place of several memories; they name `by` as what ended them.

        A memory that holds before the statement does keeps its validity up to there; the others are retired. Raises
        ImmutableMemory when one cannot be ended, and Conflict when another current memory states the same.
        """
        sources = [self._get_closable(memory_id, None) for memory_id in memory_ids]
        self.next_time()
        for fact in sources:
            if fact.valid_from < draft.valid_from:
                self._end_at(fact, draft.valid_from, MERGED_REASON, by, draft.memory_id)
            else:
                self.retire_version(fact, MERGED_REASON, by, MemoryStatus.SUPERSEDED, superseded_by=draft.memory_id)
        now = self.next_time()
        supersedes = tuple(fact.memory_id for fact in sources)
        merged = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self.actor)
        return self.add_version(replace(merged, supersedes=supersedes))

    def close(self, memory_id: str, telling: Fact, by: str | None) -> Fact:
        """End a plan when another memory starts that says that it is over, now if that is not known or later.

        The plan names that memory as what replaced it, and `by` as what ended it.
        """
        plan = self._get_closable(memory_id, None)
        now = self.next_time()
        end = min(telling.valid_at or now, now)
        return self._end_at(plan, max(end, plan.valid_from), CLOSED_REASON, by, telling.memory_id)

    def resolve(self, memory_id: str, *, holds: bool) -> Fact:
        """Resolve a contested memory; one that does not is retired.

        One that holds starts when it was stated to, or else when it was first said, ends what is in force then, and
        holds until the next value that is known; one that only states a past end ends what it contests at that. It is
        trusted as what it ends. Raises Conflict for a memory that is not contested and for one whose statement is
        current already, Forbidden when what would end is of a more trusted source.
        """
        fact = self.get_latest(memory_id)
        if not fact.is_contested:
            raise Conflict(
                "The memory is not contested, so there is nothing to resolve: see the list of contradictions."
            )
        self._ensure_trusted([fact])
        now = self.next_time()
        if holds:
            return self._uphold(fact, now)
        rival = next((key for key in fact.contests if key in self.latest), None)
        return self.retire_version(fact, REFUTED_REASON, rival, MemoryStatus.SUPERSEDED, superseded_by=rival)

    def revert(self, memory_id: str) -> Fact:
        """Undo one supersession, or the resolution of a contested memory.

        A supersession is undone by restoring the memory and retiring its replacement, which stays where a run closed a
        plan; a contested memory that was
        resolved becomes contested again, and what it had ended is restored. Raises Forbidden when what would be retired
        is of a more trusted source. Raises Conflict when the memory is not superseded, when a consolidation run merged
        it, when its replacement was replaced itself, when another memory states the same by now, and when another value
        of a single-valued predicate that started earlier has not ended.
        """
        fact = self.get_latest(memory_id)
        if fact.contests and (fact.status is MemoryStatus.ACTIVE or fact.ended_reason == REFUTED_REASON):
            return self._contest_again(fact)
        if fact.status is not MemoryStatus.SUPERSEDED:
            raise Conflict("The memory is not superseded, so there is nothing to revert.")
        self._ensure_mutable(fact, self._kind)
        self._ensure_trusted([fact])
        if fact.ended_reason == MERGED_REASON:
            raise Conflict(f"It was merged with others by the consolidation run {fact.ended_by}: roll that run back.")
        if fact.ended_reason == SETTLED_REASON:
            raise Conflict(f"Its statement became a separate memory: delete {fact.superseded_by} to end it.")
        # What closed a plan was told for its own sake and stays.
        replacement = self.latest.get(fact.superseded_by) if fact.ended_reason != CLOSED_REASON else None
        if replacement and not replacement.retired and not replacement.is_contested:
            if replacement.status is MemoryStatus.SUPERSEDED:
                raise Conflict(f"What replaced it was replaced itself: revert {replacement.memory_id} first.")
            if fact.ended_reason == HOLDS_REASON and replacement.contests:
                self._contest_again(replacement)
                return self.latest[memory_id]
            self._ensure_trusted([replacement])
            self.retire(replacement.memory_id, REVERTED_REASON, memory_id, MemoryStatus.SUPERSEDED)
        self.next_time()
        return self._restore(fact, fact.superseded_by)

    # Parts

    def _end_memory(self, memory_id: str, status: MemoryStatus, reason: str, by: str | None) -> Fact:
        fact = self._get_mutable(memory_id)
        now = self.next_time()
        self.latest.remove(memory_id)
        ended = replace(fact, end_status=status, ended_actor=self.actor)
        return self.end_version(ended, now, reason, by)

    def _get_mutable(self, memory_id: str) -> Fact:
        """Return the latest version of a memory; raise ImmutableMemory unless its source allows the change."""
        fact = self.get_latest(memory_id)
        self._ensure_mutable(fact, self._kind)
        return fact

    def _get_closable(self, memory_id: str, kind: SourceKind | None) -> Fact:
        fact = self.get_latest(memory_id)
        self._ensure_mutable(fact, kind)
        if fact.status is MemoryStatus.SUPERSEDED:
            raise Conflict(f"{memory_id} is already superseded by {fact.superseded_by}.")
        if fact.is_contested:
            raise Conflict(f"{memory_id} is contested: resolve it first.")
        return fact

    # What is valid when: statements that repeat, follow or end one another

    def _find_same_statement(self, draft: Fact, now: datetime) -> Fact | None:
        """Return the memory that states the same and is current, or else starts when the draft does."""
        same = [fact for fact in self.latest.that_say(draft) if draft.repeats(fact) and not fact.is_never_valid]
        current = next((fact for fact in same if fact.is_valid_at(now)), None)
        if current or draft.valid_at is None:
            return current
        return next((fact for fact in same if fact.valid_at == draft.valid_at), None)

    def _find_competing(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the facts that must not be valid together with `draft`.

        These state the same or, when it is single-valued, have the same subject and predicate. Two facts that have
        ended and whose starts are unknown do not compete: which one came first is unknown as well.
        """
        is_past = draft.valid_at is None and draft.valid_to <= now
        return [
            fact
            for fact in (self.latest.that_may_compete(draft) if draft.single_valued else self.latest.that_state(draft))
            if fact.memory_id != draft.memory_id
            and not fact.is_never_valid
            and not (is_past and fact.effective_start == MIN_TIME)
        ]

    def _find_changed_by(self, draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
        """Return the competing facts that a draft would end, or to which it would give a start."""
        competing = list(competing)
        ended = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        kept = [
            fact
            for fact in _followers(draft, competing)
            if self._is_locked(fact, draft.trust_kind)
            or self._order.permits(Effect.NARROW, fact.trust_kind, draft.trust_kind)
        ]
        next_one = min(kept, key=lambda fact: fact.effective_start, default=None)
        if next_one and next_one.valid_at is None and not self._is_locked(next_one, draft.trust_kind):
            ended.append(next_one)
        return ended

    def _close_before_successor(
        self, draft: Fact, competing: list[Fact], *, by_trust: bool = True
    ) -> tuple[Fact, Fact | None]:
        """Return a late arrival closed at the start of the fact that follows it, and that fact.

        A follower without a known start gets one, unless it is immutable. With `by_trust`, one of a less trusted source
        does not close the arrival: it becomes contested.
        """
        later = sorted(_followers(draft, competing), key=lambda fact: fact.effective_start)
        successor = None
        for fact in later:
            if draft.valid_to <= fact.effective_start:
                break
            may_narrow = self._order.permits(Effect.NARROW, fact.trust_kind, draft.trust_kind)
            if not by_trust or may_narrow or self._is_locked(fact, draft.trust_kind):
                successor = fact
                break
            contested = replace(
                fact,
                status=MemoryStatus.CONTESTED,
                contests=(draft.memory_id,),
                immutable=False,
                invalid_at=fact.claimed_invalid_at,
                superseded_by=None,
                ended_reason=CONTESTED_REASON,
                ended_by=draft.memory_id,
            )
            self.add_next_version(fact, contested, CONTESTED_REASON, draft.memory_id)
        if successor is None:
            successor = next((fact for fact in later if draft.valid_to <= fact.effective_start), None)
        if successor is None:
            return draft, None
        start = successor.effective_start
        if successor.valid_at is None and not self._is_locked(successor, draft.trust_kind):
            dated = replace(without_end(successor), valid_at=start)
            self.add_next_version(successor, dated, "dated by an earlier value", draft.memory_id)
        if draft.valid_to <= start:
            return draft, None
        return replace(
            draft,
            invalid_at=start,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=successor.memory_id,
            ended_reason="followed by a later value when it arrived",
            ended_by=successor.memory_id,
        ), successor

    def _supersede_all(
        self,
        facts: Iterable[Fact],
        by: Fact,
        at: datetime,
        reason: str,
        ends: Mapping[str, datetime] | None = None,
    ) -> tuple[str, ...]:
        """End the validity of facts at their time in `ends`, else at `at`, and return their memory ids."""
        closed = []
        for fact in facts:
            end = (ends or {}).get(fact.memory_id, at)
            self._end_at(fact, max(end, fact.valid_from), reason, by.memory_id, by.memory_id)
            closed.append(fact.memory_id)
        return tuple(closed)

    def _end_at(self, fact: Fact, at: datetime, reason: str, by: str | None, superseded_by: str) -> Fact:
        """End the validity of a fact at `at`, from which on another memory holds."""
        superseded = replace(
            fact,
            invalid_at=at,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=superseded_by,
            ended_reason=reason,
            ended_by=by,
        )
        return self.add_next_version(fact, superseded, reason, by)

    def _restore(self, fact: Fact, by: str | None, *, by_trust: bool = True) -> Fact:
        """Restore a superseded memory with the end that its writer gave, up to what follows it."""
        reopened = replace(
            without_end(fact),
            invalid_at=fact.claimed_invalid_at,
            status=MemoryStatus.ACTIVE,
            retired=False,
            superseded_by=None,
        )
        if by_trust:
            self.ensure_unique(reopened.with_active_hash(self.now), self.latest.values())
        competing = self._find_competing(reopened, self.now)
        if rivals := self._find_more_trusted(reopened, self._find_changed_by(reopened, competing)):
            raise Conflict(f"The memory would be {describe_rival(reopened, rivals[0])}.")
        reopened, _ = self._close_before_successor(reopened, competing, by_trust=by_trust)
        refuse_rivals(reopened, self.latest.values(), fact)
        return self.add_next_version(fact, reopened, REVERTED_REASON, by)

    def _find_new_details(self, known: Fact, draft: Fact, given: Collection[str], now: datetime) -> NewDetails:
        """Return what a repetition gives that a memory does not have yet.

        Tags, entities and metadata are added to those of the memory. Times are taken over where none were known and
        the memory stays valid for as long as it has been known; other times are a correction, which a patch makes.
        Nothing is taken over into an immutable memory, a profile or a memory of a more trusted source.
        """
        new = {name: change for name, change in _differences(known, draft).items() if name in given}
        is_fixed = self._is_locked(known, draft.trust_kind) or known.type is MemoryType.PROFILE
        if is_fixed or not self._order.permits(Effect.OUTRANK, draft.trust_kind, known.trust_kind):
            return NewDetails({}, (), tuple(new))
        dated = replace(known, valid_at=draft.valid_at or known.valid_at, invalid_at=draft.invalid_at)
        starts_in_time = dated.valid_from <= known.first_created_at and dated.is_valid_at(now)
        is_undated = all(getattr(known, name) is None for name in ("valid_at", "invalid_at") if name in new)
        refused = {name for name, change in new.items() if not change}
        if not (is_undated and starts_in_time):
            refused |= {"valid_at", "invalid_at"}
        if "expires_at" in new and self._has_rival(known, replace(known, expires_at=draft.expires_at)):
            refused.add("expires_at")
        taken = {name: change for name, change in new.items() if name not in refused}
        return NewDetails(
            {attribute: value for change in taken.values() for attribute, value in change.items()},
            tuple(taken),
            tuple(name for name in new if name in refused),
        )

    def _has_rival(self, known: Fact, changed: Fact) -> bool:
        return find_rival(changed, self.latest.values(), known) is not None

    def _reinforce(self, known: Fact, draft: Fact, now: datetime) -> Fact:
        """Strengthen a memory that a statement repeats, and give it the sources and the trust of the statement.

        A less trusted statement only counts as a retrieval does: its weight, its words and its messages are not those
        of the memory. What a more trusted source repeats is immutable only if that source says so.
        """
        if not self._order.permits(Effect.OUTRANK, draft.trust_kind, known.trust_kind):
            strength, confidence = apply_reinforcement(known.strength_at(now), known.confidence)
            confidence = known.confidence if known.immutable else confidence
            return self.replace_in_place(
                replace(known, strength=strength, last_accessed_at=now, confidence=confidence, updated_at=now)
            )
        stated = max(known.confidence, min(draft.confidence, MAX_CONFIDENCE))
        strength, confidence = apply_reinforcement(known.strength_at(now), stated)
        if not self._order.permits(Effect.QUOTE_AS, known.trust_kind, draft.trust_kind):
            known = replace(
                known,
                source_kind=draft.source_kind,
                trusted_as=draft.trusted_as,
                speaker=draft.speaker or known.speaker,
                immutable=draft.immutable and not known.is_contested,
            )
        return self.replace_in_place(
            replace(
                known,
                strength=strength,
                last_accessed_at=now,
                confidence=confidence,
                importance=max(known.importance, draft.importance),
                message_ids=join_sources(known.message_ids, draft.message_ids),
                episodes=join_sources(known.episodes, draft.episodes),
                search_text=_append_text(known.search_text, draft.search_text),
                updated_at=now,
            )
        )

    # Statements that contradict a more trusted source: contested until somebody says which holds

    def _contest(
        self, draft: Fact, rivals: Sequence[Fact], now: datetime, vector_source: str | None = None
    ) -> tuple[Fact, str]:
        """Store a statement beside what it contradicts, or reinforce the contested memory that says the same.

        Returns that memory, and why it is contested.
        """
        ids = [fact.memory_id for fact in rivals]
        is_trusted = self._order.permits(Effect.END, draft.trust_kind, rivals[0].trust_kind)
        why = "says otherwise" if is_trusted else "is of a more trusted source"
        reason = f"{ids[0]} {why}: resolve the contested memory to decide which is right"
        same = next((fact for fact in self.latest.that_say(draft) if draft.repeats(fact) and fact.is_contested), None)
        if same is not None:
            contests = tuple(deduplicate([*same.contests, *ids]))
            known = self._reinforce(replace(same, contests=contests), draft, now)
            return known, f"the same statement is already contested; {reason}"
        contested = replace(draft, status=MemoryStatus.CONTESTED, contests=tuple(ids), immutable=False)
        return self.add_version(contested, vector_source), reason

    def _contest_by_patch(self, fact: Fact, amended: Fact, kind: SourceKind) -> Fact:
        """Store a correction by a less trusted source as a contested memory of its own."""
        now = self.next_time()
        memory_id = str(uuid.uuid4())
        draft = replace(
            amended,
            uuid=str(uuid.uuid4()),
            memory_id=memory_id,
            version=1,
            created_at=now,
            first_created_at=now,
            updated_at=now,
            actor=self.actor,
            status=MemoryStatus.ACTIVE,
            retired=False,
            claimed_invalid_at=amended.invalid_at,
            superseded_by=None,
            supersedes=(),
            associations=(),
            access_count=0,
            last_accessed_at=None,
            source_kind=kind,
            trusted_as=None,
            speaker=None,
            source_quote=None,
            session_id=None,
            message_ids=(),
            episodes=(),
        )
        has_same_text = amended.content == fact.content
        contested, _ = self._contest(draft, [fact], now, fact.uuid if has_same_text else None)
        return contested

    def _settle_same_statement(self, draft: Fact) -> None:
        """Retire contested memories that say the same as a new one, unless their source is trusted more."""
        for fact in self.latest.that_state(draft):
            is_same = fact.is_contested and fact.memory_id != draft.memory_id
            if is_same and not self._find_more_trusted(draft, [fact]):
                self.retire_version(
                    fact,
                    SETTLED_REASON,
                    draft.memory_id,
                    MemoryStatus.SUPERSEDED,
                    superseded_by=draft.memory_id,
                )

    def _uphold(self, fact: Fact, now: datetime) -> Fact:
        upheld = replace(without_end(fact), status=MemoryStatus.ACTIVE)
        if known := self._find_same_statement(upheld, now):
            raise Conflict(f"{known.memory_id} states the same: reject this one with `holds=false`.")
        competing = self._find_competing(upheld, now)
        contested = [self.latest[key] for key in fact.contests if key in self.latest]
        targets = [
            other
            for other in contested
            if other not in competing and other.status is MemoryStatus.ACTIVE and not other.is_never_valid
        ]
        only_ends = upheld.valid_at is None and upheld.valid_to <= fact.first_created_at
        if upheld.valid_at is None and not only_ends and (targets or competing):
            upheld = replace(upheld, valid_at=fact.first_created_at)
        ended = [*targets, *(other for other in competing if is_ended_by_start(other, upheld.valid_from))]
        for other in ended:
            self._ensure_mutable(other, self._kind)
        changed = [*targets, *self._find_changed_by(upheld, competing)]
        self._ensure_trusted(changed)
        trusted = self._order.most_trusted([upheld.trust_kind, *(other.trust_kind for other in changed)])
        if trusted != upheld.trust_kind:
            upheld = replace(upheld, trusted_as=trusted)
        upheld, _ = self._close_before_successor(upheld, competing, by_trust=False)
        upheld = self.add_next_version(fact, upheld, HOLDS_REASON, None)
        closed = self._supersede_all(ended, upheld, upheld.valid_to if only_ends else upheld.valid_from, HOLDS_REASON)
        return self.replace_in_place(replace(upheld, supersedes=closed)) if closed else upheld

    def _contest_again(self, fact: Fact) -> Fact:
        """Make a memory contested again that was resolved, and restore what it had ended."""
        self._ensure_mutable(fact, self._kind)
        self._ensure_trusted([fact])
        self.next_time()
        contested = replace(
            without_end(fact),
            status=MemoryStatus.CONTESTED,
            retired=False,
            invalid_at=fact.claimed_invalid_at,
            superseded_by=None,
            supersedes=(),
            trusted_as=None if fact.source_kind != CONSOLIDATION else fact.trusted_as,
        )
        contested = self.add_next_version(fact, contested, REVERTED_REASON, fact.superseded_by)
        for memory_id in fact.supersedes:
            ended = self.latest.get(memory_id)
            if ended and ended.superseded_by == fact.memory_id and ended.ended_reason == HOLDS_REASON:
                self.next_time()
                self._restore(ended, fact.memory_id, by_trust=False)
        return contested

    # Trust: by the order, no statement ends or narrows one of a more trusted source

    def _find_more_trusted(self, draft: Fact, facts: Iterable[Fact]) -> list[Fact]:
        """Return the facts that the draft must not end or narrow: those of more trusted sources."""
        return [fact for fact in facts if not self._order.permits(Effect.END, draft.trust_kind, fact.trust_kind)]

    def _by_slot(self, draft: Fact) -> Fact:
        """Return a draft as one of several values, or as the only one, as the slot has it from more trusted sources."""
        if draft.single_valued or draft.predicate in TYPE_PREDICATES:
            return draft
        slot = self.latest.that_may_compete(draft)
        stated = [fact for fact in slot if fact.single_valued and fact.predicate == draft.predicate]
        is_decided = any(not fact.is_contested for fact in self._find_more_trusted(draft, stated))
        return replace(draft, single_valued=True) if is_decided else draft

    def _find_contested_before(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return what the same statement of a draft contests already, or contested until it was found not to hold.

        What has ended since is left out: the draft contradicts it no longer.
        """
        start = draft.valid_at or now
        ids = [
            memory_id
            for fact in self.latest.that_say(draft)
            if draft.repeats(fact) and (fact.is_contested or fact.ended_reason == REFUTED_REASON)
            for memory_id in fact.contests
        ]
        rivals = [self.latest[memory_id] for memory_id in deduplicate(ids) if memory_id in self.latest]
        in_force = [fact for fact in rivals if fact.valid_from < draft.valid_to and start < fact.valid_to]
        return self._find_more_trusted(draft, in_force)

    def _is_locked(self, fact: Fact, kind: SourceKind | None) -> bool:
        """Return whether a fact is immutable for a source; None: for upkeep and admins, whom every one binds."""
        # Only the user and admins import as an import, so that what they made immutable then is locked by them.
        locked_by: SourceKind = "user" if fact.trust_kind == "import" else fact.trust_kind
        return fact.immutable and (kind is None or self._order.permits(Effect.LOCK, locked_by, kind))

    def _ensure_mutable(self, fact: Fact, kind: SourceKind | None) -> None:
        """Raise ImmutableMemory for a fact that is immutable for a source."""
        if self._is_locked(fact, kind):
            ensure_mutable(fact)

    def _ensure_trusted(self, facts: Iterable[Fact]) -> None:
        """Raise Forbidden for a fact of a source that is trusted more than whoever makes the change."""
        for fact in facts:
            self._order.require(Effect.HIDE, self._kind, fact.trust_kind, fact.memory_id)


def _refuse_other_owner(fact: Fact, scope: Scope) -> None:
    """Raise InvalidInput for a scope that only a memory of another owner can have: a save decides who owns a memory."""
    if (scope is Scope.GLOBAL) == fact.is_global:
        return
    if fact.is_global:
        raise InvalidInput(
            "A global memory keeps its scope: save the statement again for its user, and delete this one."
        )
    raise InvalidInput(
        "A user's memory cannot become global: let an admin save the statement again with scope global, then delete "
        "this one."
    )


def find_new_fields(known: Fact, draft: Fact, given: Collection[str]) -> tuple[str, ...]:
    """Return the given fields in which a draft says otherwise than a memory, its text included."""
    changed = ("content",) if draft.content != known.content else ()
    return (*changed, *(name for name in _differences(known, draft) if name in given and name not in changed))


def _differences(known: Fact, draft: Fact) -> dict[str, dict[str, Any]]:
    """Return what a draft says otherwise than a memory, by the field of a save: the attributes to change.

    There are none for what only a memory's own correction changes, and for its place.
    """
    metadata = {**known.metadata, **draft.metadata}
    tags = tuple(deduplicate([*known.tags, *draft.tags]))
    entity_ids = tuple(deduplicate([*known.entity_ids, *draft.entity_ids]))
    subtype = None if draft.subtype == draft.type.value else draft.subtype
    has_other_type = draft.type is not known.type or (subtype is not None and subtype != known.subtype)
    candidates: dict[str, tuple[bool, dict[str, Any]]] = {
        "type": (has_other_type, {"type": draft.type, "subtype": draft.subtype}),
        "content": (draft.content_data not in (None, known.content_data), {"content_data": draft.content_data}),
        "metadata": (metadata != known.metadata, {"metadata": metadata}),
        "tags": (tags != known.tags, {"tags": tags}),
        "valid_at": (draft.valid_at not in (None, known.valid_at), {"valid_at": draft.valid_at}),
        "invalid_at": (
            draft.invalid_at not in (None, known.invalid_at),
            {"invalid_at": draft.invalid_at, "claimed_invalid_at": draft.invalid_at},
        ),
        "expires_at": (draft.expires_at not in (None, known.expires_at), {"expires_at": draft.expires_at}),
        "entities": (entity_ids != known.entity_ids, {"entity_ids": entity_ids}),
        "source": _new_session(known, draft),
        "scope": (draft.scope is not known.scope, {}),
        "domain": (draft.domain not in (None, known.domain), {}),
        "single_valued": (draft.single_valued and not known.single_valued, {}),
        "immutable": (draft.immutable and not known.immutable, {}),
    }
    return {name: changes for name, (is_new, changes) in candidates.items() if is_new}


def _new_session(known: Fact, draft: Fact) -> tuple[bool, dict[str, Any]]:
    """Return whether a draft names a session that its memory loses, and the session if the memory has none yet.

    The messages of another session are those of the memory too, and lead to their session.
    """
    if known.session_id is None:
        return draft.session_id is not None, {"session_id": draft.session_id}
    return draft.session_id not in (None, known.session_id) and not draft.message_ids, {}


def is_ended_by_start(fact: Fact, start: datetime) -> bool:
    """Return whether a competing fact ends when another one starts at `start`."""
    return fact.effective_start == start or fact.effective_start <= start < fact.valid_to


def _followers(draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
    """Return the competing facts that start after a draft.

    A fact without a known start that ends before the draft starts precedes it, whenever it was written.
    """
    return [fact for fact in competing if fact.effective_start > draft.valid_from < fact.valid_to]


def _append_text(known: str, further: str) -> str:
    if further in known or len(known) + len(further) >= MAX_SEARCH_TEXT:
        return known
    return f"{known} {further}"


# What must not be valid at the same time: values of a single-valued predicate, and one statement twice


def find_rival(fact: Fact, others: Iterable[Fact], before: Fact | None = None) -> Fact | None:
    """Return another value of a single-valued predicate that would be valid at the same time as `fact`, or None.

    `before` is the fact as it is stored: the time that both were valid together already is no reason to refuse a
    change, which may be the one that ends it.
    """
    return next((other for other in others if _are_values(fact, other) and _gains_overlap(fact, other, before)), None)


def describe_rival(fact: Fact, rival: Fact) -> str:
    """Return why a fact cannot be stored beside a rival and what to do about it, as the end of a sentence."""
    return (
        f"valid at the same time as {rival.memory_id}, and {fact.predicate} has one value at a time: "
        f"change the times of {rival.memory_id} or delete it first"
    )


def refuse_rivals(fact: Fact, others: Iterable[Fact], before: Fact | None) -> None:
    """Raise Conflict when `fact` would be valid at the same time as another value or the same statement.

    `before` is the fact as it is stored, as in `find_rival`.
    """
    others = list(others)
    if rival := find_rival(fact, others, before):
        raise Conflict(f"The memory would be {describe_rival(fact, rival)}.")
    for other in others:
        if _are_repetitions(fact, other) and _gains_overlap(fact, other, before):
            raise Conflict(f"{other.memory_id} states the same for that time: change that memory instead.")


def _are_values(fact: Fact, other: Fact) -> bool:
    return (
        fact.single_valued
        and other.single_valued
        and fact.memory_id != other.memory_id
        and fact.dedup_key != other.dedup_key
        and (fact.subject_id, fact.predicate) == (other.subject_id, other.predicate)
    )


def _are_repetitions(fact: Fact, other: Fact) -> bool:
    return fact.memory_id != other.memory_id and fact.dedup_key == other.dedup_key


def _gains_overlap(fact: Fact, other: Fact, before: Fact | None) -> bool:
    if fact.expired_at or other.expired_at or not fact.overlaps(other):
        return False
    if before is None or before.expired_at:
        return True
    start, end = max(fact.valid_from, other.valid_from), min(fact.valid_to, other.valid_to)
    return start < before.valid_from or end > before.valid_to
