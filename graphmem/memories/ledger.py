"""The rules for changing memories, over the facts that one write may change. Pure.

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
    TYPE_PREDICATES,
    Fact,
    ImportProvenance,
    changes_of_patch,
)
from graphmem.memories.memory import MemoryPatch, MemoryStatus, MemoryType, SaveAction, Scope
from graphmem.memories.repetitions import find_new_details, reinforced
from graphmem.memories.timeline import Timeline, is_ended_by_start, refuse_rivals
from graphmem.memories.version_log import (
    CLOSED_REASON,
    HOLDS_REASON,
    MERGED_REASON,
    REFUTED_REASON,
    RESTATED_REASON,
    REVERTED_REASON,
    REWRITTEN_REASON,
    SETTLED_REASON,
    without_end,
)
from graphmem.runtime.errors import Conflict, InvalidInput, VersionConflict
from graphmem.runtime.field_types import deduplicate
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.trust import CONSOLIDATION, Effect, SourceKind, Verdict

FIXED_ASSOCIATIONS_REASON = "it is immutable, or one of the two is of a more trusted source, so that its relations stay"
"""Why a memory is not associated with another one."""

_CLAIMS = frozenset({"content", "valid_at", "invalid_at", "expires_at"})
"""The fields of a correction that change a memory's statement about the world, or for how long it holds."""


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """The result of a save: the fact that was inserted or reinforced, and the ids of the memories it superseded.

    `ignored` names the fields of a repetition that the memory does not take over.
    """

    action: SaveAction
    fact: Fact
    superseded: tuple[str, ...] = ()
    reason: str | None = None
    ignored: tuple[str, ...] = ()


class Ledger(Timeline):
    """Applies saves, corrections, ends and reverts to the latest believed versions of some memories, in order.

    `now` must be later than every earlier write of the user. By `order`, no statement ends or narrows one from a more
    trusted source; it becomes contested instead. `kind` is the source of corrections, deletions and reverts; None may
    change anything.
    """

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
        """Insert a statement, or reinforce the memory that already states it; end the memories it supersedes.

        They end when the statement starts, or at their own time in `ends`, by memory id. `reason` is stored with the
        ended memories. The fields in `given` were stated explicitly: new values in a repetition go into a next version
        of the memory. A statement that would change one from a more trusted source is stored as contested instead, or
        reinforces the contested memory that says the same; so is one that `contests` memories, by id. Raises NotFound,
        Conflict or ImmutableMemory if a memory in `supersedes` cannot be ended.
        """
        now = self.next_time()
        draft = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self.actor)
        targets = [self._get_closable(memory_id, draft.trust_kind) for memory_id in deduplicate(supersedes)]
        if known := self.find_same_statement(draft, now):
            repeated = self._repeat(known, draft, now, given)
            others = [fact for fact in targets if fact.memory_id != known.memory_id]
            kept = self.find_more_trusted(draft, others)
            closed = self.supersede_all([fact for fact in others if fact not in kept], repeated.fact, now, reason, ends)
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
        """Reinforce a memory whose statement is repeated, and put new details into its next version."""
        is_fixed = self.is_locked(known, draft.trust_kind) or not self.order.permits(
            Effect.OUTRANK, draft.trust_kind, known.trust_kind
        )
        details = find_new_details(known, draft, given, now, self.latest.values(), is_fixed=is_fixed)
        known, reason = self._reinforce(known, draft, now), "the same statement is already known"
        if details.changes:
            known = self.add_next_version(known, replace(known, **details.changes), RESTATED_REASON, None)
            reason += f", now with the {', '.join(details.taken)} of this one"
        return SaveOutcome(SaveAction.REINFORCE, known, (), reason, details.ignored)

    def _insert(
        self, draft: Fact, targets: list[Fact], now: datetime, reason: str, ends: Mapping[str, datetime] | None
    ) -> SaveOutcome:
        draft = self._by_slot(draft)
        # The targets are ended in any case, so they neither follow nor precede the draft.
        competing = [fact for fact in self.find_competing(draft, now) if fact not in targets]
        undated = draft
        if draft.valid_at is None and (targets or (competing and draft.valid_to > now)):
            draft = replace(draft, valid_at=now)
        rivals = self.find_more_trusted(draft, [*targets, *self.find_changed_by(draft, competing)])
        if rivals := rivals or self._find_contested_before(draft, now):
            contested, why = self._contest(undated, rivals, now)
            return SaveOutcome(SaveAction.CONTEST, contested, (), why)
        draft, successor = self.close_before_successor(draft, competing)
        predecessors = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        for fact in predecessors:
            self.refuse_locked(fact, draft.trust_kind)
        draft = self.add_version(draft)
        self._settle_same_statement(draft)
        ending = {fact.memory_id: fact for fact in [*targets, *predecessors]}.values()
        closed = self.supersede_all(ending, draft, draft.valid_from, reason, ends)
        if closed:
            draft = self.replace_in_place(replace(draft, supersedes=closed))
            return SaveOutcome(SaveAction.SUPERSEDE, draft, closed, f"replaced {len(closed)} earlier")
        if successor:
            return SaveOutcome(SaveAction.INSERT, draft, (), f"arrived late: {successor.memory_id} follows it")
        return SaveOutcome(SaveAction.INSERT, draft)

    def import_version(self, draft: Fact, provenance: ImportProvenance, given: Collection[str] = ()) -> SaveOutcome:
        """Insert a statement from another memory with its known time there, or repeat a known one; it ends no memory.

        A belief that ended there becomes a second version with the statement's end if it has one, and a deleted memory
        otherwise.
        """
        now = self.next_time()
        began = provenance.created_at or now
        updated = max(began, provenance.updated_at or began)
        draft = replace(draft, created_at=began, first_created_at=began, updated_at=updated, actor=self.actor)
        if provenance.superseded_by:
            draft = replace(draft, status=MemoryStatus.SUPERSEDED, superseded_by=provenance.superseded_by)
        ended = provenance.expired_at
        can_be_current = (ended is None or draft.invalid_at) and draft.is_valid_at(now)
        if can_be_current and (known := self.find_same_statement(draft, now)):
            return self._repeat(known, draft, now, given)
        draft = self._by_slot(draft)
        together = [fact for fact in self.find_competing(draft, now) if fact.overlaps(draft)]
        rivals = self.find_more_trusted(draft, together) or self._find_contested_before(draft, now)
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
        """Create a version with the changes of a patch, except its associations.

        A superseded memory that gets another end is no longer superseded. If a less trusted source changes what the
        memory says, the patch becomes a contested memory of its own; a more trusted source becomes the memory's source,
        and the memory is no longer immutable.

        Raises Forbidden for the labels of a memory from a more trusted source, VersionConflict if `if_version` is not
        the latest version, InvalidInput for a profile and if the memory would end before it starts or would need
        another owner, and Conflict if it would be valid together with another value of a single-valued predicate.
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
        kind, is_claim = self.kind, not _CLAIMS.isdisjoint(patch.model_fields_set)
        effect = Effect.END if is_claim else Effect.HIDE
        verdict = self.order.decide(effect, kind, fact.trust_kind)
        if verdict is Verdict.REFUSE:
            self.refuse_more_trusted([fact])
        elif verdict is Verdict.CONTEST and kind is not None:
            return self._contest_by_patch(fact, amended, kind)
        if kind is not None and is_claim and not self.order.permits(Effect.QUOTE_AS, fact.trust_kind, kind):
            amended = replace(amended, source_kind=kind, trusted_as=None, speaker=None, immutable=False)
        now = self.next_time()
        if "invalid_at" in changes and not fact.retired and amended.valid_to > now:
            amended = replace(amended, status=MemoryStatus.ACTIVE, superseded_by=None)
        refuse_rivals(amended, self.latest.values(), fact)
        return self.add_next_version(fact, amended, "amended", None, needs_new_vector=amended.content != fact.content)

    def rewrite_profile(self, draft: Fact, by: str) -> Fact:
        """Insert a profile, or create the next version of the profile with the same id.

        `by` is the run that wrote it. Raises Conflict if another memory of the entity states the same.
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
        """Change attributes of a memory that state nothing about the world, without a new version."""
        return self.replace_in_place(replace(self.get_mutable(memory_id), **annotations))

    def link(self, memory_id: str, entity_id: str, name: str) -> Fact:
        """Add a reference to an entity named in a memory's text; even to an immutable memory, whose text is unchanged.

        A memory that this ledger has ended is left unchanged.
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
        """Associate a memory with others, in both directions; with `replace_all`, only with these.

        Immutable memories are left unchanged unless they are new: created by this ledger, or among the memory ids in
        `new`. So are memories from sources trusted more than `by`. Raises NotFound for an unknown memory.
        """
        latest = [self.get_latest(other) for other in (memory_id, *deduplicate(others))]
        may_change = {
            fact.memory_id: self.order.permits(Effect.OUTRANK, by, fact.trust_kind)
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
        # Whichever source made a memory immutable, its relations are part of what must not change.
        is_fixed = fact.immutable and fact.uuid not in self.created and memory_id not in new
        if fact.associations == ids or is_fixed:
            return fact
        return self.replace_in_place(replace(fact, associations=ids))

    def delete(self, memory_id: str, reason: str = "deleted", by: str | None = None) -> Fact:
        """End the belief in a memory; its versions stay in history.

        Raises Forbidden for a memory from a more trusted source.
        """
        self.refuse_more_trusted([self.get_latest(memory_id)])
        return self._end_memory(memory_id, MemoryStatus.DELETED, reason, by)

    def archive(self, memory_id: str, reason: str, by: str | None = None) -> Fact:
        """End a memory whose time is over without deleting it; its versions stay in history."""
        return self._end_memory(memory_id, MemoryStatus.ARCHIVED, reason, by)

    def retire(self, memory_id: str, reason: str, by: str | None, status: MemoryStatus) -> Fact:
        """Make a memory never valid; it stays readable and names `by` as its replacement."""
        fact = self._get_mutable(memory_id)
        self.next_time()
        return self.retire_version(fact, reason, by, status, superseded_by=by)

    def merge(self, draft: Fact, memory_ids: Iterable[str], by: str | None) -> Fact:
        """Insert one statement that replaces several memories, with `by` as the cause of their end.

        A memory that holds before the statement starts stays valid up to that start; the others are retired. Raises
        ImmutableMemory if one cannot be ended, and Conflict if another current memory states the same.
        """
        sources = [self._get_closable(memory_id, None) for memory_id in memory_ids]
        self.next_time()
        for fact in sources:
            if fact.valid_from < draft.valid_from:
                self.end_at(fact, draft.valid_from, MERGED_REASON, by, draft.memory_id)
            else:
                self.retire_version(fact, MERGED_REASON, by, MemoryStatus.SUPERSEDED, superseded_by=draft.memory_id)
        now = self.next_time()
        supersedes = tuple(fact.memory_id for fact in sources)
        merged = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self.actor)
        return self.add_version(replace(merged, supersedes=supersedes))

    def close(self, memory_id: str, telling: Fact, by: str | None) -> Fact:
        """Close a plan when the memory `telling` that it is over starts, or now if that start is unknown or later.

        The plan names that memory as its replacement and `by` as the cause of its end.
        """
        plan = self._get_closable(memory_id, None)
        now = self.next_time()
        end = min(telling.valid_at or now, now)
        return self.end_at(plan, max(end, plan.valid_from), CLOSED_REASON, by, telling.memory_id)

    def resolve(self, memory_id: str, *, holds: bool) -> Fact:
        """Resolve a contested memory; with `holds=False` it is retired.

        With `holds=True`, it starts at its stated start, or else when it was first said, ends the memories in force at
        that time, and holds until the next known value; if it only states a past end, it ends the memories it contests
        at that time. It inherits the trust of the memories it ends. Raises Conflict for a memory that is not contested
        or whose statement is already current, and Forbidden if a memory to end is from a more trusted source.
        """
        fact = self.get_latest(memory_id)
        if not fact.is_contested:
            raise Conflict(
                "The memory is not contested, so there is nothing to resolve: see the list of contradictions."
            )
        self.refuse_more_trusted([fact])
        now = self.next_time()
        if holds:
            return self._uphold(fact, now)
        rival = next((key for key in fact.contests if key in self.latest), None)
        return self.retire_version(fact, REFUTED_REASON, rival, MemoryStatus.SUPERSEDED, superseded_by=rival)

    def revert(self, memory_id: str) -> Fact:
        """Undo one supersession, or the resolution of a contested memory.

        Undoing a supersession restores the memory and retires its replacement, which stays if a run closed a plan. A
        resolved memory becomes contested again, and the memories it ended are restored. Raises Forbidden if a memory to
        retire is from a more trusted source. Raises Conflict if the memory is not superseded, a consolidation run
        merged it, its replacement was itself replaced, another memory now states the same, or another value of a
        single-valued predicate that started earlier has not ended.
        """
        fact = self.get_latest(memory_id)
        if fact.contests and (fact.status is MemoryStatus.ACTIVE or fact.ended_reason == REFUTED_REASON):
            return self._contest_again(fact)
        if fact.status is not MemoryStatus.SUPERSEDED:
            raise Conflict("The memory is not superseded, so there is nothing to revert.")
        self.refuse_locked(fact, self.kind)
        self.refuse_more_trusted([fact])
        if fact.ended_reason == MERGED_REASON:
            raise Conflict(f"It was merged with others by the consolidation run {fact.ended_by}: roll that run back.")
        if fact.ended_reason == SETTLED_REASON:
            raise Conflict(f"Its statement became a separate memory: delete {fact.superseded_by} to end it.")
        # A statement that closed a plan was made for its own sake and stays.
        replacement = self.latest.get(fact.superseded_by) if fact.ended_reason != CLOSED_REASON else None
        if replacement and not replacement.retired and not replacement.is_contested:
            if replacement.status is MemoryStatus.SUPERSEDED:
                raise Conflict(f"What replaced it was replaced itself: revert {replacement.memory_id} first.")
            if fact.ended_reason == HOLDS_REASON and replacement.contests:
                self._contest_again(replacement)
                return self.latest[memory_id]
            self.refuse_more_trusted([replacement])
            self.retire(replacement.memory_id, REVERTED_REASON, memory_id, MemoryStatus.SUPERSEDED)
        self.next_time()
        return self.restore(fact, fact.superseded_by)

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
        self.refuse_locked(fact, self.kind)
        return fact

    def _get_closable(self, memory_id: str, kind: SourceKind | None) -> Fact:
        fact = self.get_latest(memory_id)
        self.refuse_locked(fact, kind)
        if fact.status is MemoryStatus.SUPERSEDED:
            raise Conflict(f"{memory_id} is already superseded by {fact.superseded_by}.")
        if fact.is_contested:
            raise Conflict(f"{memory_id} is contested: resolve it first.")
        return fact

    # Repetitions

    def _reinforce(self, known: Fact, draft: Fact, now: datetime) -> Fact:
        return self.replace_in_place(reinforced(known, draft, now, self.order))

    # Statements that contradict a more trusted source: contested until resolved

    def _contest(
        self, draft: Fact, rivals: Sequence[Fact], now: datetime, vector_source: str | None = None
    ) -> tuple[Fact, str]:
        """Store a statement next to the memories it contradicts, or reinforce the contested memory that says the same.

        Returns that memory, and why it is contested.
        """
        ids = [fact.memory_id for fact in rivals]
        is_trusted = self.order.permits(Effect.END, draft.trust_kind, rivals[0].trust_kind)
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
            if is_same and not self.find_more_trusted(draft, [fact]):
                self.retire_version(
                    fact,
                    SETTLED_REASON,
                    draft.memory_id,
                    MemoryStatus.SUPERSEDED,
                    superseded_by=draft.memory_id,
                )

    def _uphold(self, fact: Fact, now: datetime) -> Fact:
        upheld = replace(without_end(fact), status=MemoryStatus.ACTIVE)
        if known := self.find_same_statement(upheld, now):
            raise Conflict(f"{known.memory_id} states the same: reject this one with `holds=false`.")
        competing = self.find_competing(upheld, now)
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
            self.refuse_locked(other, self.kind)
        changed = [*targets, *self.find_changed_by(upheld, competing)]
        self.refuse_more_trusted(changed)
        trusted = self.order.most_trusted([upheld.trust_kind, *(other.trust_kind for other in changed)])
        if trusted != upheld.trust_kind:
            upheld = replace(upheld, trusted_as=trusted)
        upheld, _ = self.close_before_successor(upheld, competing, by_trust=False)
        upheld = self.add_next_version(fact, upheld, HOLDS_REASON, None)
        closed = self.supersede_all(ended, upheld, upheld.valid_to if only_ends else upheld.valid_from, HOLDS_REASON)
        return self.replace_in_place(replace(upheld, supersedes=closed)) if closed else upheld

    def _contest_again(self, fact: Fact) -> Fact:
        """Make a resolved memory contested again, and restore the memories it ended."""
        self.refuse_locked(fact, self.kind)
        self.refuse_more_trusted([fact])
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
                self.restore(ended, fact.memory_id, by_trust=False)
        return contested

    def _by_slot(self, draft: Fact) -> Fact:
        """Return a draft as single-valued or not, as decided for its slot by more trusted sources."""
        if draft.single_valued or draft.predicate in TYPE_PREDICATES:
            return draft
        slot = self.latest.that_may_compete(draft)
        stated = [fact for fact in slot if fact.single_valued and fact.predicate == draft.predicate]
        is_decided = any(not fact.is_contested for fact in self.find_more_trusted(draft, stated))
        return replace(draft, single_valued=True) if is_decided else draft

    def _find_contested_before(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the memories already contested by the draft's statement, or contested until it was rejected.

        Those that have ended since are left out: the draft no longer contradicts them.
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
        return self.find_more_trusted(draft, in_force)


def _refuse_other_owner(fact: Fact, scope: Scope) -> None:
    """Raise InvalidInput for a scope that would need another owner: only a save decides who owns a memory."""
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
