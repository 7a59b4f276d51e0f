"""The third step: whether a model must decide what new statements change, and asking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from graphmem.domain.actions import Reconciliation
from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.session import Role
from graphmem.domain.text import name_key
from graphmem.ingestion.claims import SINCE, UNTIL, Claim
from graphmem.ingestion.link import Doubt, Found, KnownEntity, Linked, subject_key
from graphmem.ingestion.plan import start_is_told
from graphmem.ingestion.window import Line, render
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import Completion
from graphmem.llm.prompts import Prompt, PromptTemplate, within_line

Known = Fact | Found
"""A known fact, whole or as linking found it."""


def needs_model(claims: Sequence[Claim], linked: Linked, related: Sequence[Known]) -> bool:
    """Return whether anything related is left that the rules cannot settle by themselves.

    `related` are the facts of `linked.related`, in that order. The rules settle what is known word for
    word, and a single value whose only related facts are earlier ones of its place with another object.
    """
    if linked.doubts:
        return True
    return any(
        not is_settled(claim, [related[place] for place in places], linked.entities)
        for claim, places in zip(claims, linked.near, strict=True)
    )


def is_settled(claim: Claim, near: Sequence[Known], entities: Mapping[str, str]) -> bool:
    """Return whether rules alone decide what a claim does to the facts near it."""
    if not near or claim.retracts:
        return not near
    subject = entities.get(subject_key(claim))
    if any(fact.subject_id == subject and _same_words(claim, fact) for fact in near):
        return True
    target = name_key(claim.memory.object.name) if claim.memory.object else None
    return claim.memory.single_valued and all(
        fact.subject_id == subject
        and fact.predicate == claim.memory.predicate
        and not fact.immutable
        and target is not None
        and fact.object_id is not None
        and fact.object_id != entities.get(target)
        and fact.effective_start < (claim.memory.valid_at or claim.told_at)
        for fact in near
    )


def _same_words(claim: Claim, fact: Known) -> bool:
    return name_key(claim.memory.content).rstrip(".!。 ") == name_key(fact.content).rstrip(".!。 ")


async def ask(
    model: LanguageModel,
    template: PromptTemplate,
    lines: Sequence[Line],
    claims: Sequence[Claim],
    linked: Linked,
    facts: Mapping[str, Fact],
    names: Mapping[str, EntityRef],
) -> Completion[Reconciliation]:
    """Ask what the claims change; numbers in the answer are those of the prompt, from 1."""
    prompt = prompt_of(template, lines, claims, linked, facts, names)
    return await model.complete_structured(prompt, Reconciliation, use="main")


def prompt_of(
    template: PromptTemplate,
    lines: Sequence[Line],
    claims: Sequence[Claim],
    linked: Linked,
    facts: Mapping[str, Fact],
    names: Mapping[str, EntityRef],
) -> Prompt:
    """Return the prompt of the second call; it holds no ids and no time but those of the messages and memories."""
    own = linked.entities.get("")
    called = own_name_in(lines)
    known = {each.id: number for number, each in enumerate(linked.known, 1)}
    return template.render(
        conversation=render(lines),
        new_statements=_numbered([_new(claim, called) for claim in claims]),
        known_memories=_numbered([_known(facts.get(key), names, own, called, claims[0]) for key in linked.related]),
        unclear_names=_numbered([_unclear(doubt, known) for doubt in linked.doubts]),
        known_entities=_numbered([_entity(each) for each in linked.known]),
    )


def own_name_in(lines: Sequence[Line]) -> str:
    """Return what the lines call the user."""
    return next((line.speaker for line in lines if line.role is Role.USER and line.speaker), "User")


def _unclear(doubt: Doubt, known: Mapping[str, int]) -> str:
    options = ", ".join(f"[{known[each]}]" for each in doubt.options)
    return f"{doubt.name} ({doubt.type or 'unknown type'}), which may be {options}"


def _entity(entity: KnownEntity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}){also}"


def _numbered(entries: Sequence[str]) -> str:
    told = [f"[{number}] {within_line(entry)}" for number, entry in enumerate(entries, 1)]
    return "\n".join(told) or "(none)"


def _new(claim: Claim, called: str) -> str:
    memory = claim.memory
    subject = memory.subject.name if memory.subject else called
    marks = [f"about {subject}", memory.type.value, f"told {claim.told_at:%Y-%m-%d}"]
    marks += [f"{key} {memory.metadata[key]}" for key in (SINCE, UNTIL) if key in memory.metadata]
    if claim.retracts:
        marks.append("TAKEN BACK")
    return f"{memory.content} ({'; '.join(marks)})"


def _known(fact: Fact | None, names: Mapping[str, EntityRef], own: str | None, called: str, claim: Claim) -> str:
    if fact is None:
        return "(erased)"
    subject = called if fact.subject_id == own else names[fact.subject_id].name
    marks = [f"about {subject}", fact.type.value]
    if fact.valid_at:
        marks.append(f"{'since' if start_is_told(fact) else 'told'} {_day(fact, SINCE, fact.valid_at, claim)}")
    if fact.invalid_at:
        marks.append(f"until {_day(fact, UNTIL, fact.invalid_at, claim)}")
    return f"{fact.content} ({'; '.join(marks)})"


def _day(fact: Fact, key: str, moment: datetime, claim: Claim) -> str:
    """Return a bound of a fact as it was told; else its day where the speaker is."""
    told = fact.metadata.get(key)
    return str(told) if told else f"{moment.astimezone(claim.told_at.tzinfo):%Y-%m-%d}"
