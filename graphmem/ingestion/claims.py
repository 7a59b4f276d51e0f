"""Candidates made ready: bound to their messages, in the store's own words, or refused with a reason. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from graphmem.domain.actions import Candidate, Extraction, Named
from graphmem.domain.entity import DEFAULT_TYPE, PERSON, EntityIn
from graphmem.domain.memory import FEELING_DAYS, MemoryIn, MemoryType, Scope, SourceIn, Tag, read_tag
from graphmem.domain.session import Role
from graphmem.domain.text import name_key
from graphmem.ingestion.dates import read_date
from graphmem.ingestion.likeness import are_two_people
from graphmem.ingestion.window import Line

MAX_CANDIDATES = 60
"""So many candidates of one window are looked at."""

SINGLE_VALUED = frozenset(
    [
        *("LIVES_IN", "WORKS_AT", "HAS_JOB_TITLE", "HAS_NAME", "HAS_DIET", "HAS_AGE"),
        *("IN_RELATIONSHIP_WITH", "MARRIED_TO", "REPORTS_TO", "STUDIES_AT", "DUE_ON", "SCHEDULED_FOR"),
    ]
)
"""Relations that have one value at a time; for all others two statements may hold side by side."""

EPISODIC = frozenset({MemoryType.CONVERSATION_TOPIC, MemoryType.CONVERSATION_SUMMARY})
"""Types that belong to their session until it is closed."""

BY_ASSISTANT = frozenset({MemoryType.RECOMMENDATION, MemoryType.CONVERSATION_SUMMARY, MemoryType.CONVERSATION_TOPIC})
"""What the assistant alone may be the source of."""

EXTRACTED = "extraction"
"""Source of memories that were taken from messages."""

SINCE, UNTIL = "since", "until"
"""Metadata keys of a fact taken from messages: its start and end as they were told, in the speaker's local time."""

USER = "user"
"""What prompts call the person whose memory it is, as a name key."""

_SELF = frozenset({USER, "the user", "i", "me", "myself"})
_WORD = re.compile(r"[^A-Z0-9]+")
_TAG: TypeAdapter[str] = TypeAdapter(Tag)

Refuse = Callable[[MemoryIn], str | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement ready to be linked: when its latest message was said, and whether its start was told (`dated`).

    `told_in` are the user's messages among its sources; without one it is the assistant's.
    """

    memory: MemoryIn
    told_at: datetime
    told_in: tuple[str, ...]
    retracts: bool
    dated: bool

    @property
    def by_user(self) -> bool:
        """Whether the user said so."""
        return bool(self.told_in)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A candidate that goes no further, and why; never its text."""

    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Alias:
    """A name and others for the same entity; an empty name is the user's own entity."""

    name: str
    others: tuple[str, ...]


def claims_of(
    extraction: Extraction,
    lines: Sequence[Line],
    session_id: str,
    own_name: str,
    own_names: Iterable[str],
    refuse: Refuse,
) -> tuple[list[Claim], list[Refusal]]:
    """Return what of an answer can be used, and what is refused: by confidence, class of secret, or source.

    `own_name` is that of the user's own entity, `own_names` what else the user is called.
    """
    selves = _SELF | {name_key(name) for name in (own_name, *own_names)}
    claims: list[Claim] = []
    refusals: list[Refusal] = []
    for index, candidate in enumerate(extraction.candidates):
        if index >= MAX_CANDIDATES:
            refusals.append(Refusal(candidate.type.value, f"more than {MAX_CANDIDATES} candidates at once"))
            continue
        made = _claim(candidate, lines, session_id, selves)
        reason = made if isinstance(made, str) else refuse(made.memory)
        if isinstance(made, str) or reason:
            refusals.append(Refusal(candidate.type.value, reason or ""))
        else:
            claims.append(replace(made, memory=_with_user(made.memory, candidate, own_name, selves)))
    return _distinct(claims), refusals


def aliases_of(extraction: Extraction, own_names: Iterable[str]) -> list[Alias]:
    """Return the other names an answer tells: those of the user under the empty name, those of two people never."""
    selves = _SELF | {name_key(name) for name in own_names}
    found: list[Alias] = []
    for told in extraction.names:
        names = [name.strip() for name in (told.name, *told.others) if 0 < len(name.strip()) <= 300]
        keys = {name_key(name) for name in names}
        if keys & selves:
            found.append(Alias("", tuple(name for name in names if name_key(name) not in _SELF)))
        elif len(keys) > 1 and not any(are_two_people(names[0], other) for other in names[1:]):
            found.append(Alias(names[0], tuple(names[1:])))
    return found


def _claim(candidate: Candidate, lines: Sequence[Line], session_id: str, selves: Set[str]) -> Claim | str:
    sources = [line for line in lines if line.number in candidate.messages]
    if not sources:
        return "names none of the messages"
    subject = _entity(candidate.subject, selves)
    if subject is None and not _is_self(candidate.subject, selves):
        return "names no subject"
    by_user = any(line.role is Role.USER for line in sources)
    if not by_user and candidate.type not in BY_ASSISTANT:
        return "said by the assistant only"
    latest = max(sources, key=lambda line: (line.told_at, line.number))
    zone = latest.told_at.tzinfo
    assert zone is not None
    valid_at, invalid_at = read_date(candidate.valid_at, zone), read_date(candidate.invalid_at, zone)
    if valid_at and invalid_at and invalid_at <= valid_at:
        invalid_at = None
    predicate = _predicate(candidate.predicate)
    single = candidate.single_valued and predicate in SINGLE_VALUED and not candidate.retracts
    message_ids = list(dict.fromkeys(line.message_id for line in sources))
    try:
        memory = MemoryIn(
            content=candidate.content,
            type=candidate.type,
            subject=subject,
            predicate=predicate,
            object=_entity(candidate.object, selves) if candidate.object else None,
            entities=[entity for each in candidate.entities[:20] if (entity := _entity(each, selves))],
            valid_at=valid_at or (latest.told_at if single else None),
            invalid_at=invalid_at,
            confidence=_unit(candidate.confidence),
            importance=_unit(candidate.importance),
            tags=read_tags(candidate.tags),
            scope=Scope.EPISODIC if candidate.type in EPISODIC else None,
            single_valued=single,
            source=SourceIn(session_id=session_id, message_ids=message_ids[:200]),
            expires_at=_expiry(candidate, latest.told_at),
            metadata={
                "said_by": "user" if by_user else "assistant",
                **({SINCE: candidate.valid_at} if valid_at else {}),
                **({UNTIL: candidate.invalid_at} if invalid_at else {}),
            },
        )
    except ValidationError as error:
        return f"cannot be stored: {error.errors()[0]['type']}"
    told_in = tuple(dict.fromkeys(line.message_id for line in sources if line.role is Role.USER))
    return Claim(memory, latest.told_at, told_in, candidate.retracts, valid_at is not None)


def _with_user(memory: MemoryIn, candidate: Candidate, own_name: str, selves: Set[str]) -> MemoryIn:
    """Name the user's own entity where a statement about another does; after the policy, which would read its id."""
    own = EntityIn(name=own_name, type=PERSON)
    if candidate.object and _is_self(candidate.object, selves) and memory.subject:
        return memory.model_copy(update={"object": own})
    if memory.subject and any(_is_self(each, selves) for each in candidate.entities):
        return memory.model_copy(update={"entities": [*memory.entities, own]})
    return memory


def _is_self(named: Named, selves: Set[str]) -> bool:
    return name_key(named.name) in selves


def _entity(named: Named, selves: Set[str]) -> EntityIn | None:
    """Return an entity as the store names it; None for the user's own, and for what is no name."""
    if _is_self(named, selves):
        return None
    try:
        return EntityIn(name=named.name, type=named.type or None)
    except ValidationError:
        try:
            return EntityIn(name=named.name, type=DEFAULT_TYPE)
        except ValidationError:
            return None


def _predicate(word: str) -> str | None:
    name = _WORD.sub("_", word.strip().upper()).strip("_")[:64].rstrip("_")
    return name if name and name[0].isalpha() else None


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if value == value else 0.0


def read_tags(told: Iterable[str]) -> list[str]:
    """Return the tags that are tags, without `domain:` ones, which decide where a memory is recalled."""
    tags = []
    for tag in told:
        try:
            read = read_tag(_TAG.validate_python(tag))
        except (ValidationError, ValueError):
            continue
        if not read.startswith("domain:"):
            tags.append(read)
    return tags[:10]


def _expiry(candidate: Candidate, told_at: datetime) -> datetime | None:
    return told_at + timedelta(days=FEELING_DAYS) if candidate.type is MemoryType.FEELING else None


def _distinct(claims: Sequence[Claim]) -> list[Claim]:
    """Fold claims of one window that say the same of the same subject: the later message ids join the first."""
    kept: dict[tuple[str, str, bool], Claim] = {}
    for claim in claims:
        subject = name_key(claim.memory.subject.name) if claim.memory.subject else ""
        key = (name_key(claim.memory.content), subject, claim.retracts)
        if key not in kept:
            kept[key] = claim
            continue
        first = kept[key]
        assert first.memory.source
        assert claim.memory.source
        ids = list(dict.fromkeys([*first.memory.source.message_ids, *claim.memory.source.message_ids]))
        source = first.memory.source.model_copy(update={"message_ids": ids[:200]})
        memory = first.memory.model_copy(update={"source": source})
        kept[key] = replace(first, memory=memory, told_in=tuple(dict.fromkeys([*first.told_in, *claim.told_in])))
    return list(kept.values())
