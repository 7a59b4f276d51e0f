"""The third step: whether a model must decide what new statements change, and asking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.session import MessageRole
from graphmem.domain.text import name_key
from graphmem.ingestion.action_plan import has_stated_start
from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, ValidatedCandidate
from graphmem.ingestion.entity_linking import AmbiguousName, LinkingResult, PossibleEntity, RelatedFact, subject_key
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.transcript import TranscriptLine, render_transcript
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import Completion
from graphmem.llm.prompts import Prompt, PromptTemplate, indent_continuations

KnownFact = Fact | RelatedFact
"""A known fact, whole or as linking found it."""


def needs_model_call(
    candidates: Sequence[ValidatedCandidate], linking: LinkingResult, related: Sequence[KnownFact]
) -> bool:
    """Return whether anything related is left that the rules cannot settle by themselves.

    `related` are the facts of `linking.related`, in that order. The rules settle what is known word for
    word, and a single value whose only related facts are earlier ones of its place with another object.
    """
    if linking.ambiguous_names:
        return True
    return any(
        not is_settled_by_rules(candidate, [related[place] for place in places], linking.entities)
        for candidate, places in zip(candidates, linking.related_by_candidate, strict=True)
    )


def is_settled_by_rules(candidate: ValidatedCandidate, near: Sequence[KnownFact], entities: Mapping[str, str]) -> bool:
    """Return whether rules alone decide what a candidate does to the facts near it."""
    if not near or candidate.retracts:
        return not near
    subject = entities.get(subject_key(candidate))
    if any(fact.subject_id == subject and _has_same_wording(candidate, fact) for fact in near):
        return True
    target = name_key(candidate.memory.object.name) if candidate.memory.object else None
    return candidate.memory.single_valued and all(
        fact.subject_id == subject
        and fact.predicate == candidate.memory.predicate
        and not fact.immutable
        and target is not None
        and fact.object_id is not None
        and fact.object_id != entities.get(target)
        and fact.effective_start < (candidate.memory.valid_at or candidate.sent_at)
        for fact in near
    )


def _has_same_wording(candidate: ValidatedCandidate, fact: KnownFact) -> bool:
    return name_key(candidate.memory.content).rstrip(".!。 ") == name_key(fact.content).rstrip(".!。 ")


async def request_reconciliation(
    model: LanguageModel,
    template: PromptTemplate,
    lines: Sequence[TranscriptLine],
    candidates: Sequence[ValidatedCandidate],
    linking: LinkingResult,
    facts: Mapping[str, Fact],
    names: Mapping[str, EntityRef],
) -> Completion[Reconciliation]:
    """Ask what the candidates change; numbers in the answer are those of the prompt, from 1."""
    prompt = build_reconciliation_prompt(template, lines, candidates, linking, facts, names)
    return await model.complete_structured(prompt, Reconciliation, use="main")


def build_reconciliation_prompt(
    template: PromptTemplate,
    lines: Sequence[TranscriptLine],
    candidates: Sequence[ValidatedCandidate],
    linking: LinkingResult,
    facts: Mapping[str, Fact],
    names: Mapping[str, EntityRef],
) -> Prompt:
    """Return the prompt of the second call; it holds no ids and no time but those of the messages and memories."""
    own = linking.entities.get("")
    user_name = speaker_name_in(lines)
    known = {each.id: number for number, each in enumerate(linking.known, 1)}
    return template.render(
        conversation=render_transcript(lines),
        new_statements=_render_numbered([_render_candidate(candidate, user_name) for candidate in candidates]),
        known_memories=_render_numbered(
            [_render_known_fact(facts.get(key), names, own, user_name, candidates[0]) for key in linking.related]
        ),
        unclear_names=_render_numbered(
            [_render_ambiguous_name(ambiguous_name, known) for ambiguous_name in linking.ambiguous_names]
        ),
        known_entities=_render_numbered([_render_possible_entity(each) for each in linking.known]),
    )


def speaker_name_in(lines: Sequence[TranscriptLine]) -> str:
    """Return what the lines call the user."""
    return next((line.speaker for line in lines if line.role is MessageRole.USER and line.speaker), "User")


def _render_ambiguous_name(ambiguous_name: AmbiguousName, known: Mapping[str, int]) -> str:
    options = ", ".join(f"[{known[each]}]" for each in ambiguous_name.options)
    return f"{ambiguous_name.name} ({ambiguous_name.type or 'unknown type'}), which may be {options}"


def _render_possible_entity(entity: PossibleEntity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}){also}"


def _render_numbered(entries: Sequence[str]) -> str:
    told = [f"[{number}] {indent_continuations(entry)}" for number, entry in enumerate(entries, 1)]
    return "\n".join(told) or "(none)"


def _render_candidate(candidate: ValidatedCandidate, user_name: str) -> str:
    memory = candidate.memory
    subject = memory.subject.name if memory.subject else user_name
    marks = [f"about {subject}", memory.type.value, f"told {candidate.sent_at:%Y-%m-%d}"]
    marks += [f"{key} {memory.metadata[key]}" for key in (STATED_START_KEY, STATED_END_KEY) if key in memory.metadata]
    if candidate.retracts:
        marks.append("TAKEN BACK")
    return f"{memory.content} ({'; '.join(marks)})"


def _render_known_fact(
    fact: Fact | None, names: Mapping[str, EntityRef], own: str | None, user_name: str, candidate: ValidatedCandidate
) -> str:
    if fact is None:
        return "(erased)"
    subject = user_name if fact.subject_id == own else names[fact.subject_id].name
    marks = [f"about {subject}", fact.type.value]
    if fact.valid_at:
        marks.append(
            f"{'since' if has_stated_start(fact) else 'told'} {_render_day(fact, STATED_START_KEY, fact.valid_at, candidate)}"
        )
    if fact.invalid_at:
        marks.append(f"until {_render_day(fact, STATED_END_KEY, fact.invalid_at, candidate)}")
    return f"{fact.content} ({'; '.join(marks)})"


def _render_day(fact: Fact, key: str, moment: datetime, candidate: ValidatedCandidate) -> str:
    """Return a bound of a fact as it was told; else its day where the speaker is."""
    told = fact.metadata.get(key)
    return str(told) if told else f"{moment.astimezone(candidate.sent_at.tzinfo):%Y-%m-%d}"
