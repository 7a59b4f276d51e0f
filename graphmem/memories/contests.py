"""Statements that contradict a more trusted source: contested until somebody says which holds. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from graphmem.memories.end_reasons import HOLDS_REASON, REFUTED_REASON, REVERTED_REASON, SETTLED_REASON
from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.timeline import Timeline, is_ended_by_start
from graphmem.memories.trust_checks import TrustChecks
from graphmem.memories.version_log import VersionLog, ensure_mutable, without_end
from graphmem.runtime.errors import Conflict
from graphmem.runtime.field_types import deduplicate
from graphmem.tenants.trust import CONSOLIDATION, SourceKind


class Contests:
    """Stores statements that contradict a more trusted source beside it, and resolves them."""

    def __init__(self, log: VersionLog, timeline: Timeline, trust: TrustChecks) -> None:
        self._log = log
        self._timeline = timeline
        self._trust = trust

    def contest(
        self, draft: Fact, rivals: Sequence[Fact], now: datetime, vector_source: str | None = None
    ) -> tuple[Fact, str]:
        """Store a statement beside what it contradicts, or reinforce the contested memory that says the same.

        Returns that memory, and why it is contested.
        """
        ids = [fact.memory_id for fact in rivals]
        reason = f"{ids[0]} is of a more trusted source: resolve the contested memory to say which holds"
        same = next((fact for fact in self._log.latest.that_state(draft) if fact.is_contested), None)
        if same is not None:
            contests = tuple(deduplicate([*same.contests, *ids]))
            known = self._timeline.reinforce(replace(same, contests=contests), draft, now)
            return known, f"the same statement is already contested; {reason}"
        contested = replace(draft, status=MemoryStatus.CONTESTED, contests=tuple(ids))
        return self._log.add_version(contested, vector_source), reason

    def contest_by_patch(self, fact: Fact, amended: Fact, kind: SourceKind) -> Fact:
        """Store a correction by a less trusted source as a contested memory of its own."""
        now = self._log.next_time()
        memory_id = str(uuid.uuid4())
        draft = replace(
            amended,
            uuid=str(uuid.uuid4()),
            memory_id=memory_id,
            version=1,
            created_at=now,
            first_created_at=now,
            updated_at=now,
            actor=self._log.actor,
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
        contested, _ = self.contest(draft, [fact], now, fact.uuid if has_same_text else None)
        return contested

    def settle_same_statement(self, draft: Fact) -> None:
        """Retire contested memories that say the same as a new one, unless their source is trusted more."""
        for fact in self._log.latest.that_state(draft):
            is_same = fact.is_contested and fact.memory_id != draft.memory_id
            if is_same and not fact.immutable and not self._trust.find_more_trusted(draft, [fact]):
                self._log.retire_version(
                    fact,
                    SETTLED_REASON,
                    draft.memory_id,
                    MemoryStatus.SUPERSEDED,
                    superseded_by=draft.memory_id,
                )

    def resolve(self, memory_id: str, *, holds: bool) -> Fact:
        """Uphold or retire a contested memory, as `Ledger.resolve` says."""
        fact = self._log.get_latest(memory_id)
        if not fact.is_contested:
            raise Conflict(
                "The memory is not contested, so there is nothing to resolve: list what is by contradictions."
            )
        self._trust.ensure_trusted([fact])
        now = self._log.next_time()
        if holds:
            return self._uphold(fact, now)
        rival = next((key for key in fact.contests if key in self._log.latest), None)
        return self._log.retire_version(fact, REFUTED_REASON, rival, MemoryStatus.SUPERSEDED, superseded_by=rival)

    def _uphold(self, fact: Fact, now: datetime) -> Fact:
        upheld = replace(without_end(fact), status=MemoryStatus.ACTIVE)
        if known := self._timeline.find_same_statement(upheld, now):
            raise Conflict(f"{known.memory_id} states the same: resolve this one with holds false.")
        competing = self._timeline.find_competing(upheld, now)
        contested = [self._log.latest[key] for key in fact.contests if key in self._log.latest]
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
            ensure_mutable(other)
        changed = [*targets, *self._timeline.find_changed_by(upheld, competing)]
        self._trust.ensure_trusted(changed)
        trusted = self._trust.order.most_trusted([upheld.trust_kind, *(other.trust_kind for other in changed)])
        if trusted != upheld.trust_kind:
            upheld = replace(upheld, trusted_as=trusted)
        upheld, _ = self._timeline.close_before_successor(upheld, competing, by_trust=False)
        upheld = self._log.add_next_version(fact, upheld, HOLDS_REASON, None)
        closed = self._timeline.supersede_all(
            ended, upheld, upheld.valid_to if only_ends else upheld.valid_from, HOLDS_REASON
        )
        return self._log.replace_in_place(replace(upheld, supersedes=closed)) if closed else upheld

    def reopen(self, fact: Fact) -> Fact:
        """Make a memory contested again that was resolved, and restore what it had ended."""
        ensure_mutable(fact)
        self._trust.ensure_trusted([fact])
        self._log.next_time()
        contested = replace(
            without_end(fact),
            status=MemoryStatus.CONTESTED,
            retired=False,
            invalid_at=fact.claimed_invalid_at,
            superseded_by=None,
            supersedes=(),
            trusted_as=None if fact.source_kind != CONSOLIDATION else fact.trusted_as,
        )
        contested = self._log.add_next_version(fact, contested, REVERTED_REASON, fact.superseded_by)
        for memory_id in fact.supersedes:
            ended = self._log.latest.get(memory_id)
            if ended and ended.superseded_by == fact.memory_id and ended.ended_reason == HOLDS_REASON:
                self._log.next_time()
                self._timeline.reopen(ended, fact.memory_id, by_trust=False)
        return contested
