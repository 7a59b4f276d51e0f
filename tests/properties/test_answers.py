"""Whatever a model decides, a plan accounts for every statement, and the rules of versions take what it plans."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphmem.ingestion.answers import Extraction, Reconciliation
from graphmem.ingestion.candidates import Statement, collect_alias_groups
from graphmem.ingestion.link import (
    AmbiguousName,
    EntityIds,
    LinkingResult,
    PossibleEntity,
    collect_named_entities,
    resolve_names,
)
from graphmem.ingestion.plan import ActionPlanner
from graphmem.memories.entity import EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryIn, MemoryPatch, MemoryStatus
from graphmem.memories.new_memory import NewMemory, first_version
from graphmem.runtime.field_types import name_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import DEFAULT_ORDER
from tests.ingestion.conftest import midnight
from tests.ingestion.test_plan import candidate, fact
from torture.prompted_answers import answer_extraction, answer_reconciliation

OWNER = Owner("default", "mara")
ENTITIES = {
    id: EntityRef(id=id, name=name, type=type)
    for id, name, type in [
        ("me", "mara", "Person"),
        ("paul", "Paul", "Person"),
        ("smith", "Paul Smith", "Person"),
        ("calvin", "Calvin", "Person"),
        ("dad", "Calvin's dad", "Person"),
        ("rome", "Rome", "Place"),
        ("oslo", "Oslo", "Place"),
    ]
}
PERSONS = st.sampled_from([None, "Paul", "Calvin", "Paul Smith", "Someone"])
PLACES = st.sampled_from([None, "Rome", "Oslo", "Lund"])
YEARS = st.sampled_from([None, "2001-01-01", "2019-01-01", "2026-05-01", "2031-01-01"])


@st.composite
def facts(draw: st.DrawFn, number: int) -> Fact:
    start, end = draw(YEARS), draw(YEARS)
    ended: dict[str, Any] = {}
    if end and (start is None or start <= end) and draw(st.booleans()):
        ended = {"invalid_at": midnight(end)}
        if draw(st.booleans()):
            ended |= {"status": MemoryStatus.SUPERSEDED, "superseded_by": "f9"}
    target = draw(st.sampled_from([None, "rome", "oslo"]))
    subject = draw(st.sampled_from(["me", "paul", "calvin", "gone"]))
    return fact(
        f"f{number}",
        draw(st.sampled_from([f"statement {number}", f"{subject} lives in {target}"])),
        subject_id=subject,
        object_id=target,
        predicate=draw(st.sampled_from(["LIVES_IN", "LIKES"])),
        single_valued=draw(st.booleans()),
        immutable=draw(st.integers(0, 4)) == 0,
        valid_at=midnight(start) if start else None,
        entity_ids=tuple(filter(None, (subject, target))),
        **ended,
    )


@st.composite
def statements(draw: st.DrawFn, number: int) -> Statement:
    subject, place, start, end = draw(PERSONS), draw(PLACES), draw(YEARS), draw(YEARS)
    fields: dict[str, Any] = {"valid_at": midnight(start)} if start else {}
    if end and (start is None or start < end):
        fields |= {"invalid_at": midnight(end), "metadata": {"until": end}}
    return candidate(
        draw(st.sampled_from([f"new {number}", f"{subject} lives in {place}", "me lives in rome"])),
        subject=EntityIn(name=subject, type="Person") if subject else None,
        object=EntityIn(name=place) if place else None,
        predicate=draw(st.sampled_from(["LIVES_IN", "LIKES"])),
        single_valued=draw(st.booleans()),
        retracts=draw(st.integers(0, 5)) == 0,
        **fields,
    )


def _can_be_stored(content: str) -> bool:
    try:
        MemoryIn(content=content)
    except ValidationError:
        return False
    return True


def _with_usable_rests(answer: dict[str, Any]) -> Reconciliation:
    """Return an answer whose decisions leave only what can be a memory, as the step before the plan sees to."""
    for decision in answer["decisions"]:
        decision["remaining"] = [rest for rest in decision.get("remaining") or () if _can_be_stored(rest["content"])]
    return Reconciliation.model_validate(answer)


@given(st.data(), st.integers(1, 5), st.integers(0, 5), st.integers(0, 2**32))
def test_every_statement_is_applied_or_refused_whatever_is_decided(
    data: st.DataObject, statement_count: int, fact_count: int, seed: int
) -> None:
    drawn = [data.draw(facts(number)) for number in range(fact_count)]
    # No two current memories of a user say the same of one subject.
    known = {fact.memory_id: fact for fact in {(fact.subject_id, fact.content_hash): fact for fact in drawn}.values()}
    new = [data.draw(statements(number)) for number in range(statement_count)]
    listed = [*known, "erased"]
    options = [PossibleEntity(id=id, name=id, type="Person") for id in ("smith", "gone")]
    linking = LinkingResult(
        entities=EntityIds(user="me", by_name_key={"paul": "paul", "calvin": "calvin", "rome": "rome", "x": "gone"}),
        ambiguous_names=[AmbiguousName(name="Someone", type="Person", options=["smith", "gone"])],
        known=options,
        related=listed,
        related_by_statement=[list(range(len(listed))) for _ in new],
    )
    chance = random.Random(seed)
    answer = _with_usable_rests(answer_reconciliation(_prompt(len(new), len(listed)), chance))
    refs = {**ENTITIES, "gone": EntityRef(id="gone", name="Gone", type="Person")} if seed % 2 else ENTITIES
    current = {key: value for key, value in known.items() if value.subject_id in refs}
    plan = ActionPlanner(new, linking, current, refs, DEFAULT_ORDER).plan(answer)
    planned = {save.index for save in plan.saves} | {end.index for end in plan.ends}
    planned |= {deletion.index for deletion in plan.deletions}
    assert planned | {veto.index for veto in plan.vetoes} == set(range(len(new)))
    _resolve(plan.resolved_names, linking, new, refs, chance)

    ledger = Ledger(current.values(), midnight("2026-06-01"), "test")
    for end in plan.ends:
        ledger.amend(end.memory_id, MemoryPatch(invalid_at=end.at))
    for save in plan.saves:
        memory = NewMemory(save.memory, [], "user", save.reason, ends=save.ends)
        by_key = {name_key(ref.name): ref for ref in refs.values()} | {"": refs["me"]}
        for entity in memory.entities:
            key = name_key(entity.name)
            decided = plan.resolved_names.get(key)
            by_key.setdefault(key, refs[decided] if decided else EntityRef(id=key, name=entity.name, type="Thing"))
        draft = first_version(OWNER, memory, by_key, {}, midnight("2026-06-01"))
        ledger.save(draft, save.memory.supersedes, save.reason, save.ends)
    for deletion in plan.deletions:
        ledger.delete(deletion.memory_id)


def _resolve(
    decided: dict[str, str],
    linking: LinkingResult,
    new: list[Statement],
    refs: dict[str, EntityRef],
    chance: random.Random,
) -> None:
    """Resolve the names of a batch, with names that another answer gave to everything."""
    groups = collect_alias_groups(Extraction.model_validate(answer_extraction("", chance)), ["Ada"])
    written = {key: entity.name for key, entity in collect_named_entities(new, groups).items()}
    resolution = resolve_names(linking.entities.by_name_key, decided, written, refs, groups, "me")
    assert set(resolution.renames) <= set(refs)


def _prompt(statement_count: int, fact_count: int) -> str:
    counts = {"new_statements": statement_count, "known_memories": fact_count, "unclear_names": 1, "known_entities": 2}
    return "\n".join(
        f"<{section}>\n" + "\n".join(f"[{number}] entry {number}" for number in range(1, count + 1)) + f"\n</{section}>"
        for section, count in counts.items()
    )
