"""Candidates made ready: bound to their messages, in the store's own words, or refused with a reason. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from graphmem.domain.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, EntityIn
from graphmem.domain.memory import FEELING_EXPIRY_DAYS, MemoryIn, MemorySourceIn, MemoryType, Scope
from graphmem.domain.session import MessageRole
from graphmem.domain.tags import Tag, parse_tag
from graphmem.domain.text import name_key
from graphmem.ingestion.date_parsing import parse_local_date
from graphmem.ingestion.llm_schemas import Candidate, Extraction, Named
from graphmem.ingestion.name_matching import are_different_people
from graphmem.ingestion.transcript import TranscriptLine

MAX_CANDIDATES_PER_WINDOW = 60
"""So many candidates of one window are looked at."""

SINGLE_VALUED_PREDICATES = frozenset(
    [
        *("LIVES_IN", "WORKS_AT", "HAS_JOB_TITLE", "HAS_NAME", "HAS_DIET", "HAS_AGE"),
        *("IN_RELATIONSHIP_WITH", "MARRIED_TO", "REPORTS_TO", "STUDIES_AT", "DUE_ON", "SCHEDULED_FOR"),
    ]
)
"""Relations that have one value at a time; for all others two statements may hold side by side."""

EPISODIC = frozenset({MemoryType.CONVERSATION_TOPIC, MemoryType.CONVERSATION_SUMMARY})
"""Types that belong to their session until it is closed."""

ASSISTANT_TYPES = frozenset({MemoryType.RECOMMENDATION, MemoryType.CONVERSATION_SUMMARY, MemoryType.CONVERSATION_TOPIC})
"""What the assistant alone may be the source of."""

EXTRACTION_SOURCE = "extraction"
"""Source of memories that were taken from messages."""

STATED_START_KEY, STATED_END_KEY = "since", "until"
"""Metadata keys of a fact taken from messages: its start and end as they were told, in the speaker's local time."""

USER = "user"
"""What prompts call the person whose memory it is, as a name key."""

_SELF_NAMES = frozenset({USER, "the user", "i", "me", "myself"})
_NON_PREDICATE_CHARACTERS = re.compile(r"[^A-Z0-9]+")
_TAG_ADAPTER: TypeAdapter[str] = TypeAdapter(Tag)

PolicyCheck = Callable[[MemoryIn], str | None]


@dataclass(frozen=True, slots=True)
class ValidatedCandidate:
    """A statement ready to be linked: when its latest message was said, and whether its start was told (`is_dated`).

    `user_message_ids` are the user's messages among its sources; without one it is the assistant's.
    """

    memory: MemoryIn
    sent_at: datetime
    user_message_ids: tuple[str, ...]
    retracts: bool
    is_dated: bool

    @property
    def is_from_user(self) -> bool:
        """Whether the user said so."""
        return bool(self.user_message_ids)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that goes no further, and why; never its text."""

    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class AliasGroup:
    """A name and others for the same entity; an empty name is the user's own entity."""

    name: str
    others: tuple[str, ...]


def validate_candidates(
    extraction: Extraction,
    lines: Sequence[TranscriptLine],
    session_id: str,
    user_entity_name: str,
    user_names: Iterable[str],
    refuse: PolicyCheck,
) -> tuple[list[ValidatedCandidate], list[Rejection]]:
    """Return what of an answer can be used, and what is refused: by confidence, class of secret, or source.

    `user_entity_name` is that of the user's own entity, `user_names` what else the user is called.
    """
    user_name_keys = _SELF_NAMES | {name_key(name) for name in (user_entity_name, *user_names)}
    candidates: list[ValidatedCandidate] = []
    rejections: list[Rejection] = []
    for index, candidate in enumerate(extraction.candidates):
        if index >= MAX_CANDIDATES_PER_WINDOW:
            rejections.append(
                Rejection(candidate.type.value, f"more than {MAX_CANDIDATES_PER_WINDOW} candidates at once")
            )
            continue
        made = _validate_candidate(candidate, lines, session_id, user_name_keys)
        reason = made if isinstance(made, str) else refuse(made.memory)
        if isinstance(made, str) or reason:
            rejections.append(Rejection(candidate.type.value, reason or ""))
        else:
            candidates.append(
                replace(made, memory=_name_user_entity(made.memory, candidate, user_entity_name, user_name_keys))
            )
    return _merge_duplicates(candidates), rejections


def collect_alias_groups(extraction: Extraction, user_names: Iterable[str]) -> list[AliasGroup]:
    """Return the other names an answer tells: those of the user under the empty name, those of two people never."""
    user_name_keys = _SELF_NAMES | {name_key(name) for name in user_names}
    found: list[AliasGroup] = []
    for told in extraction.names:
        names = [name.strip() for name in (told.name, *told.others) if 0 < len(name.strip()) <= 300]
        keys = {name_key(name) for name in names}
        if keys & user_name_keys:
            found.append(AliasGroup("", tuple(name for name in names if name_key(name) not in _SELF_NAMES)))
        elif len(keys) > 1 and not any(are_different_people(names[0], other) for other in names[1:]):
            found.append(AliasGroup(names[0], tuple(names[1:])))
    return found


def _validate_candidate(
    candidate: Candidate, lines: Sequence[TranscriptLine], session_id: str, user_name_keys: Set[str]
) -> ValidatedCandidate | str:
    sources = [line for line in lines if line.number in candidate.messages]
    if not sources:
        return "names none of the messages"
    subject = _read_entity(candidate.subject, user_name_keys)
    if subject is None and not _is_user(candidate.subject, user_name_keys):
        return "names no subject"
    is_from_user = any(line.role is MessageRole.USER for line in sources)
    if not is_from_user and candidate.type not in ASSISTANT_TYPES:
        return "said by the assistant only"
    latest = max(sources, key=lambda line: (line.sent_at, line.number))
    zone = latest.sent_at.tzinfo
    assert zone is not None
    valid_at, invalid_at = parse_local_date(candidate.valid_at, zone), parse_local_date(candidate.invalid_at, zone)
    if valid_at and invalid_at and invalid_at <= valid_at:
        invalid_at = None
    predicate = _read_predicate(candidate.predicate)
    single = candidate.single_valued and predicate in SINGLE_VALUED_PREDICATES and not candidate.retracts
    message_ids = list(dict.fromkeys(line.message_id for line in sources))
    try:
        memory = MemoryIn(
            content=candidate.content,
            type=candidate.type,
            subject=subject,
            predicate=predicate,
            object=_read_entity(candidate.object, user_name_keys) if candidate.object else None,
            entities=[entity for each in candidate.entities[:20] if (entity := _read_entity(each, user_name_keys))],
            valid_at=valid_at or (latest.sent_at if single else None),
            invalid_at=invalid_at,
            confidence=_clamp_to_unit(candidate.confidence),
            importance=_clamp_to_unit(candidate.importance),
            tags=validate_tags(candidate.tags),
            scope=Scope.EPISODIC if candidate.type in EPISODIC else None,
            single_valued=single,
            source=MemorySourceIn(session_id=session_id, message_ids=message_ids[:200]),
            expires_at=_read_expiry(candidate, latest.sent_at),
            metadata={
                "said_by": "user" if is_from_user else "assistant",
                **({STATED_START_KEY: candidate.valid_at} if valid_at else {}),
                **({STATED_END_KEY: candidate.invalid_at} if invalid_at else {}),
            },
        )
    except ValidationError as error:
        return f"cannot be stored: {error.errors()[0]['type']}"
    user_message_ids = tuple(dict.fromkeys(line.message_id for line in sources if line.role is MessageRole.USER))
    return ValidatedCandidate(memory, latest.sent_at, user_message_ids, candidate.retracts, valid_at is not None)


def _name_user_entity(
    memory: MemoryIn, candidate: Candidate, user_entity_name: str, user_name_keys: Set[str]
) -> MemoryIn:
    """Name the user's own entity where a statement about another does; after the policy, which would read its id."""
    own = EntityIn(name=user_entity_name, type=PERSON_TYPE)
    if candidate.object and _is_user(candidate.object, user_name_keys) and memory.subject:
        return memory.model_copy(update={"object": own})
    if memory.subject and any(_is_user(each, user_name_keys) for each in candidate.entities):
        return memory.model_copy(update={"entities": [*memory.entities, own]})
    return memory


def _is_user(named: Named, user_name_keys: Set[str]) -> bool:
    return name_key(named.name) in user_name_keys


def _read_entity(named: Named, user_name_keys: Set[str]) -> EntityIn | None:
    """Return an entity as the store names it; None for the user's own, and for what is no name."""
    if _is_user(named, user_name_keys):
        return None
    try:
        return EntityIn(name=named.name, type=named.type or None)
    except ValidationError:
        try:
            return EntityIn(name=named.name, type=DEFAULT_ENTITY_TYPE)
        except ValidationError:
            return None


def _read_predicate(word: str) -> str | None:
    name = _NON_PREDICATE_CHARACTERS.sub("_", word.strip().upper()).strip("_")[:64].rstrip("_")
    return name if name and name[0].isalpha() else None


def _clamp_to_unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if value == value else 0.0


def validate_tags(told: Iterable[str]) -> list[str]:
    """Return the tags that are tags, without `domain:` ones, which decide where a memory is recalled."""
    tags = []
    for tag in told:
        try:
            read = parse_tag(_TAG_ADAPTER.validate_python(tag))
        except (ValidationError, ValueError):
            continue
        if not read.startswith("domain:"):
            tags.append(read)
    return tags[:10]


def _read_expiry(candidate: Candidate, sent_at: datetime) -> datetime | None:
    return sent_at + timedelta(days=FEELING_EXPIRY_DAYS) if candidate.type is MemoryType.FEELING else None


def _merge_duplicates(candidates: Sequence[ValidatedCandidate]) -> list[ValidatedCandidate]:
    """Fold candidates of one window that say the same of the same subject: the later message ids join the first."""
    kept: dict[tuple[str, str, bool], ValidatedCandidate] = {}
    for candidate in candidates:
        subject = name_key(candidate.memory.subject.name) if candidate.memory.subject else ""
        key = (name_key(candidate.memory.content), subject, candidate.retracts)
        if key not in kept:
            kept[key] = candidate
            continue
        first = kept[key]
        assert first.memory.source
        assert candidate.memory.source
        ids = list(dict.fromkeys([*first.memory.source.message_ids, *candidate.memory.source.message_ids]))
        source = first.memory.source.model_copy(update={"message_ids": ids[:200]})
        memory = first.memory.model_copy(update={"source": source})
        kept[key] = replace(
            first,
            memory=memory,
            user_message_ids=tuple(dict.fromkeys([*first.user_message_ids, *candidate.user_message_ids])),
        )
    return list(kept.values())
