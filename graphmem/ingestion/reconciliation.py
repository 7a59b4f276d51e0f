"""The second model call of a window: whether the rules need it, its prompt, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from pydantic import BaseModel, ConfigDict, Field

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, ValidatedCandidate
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.name_resolution import (
    AmbiguousName,
    EntityIds,
    LinkingResult,
    PossibleEntity,
)
from graphmem.ingestion.supersession import (
    has_same_slot,
    has_stated_start,
    repeats,
)
from graphmem.ingestion.transcript import TranscriptLine, render_transcript
from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import Fact
from graphmem.models.prompts import Prompt, PromptTemplate, indent_continuations
from graphmem.models.receipt import Receipt
from graphmem.runtime.field_types import name_key
from graphmem.secrets.values import Redactor


class ReconciliationStep(BaseModel):
    """The result of linking and of the second call; `answer` is None where the rules alone decide."""

    model_config = ConfigDict(frozen=True)

    linking: LinkingResult
    answer: Reconciliation | None = None
    receipt: Receipt = Field(default_factory=Receipt)


def needs_model_call(candidates: Sequence[ValidatedCandidate], linking: LinkingResult, related: Sequence[Fact]) -> bool:
    """Return whether a name or a related fact is left that the rules cannot settle.

    `related` are the facts of `linking.related`, in that order.
    """
    if linking.ambiguous_names:
        return True
    return any(
        not is_settled_by_rules(candidate, [related[position] for position in positions], linking.entities)
        for candidate, positions in zip(candidates, linking.related_by_candidate, strict=True)
    )


def is_settled_by_rules(candidate: ValidatedCandidate, related: Sequence[Fact], entities: EntityIds) -> bool:
    """Return whether rules alone decide what a statement does to the facts related to it.

    They settle a statement that repeats a fact word for word, and a single value that is related only to earlier
    values of the same subject and predicate.
    """
    if not related or candidate.retracts:
        return not related
    if any(repeats(candidate, fact, entities) for fact in related):
        return True
    return candidate.memory.single_valued and all(_is_earlier_value(fact, candidate, entities) for fact in related)


def _is_earlier_value(fact: Fact, candidate: ValidatedCandidate, entities: EntityIds) -> bool:
    return (
        has_same_slot(candidate, fact, entities)
        and not fact.immutable
        and candidate.memory.object is not None
        and fact.object_id is not None
        and fact.object_id != entities.of_entity(candidate.memory.object)
        and fact.effective_start < candidate.effective_start
    )


def build_reconciliation_prompt(
    template: PromptTemplate,
    lines: Sequence[TranscriptLine],
    candidates: Sequence[ValidatedCandidate],
    linking: LinkingResult,
    facts: Mapping[str, Fact],
    entity_refs: Mapping[str, EntityRef],
    user_name: str,
    redact: Redactor,
) -> Prompt:
    """Return the prompt of the second call, with statements, memories, names and entities numbered from 1.

    It holds no id, and no time but those of the messages and memories, so that the same window gives the same prompt.
    """
    numbers = {entity.id: number for number, entity in enumerate(linking.known, 1)}
    user_id, zone = linking.entities.user, candidates[0].sent_at.tzinfo
    return template.render(
        conversation=render_transcript(lines),
        new_statements=_render_numbered([_render_candidate(candidate, user_name) for candidate in candidates]),
        known_memories=_render_numbered(
            [_render_known_fact(facts.get(key), entity_refs, user_id, user_name, zone) for key in linking.related]
        ),
        unclear_names=_render_numbered([_render_ambiguous_name(name, numbers) for name in linking.ambiguous_names]),
        known_entities=_render_numbered([redact(_render_possible_entity(entity)) for entity in linking.known]),
    )


def call_user(lines: Sequence[TranscriptLine], user_name: str | None, user_names: Sequence[str]) -> str:
    """Return how to call the user: by the name on their lines, else by the known one, else `User`."""
    keys = {name_key(name) for name in user_names}
    speakers = (line.speaker for line in lines if line.role is MessageRole.USER and line.speaker)
    return next((name for name in speakers if name_key(name) in keys), user_name or "User")


def _render_numbered(entries: Sequence[str]) -> str:
    return "\n".join(f"[{number}] {indent_continuations(entry)}" for number, entry in enumerate(entries, 1))


def _render_ambiguous_name(name: AmbiguousName, numbers: Mapping[str, int]) -> str:
    options = ", ".join(f"[{numbers[entity_id]}]" for entity_id in name.options)
    return f"{name.name} ({name.type or 'unknown type'}), which may be {options}"


def _render_possible_entity(entity: PossibleEntity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    relation = f": {entity.relation}" if entity.relation else ""
    return f"{entity.name} ({entity.type}){also}{relation}"


def _render_candidate(candidate: ValidatedCandidate, user_name: str) -> str:
    memory = candidate.memory
    subject = memory.subject.name if memory.subject else user_name
    marks = [f"about {subject}", memory.type.value, f"told {candidate.sent_at:%Y-%m-%d}"]
    marks += [f"{key} {memory.metadata[key]}" for key in (STATED_START_KEY, STATED_END_KEY) if key in memory.metadata]
    if candidate.retracts:
        marks.append("TAKEN BACK")
    return f"{memory.content} ({'; '.join(marks)})"


def _render_known_fact(
    fact: Fact | None,
    entity_refs: Mapping[str, EntityRef],
    user_id: str | None,
    user_name: str,
    zone: tzinfo | None,
) -> str:
    if fact is None:
        return "(erased)"
    subject = user_name if fact.subject_id == user_id else entity_refs[fact.subject_id].name
    marks = [f"about {subject}", fact.type.value]
    if fact.valid_at:
        verb = "since" if has_stated_start(fact) else "told"
        marks.append(f"{verb} {_render_day(fact, STATED_START_KEY, fact.valid_at, zone)}")
    if fact.invalid_at:
        marks.append(f"until {_render_day(fact, STATED_END_KEY, fact.invalid_at, zone)}")
    return f"{fact.content} ({'; '.join(marks)})"


def _render_day(fact: Fact, key: str, moment: datetime, zone: tzinfo | None) -> str:
    """Return a bound of a fact as it was stated, else its day in the speaker's zone."""
    stated = fact.metadata.get(key)
    return str(stated) if stated else f"{moment.astimezone(zone):%Y-%m-%d}"
