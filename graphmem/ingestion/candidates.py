"""The candidates of the first model call and the statements made from them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.answers import (
    Candidate,
    DeclaredLabel,
    Extraction,
    Named,
    Screening,
    parse_local_date,
)
from graphmem.ingestion.jobs import MemoryAction
from graphmem.ingestion.screening import Catch, find_catches, find_foreign_lines
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, EntityIn
from graphmem.memories.memory import (
    FEEDBACK_TAG,
    FEELING_EXPIRY_DAYS,
    MAX_SOURCE_MESSAGES,
    PENDING_TYPES,
    TEMPORARY_TAG,
    MemoryIn,
    MemorySourceIn,
    MemoryType,
    Scope,
    Tag,
    parse_tag,
)
from graphmem.memories.names import are_different_people, may_mean_same_person
from graphmem.runtime.field_types import content_hash, deduplicate, name_key
from graphmem.tenants.trust import TEXT_OF_OTHERS, SourceKind, TrustOrder
from graphmem.text.tokenising import find_words

MAX_CANDIDATES = 60
"""Maximum candidates validated per answer; the rest are refused."""

MAX_ENTITIES = 20
"""Maximum entities used per candidate, besides its subject and object."""

MAX_TAGS = 10
"""Maximum tags used per candidate."""

MAX_DOMAIN_CHARACTERS = 60
"""Maximum characters used of a domain."""

SINGLE_VALUED_PREDICATES = frozenset(
    [
        *("LIVES_IN", "WORKS_AT", "HAS_JOB_TITLE", "HAS_NAME", "HAS_DIET", "HAS_AGE"),
        *("IN_RELATIONSHIP_WITH", "MARRIED_TO", "REPORTS_TO", "STUDIES_AT", "DUE_ON", "SCHEDULED_FOR"),
        *("PAYS_RENT", "HAS_WEIGHT", "HAS_HEIGHT", "HAS_SEATS"),
    ]
)
"""Relations with one value at a time; for all others, two statements may both be true."""

ANSWERS_TOPIC = "COMMUNICATION_PREFERENCES"
"""Topic tag of statements about how the user wants replies to be written."""

SINGLE_VALUED_OF_THINGS = frozenset({"DUE_ON", "SCHEDULED_FOR"})
"""Single-valued relations that may have several values for people, who have several deadlines and appointments."""

EPISODIC = frozenset({MemoryType.CONVERSATION_TOPIC, MemoryType.CONVERSATION_SUMMARY})
"""Types that belong to their session until it ends."""

ASSISTANT_TYPES = frozenset({MemoryType.RECOMMENDATION, MemoryType.CONVERSATION_SUMMARY, MemoryType.CONVERSATION_TOPIC})
"""Types allowed for a candidate stated only by the assistant."""

SAID_BY_KEY = "said_by"
"""Metadata key of every extracted fact: `user`, or `assistant` if only the assistant stated it."""

STATED_START_KEY, STATED_END_KEY = "since", "until"
"""Metadata keys for the stated start and end of an extracted fact, in the speaker's local time."""

USER = "user"
"""The user's name key in prompts."""

USER_ALIASES = ""
"""The name of the alias group of the user's own entity, which is stored under the user id."""

_SELF_NAMES = frozenset({USER, "the user", "i", "me", "myself"})
_NON_PREDICATE_CHARACTERS = re.compile(r"[^A-Z0-9]+")
_TAG_ADAPTER: TypeAdapter[str] = TypeAdapter(Tag)

PolicyCheck = Callable[[MemoryIn], str | None]


@dataclass(frozen=True, slots=True)
class Statement:
    """A candidate's statement, with the memory that it may become.

    `sent_at` is the local time of its latest message; `user_message_ids` are the user's messages among its sources.
    `is_dated` means that its start was stated, `retracts` that the user took it back. `stated_by` lists the sources of
    the lines that state it, as in `TranscriptLine`. A statement with a `catch` is not saved.
    """

    memory: MemoryIn
    sent_at: datetime
    user_message_ids: tuple[str, ...]
    retracts: bool
    is_dated: bool
    stated_by: tuple[tuple[SourceKind, ...], ...] = ()
    catch: Catch | None = None

    def source_kind(self, order: TrustOrder) -> SourceKind:
        """Return the statement's source."""
        return order.of_statement(self.stated_by)

    @property
    def is_from_user(self) -> bool:
        """Whether the user stated it, rather than only the assistant."""
        return bool(self.user_message_ids)

    @property
    def is_of_third_party(self) -> bool:
        """Whether a tool, a document or a page states it and the user does not."""
        return not self.is_from_user and any(origin != "assistant" for origin, *_ in self.stated_by)

    @property
    def effective_start(self) -> datetime:
        """The stated start, or else the time of the message."""
        return self.memory.valid_at or self.sent_at

    @property
    def named_entities(self) -> list[EntityIn]:
        """The subject, the object and other named entities; a subject that is the user's own entity is left out."""
        memory = self.memory
        return [entity for entity in (memory.subject, memory.object, *memory.entities) if entity]


@dataclass(frozen=True, slots=True)
class AliasGroup:
    """A name of an entity and its other names; the name `USER_ALIASES` stands for the user's own entity.

    `stated_by` lists the sources of the lines that join the names, as in `Statement`.
    """

    name: str
    others: tuple[str, ...]
    stated_by: tuple[tuple[SourceKind, ...], ...] = ()

    @property
    def is_of_user(self) -> bool:
        """Whether the names belong to the user's own entity."""
        return self.name == USER_ALIASES


def validate_candidates(
    extraction: Extraction,
    lines: Sequence[TranscriptLine],
    session_id: str,
    user_entity_name: str,
    user_names: Iterable[str],
    policy_check: PolicyCheck,
    labels: Mapping[int, DeclaredLabel] = MappingProxyType({}),
    screenings: Mapping[int, Screening] = MappingProxyType({}),
) -> tuple[list[Statement], list[MemoryAction]]:
    """Return the statements of an answer, including caught ones, and the refusals of other candidates.

    `user_entity_name` is the name of the user's own entity; `user_names` are the user's other names. `labels` (the
    declared types) and `screenings` (the model's assessment of the quoted words) are keyed by candidate index.
    """
    user_name_keys = _SELF_NAMES | {name_key(name) for name in (user_entity_name, *user_names)}
    told_names = _told_names(collect_alias_groups(extraction, (user_entity_name, *user_names)), user_name_keys)
    catches = find_catches(
        extraction.candidates, lines, screenings, lambda candidate: _is_user(candidate.subject, user_name_keys)
    )
    statements: list[Statement] = []
    refusals: list[MemoryAction] = []
    for index, candidate in enumerate(extraction.candidates):
        if index >= MAX_CANDIDATES:
            refusals.append(
                MemoryAction.refused(candidate.type.value, f"more than {MAX_CANDIDATES} candidates at once")
            )
            continue
        candidate = _without_own_names(candidate, told_names)
        statement = _to_statement(candidate, lines, session_id, user_name_keys, labels.get(index))
        reason = statement if isinstance(statement, str) else policy_check(statement.memory)
        if isinstance(statement, str) or reason:
            refusals.append(MemoryAction.refused(candidate.type.value, reason or ""))
            continue
        speaker = find_speaker(
            (line for line in lines if line.number in candidate.messages), [user_entity_name, *user_names]
        )
        own = speaker or EntityIn(name=user_entity_name, type=PERSON_TYPE)
        memory = _name_user_entity(statement.memory, candidate, own, user_name_keys)
        if speaker and memory.subject is None:
            memory = memory.model_copy(update={"subject": speaker})
        statements.append(replace(statement, memory=memory, catch=catches.get(index)))
    return _merge_duplicates(statements), refusals


def _told_names(groups: Iterable[AliasGroup], user_name_keys: Set[str]) -> list[Set[str]]:
    """Return a set of name keys for each entity with several names."""
    return [
        (user_name_keys if group.is_of_user else {name_key(group.name)}) | set(map(name_key, group.others))
        for group in groups
    ]


def _without_own_names(candidate: Candidate, told_names: Iterable[Set[str]]) -> Candidate:
    """Return a candidate without entities that the answer itself lists as other names of its subject.

    "Mara's full name is Mara Lindqvist" is about one person; an entity of that name would be a second one.
    """
    subject = name_key(candidate.subject.name)
    own = {key for names in told_names if subject in names for key in names}
    is_own = candidate.object is not None and name_key(candidate.object.name) in own - {subject}
    others = [entity for entity in candidate.entities if name_key(entity.name) not in own]
    return candidate.model_copy(update={"object": None if is_own else candidate.object, "entities": others})


def collect_alias_groups(extraction: Extraction, user_names: Iterable[str]) -> list[AliasGroup]:
    """Return the alias groups of an answer, without those that join two different people."""
    user_name_keys = _SELF_NAMES | {name_key(name) for name in user_names}
    groups: list[AliasGroup] = []
    for names in extraction.names:
        usable = [entity.name for name in (names.name, *names.others) if (entity := _try_entity(name))]
        keys = {name_key(name) for name in usable}
        if keys & user_name_keys:
            others = tuple(name for name in usable if name_key(name) not in _SELF_NAMES)
            groups.append(AliasGroup(USER_ALIASES, others))
        elif len(keys) > 1 and not any(are_different_people(usable[0], other) for other in usable[1:]):
            groups.append(AliasGroup(usable[0], tuple(usable[1:])))
    return groups


def keep_own_names(group: AliasGroup, lines: Sequence[TranscriptLine]) -> AliasGroup:
    """Return the user's names with the sources of the lines that contain them.

    Names that only occur in other people's lines are left out.
    """
    foreign = find_foreign_lines(lines)
    own = [line for line in lines if line not in foreign]
    kept = tuple(name for name in group.others if _lines_with(own, name)) if foreign else group.others
    return replace(group, others=kept, stated_by=tuple(deduplicate(_stated_by(own, kept))))


def _stated_by(lines: Sequence[TranscriptLine], names: Sequence[str]) -> list[tuple[SourceKind, ...]]:
    return [
        line.stated_by for line in lines if line.origin == "user" and any(_lines_with([line], name) for name in names)
    ]


def with_sources(group: AliasGroup, lines: Sequence[TranscriptLine]) -> AliasGroup:
    """Return names with the sources of the lines that join them.

    A join that only third-party text makes is left out if another line uses the name: it would attribute statements
    about one entity to another.
    """
    own = [line for line in lines if TEXT_OF_OTHERS.isdisjoint(line.stated_by)]
    if len(own) == len(lines):
        return group
    joined = {other: _joined_by(group.name, other, lines) for other in group.others}
    kept = [
        other
        for other in group.others
        if any(map(TEXT_OF_OTHERS.isdisjoint, joined[other])) or not _lines_with(own, other)
    ]
    stated_by = deduplicate(kinds for other in kept for kinds in joined[other])
    return replace(group, others=tuple(kept), stated_by=tuple(stated_by))


def _joined_by(name: str, other: str, lines: Sequence[TranscriptLine]) -> list[tuple[SourceKind, ...]]:
    """Return the sources of each line that joins two names, or of all lines with either name if none has both."""
    if both := _lines_with(lines, name, other):
        return [line.stated_by for line in both]
    apart = [*_lines_with(lines, name), *_lines_with(lines, other)] or lines
    return [tuple(kind for line in apart for kind in line.stated_by)]


def _lines_with(lines: Iterable[TranscriptLine], *names: str) -> list[TranscriptLine]:
    return [line for line in lines if all(find_words(name, f"{line.speaker or ''} {line.text}") for name in names)]


def _to_statement(
    candidate: Candidate,
    lines: Sequence[TranscriptLine],
    session_id: str,
    user_name_keys: Set[str],
    label: DeclaredLabel | None,
) -> Statement | str:
    """Return a candidate's statement, or why the candidate cannot be used."""
    sources = [line for line in lines if line.number in candidate.messages]
    if reason := _find_reason_against(candidate, sources, user_name_keys):
        return reason
    sent_at = max(sources, key=lambda line: (line.sent_at, line.number)).sent_at
    times = _read_times(candidate, sent_at)
    try:
        memory = _make_memory(candidate, sources, session_id, user_name_keys, label, sent_at, times)
    except ValidationError as error:
        return f"cannot be stored: {error.errors()[0]['type']}"
    user_message_ids = tuple(dict.fromkeys(line.message_id for line in sources if line.role is MessageRole.USER))
    return Statement(
        memory,
        sent_at,
        user_message_ids,
        candidate.retracts,
        times[0] is not None,
        tuple(dict.fromkeys(line.stated_by for line in sources if line.stated_by)),
    )


def _find_reason_against(
    candidate: Candidate, sources: Sequence[TranscriptLine], user_name_keys: Set[str]
) -> str | None:
    """Return why a candidate taken from these lines is not saved, or None if it can be."""
    if not sources:
        return "names none of the messages"
    if _read_entity(candidate.subject, user_name_keys) is None and not _is_user(candidate.subject, user_name_keys):
        return "names no subject"
    if _find_stating_role(sources) is MessageRole.ASSISTANT and candidate.type not in ASSISTANT_TYPES:
        return "said by the assistant only"
    return None


def _find_stating_role(sources: Iterable[TranscriptLine]) -> MessageRole:
    """Return the source of lines: the user if any line is the user's, else a tool if any is, else the assistant."""
    roles = {line.role for line in sources}
    if MessageRole.USER in roles:
        return MessageRole.USER
    return MessageRole.TOOL if MessageRole.TOOL in roles else MessageRole.ASSISTANT


def _read_times(candidate: Candidate, sent_at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the stated start and end of a candidate; an end that does not follow the start is dropped."""
    zone = sent_at.tzinfo
    assert zone is not None
    valid_at, invalid_at = parse_local_date(candidate.valid_at, zone), parse_local_date(candidate.invalid_at, zone)
    if valid_at and invalid_at and invalid_at <= valid_at:
        invalid_at = None
    if valid_at and valid_at > sent_at and candidate.type in PENDING_TYPES:
        # A plan is known, and can be found, from now on; the sentence names its day.
        valid_at = None
    return valid_at, invalid_at


def _make_memory(
    candidate: Candidate,
    sources: Sequence[TranscriptLine],
    session_id: str,
    user_name_keys: Set[str],
    label: DeclaredLabel | None,
    sent_at: datetime,
    times: tuple[datetime | None, datetime | None],
) -> MemoryIn:
    """Return a candidate as a memory to save; raise ValidationError if the store does not accept it."""
    valid_at, invalid_at = times
    subject, predicate = _read_entity(candidate.subject, user_name_keys), _read_predicate(candidate.predicate)
    said_by = _find_stating_role(sources)
    defaults = [line.defaults for line in sources if line.defaults]
    is_single_valued = candidate.single_valued and said_by is not MessageRole.TOOL
    single = not candidate.retracts and is_single_valued and _has_one_value(predicate, subject)
    message_ids = list(dict.fromkeys(line.message_id for line in sources))
    entities = [_read_entity(named, user_name_keys) for named in candidate.entities[:MAX_ENTITIES]]
    return MemoryIn(
        content=candidate.content,
        type=candidate.type,
        subtype=label.name if label else None,
        subject=subject,
        predicate=predicate,
        object=_read_entity(candidate.object, user_name_keys) if candidate.object else None,
        entities=[entity for entity in entities if entity],
        # A state with a stated end began before the message; any other value holds from the message on.
        valid_at=valid_at or (sent_at if single and not invalid_at else None),
        invalid_at=invalid_at,
        confidence=_clamp_to_unit(candidate.confidence),
        importance=_clamp_to_unit(candidate.importance),
        tags=deduplicate([*validate_tags(candidate.tags), *_maintenance_tags(candidate)]),
        scope=Scope.EPISODIC if candidate.type is MemoryType.CONVERSATION_TOPIC else None,
        domain=_read_domain(candidate),
        single_valued=single,
        source=MemorySourceIn(
            session_id=session_id,
            message_ids=message_ids[:MAX_SOURCE_MESSAGES],
            speaker=_name_of_speaker(sources),
        ),
        expires_at=_earliest([_read_expiry(candidate, sent_at), *(given.expires_at for given in defaults)]),
        metadata={
            **{name: value for given in defaults for name, value in given.metadata.items()},
            **(label.attributes if label else {}),
            SAID_BY_KEY: said_by.value,
            **({STATED_START_KEY: candidate.valid_at} if valid_at else {}),
            **({STATED_END_KEY: candidate.invalid_at} if invalid_at else {}),
        },
    )


def find_speaker(lines: Iterable[TranscriptLine], user_names: Sequence[str] = ()) -> EntityIn | None:
    """Return the speaker, from the latest line of a user; None if that is the owner of the memory.

    In a space, "the user" is the member who said the line. Elsewhere, a line belongs to somebody else if its name is
    not one that the user may have.
    """
    said = [line for line in lines if line.role is MessageRole.USER]
    if not said:
        return None
    latest = max(said, key=lambda line: (line.sent_at, line.number))
    if latest.author is None:
        is_user = latest.speaker is None or any(may_mean_same_person(latest.speaker, name) for name in user_names)
        return None if is_user else _try_entity(latest.speaker or "", PERSON_TYPE)
    aliases = [latest.speaker] if latest.speaker and name_key(latest.speaker) != name_key(latest.author or "") else []
    return EntityIn(name=latest.author or "", type=PERSON_TYPE, aliases=aliases)


def _name_of_speaker(sources: Sequence[TranscriptLine]) -> str | None:
    """Return the name on the latest user line, or else on the latest line."""
    of_user = [line for line in sources if line.role is MessageRole.USER]
    return max(of_user or sources, key=lambda line: (line.sent_at, line.number)).speaker


def _name_user_entity(memory: MemoryIn, candidate: Candidate, own: EntityIn, user_name_keys: Set[str]) -> MemoryIn:
    """Add the user's `own` entity to a statement about another entity that names the user.

    It is added after the policy check, which would mistake the user id for text of the statement.
    """
    if candidate.object and _is_user(candidate.object, user_name_keys) and memory.subject:
        return memory.model_copy(update={"object": own})
    if memory.subject and any(_is_user(named, user_name_keys) for named in candidate.entities):
        return memory.model_copy(update={"entities": [*memory.entities, own]})
    return memory


def _is_user(named: Named, user_name_keys: Set[str]) -> bool:
    return name_key(named.name) in user_name_keys


def _read_entity(named: Named, user_name_keys: Set[str]) -> EntityIn | None:
    """Return an entity to save; None for the user and for names that the store does not accept."""
    if _is_user(named, user_name_keys):
        return None
    return _try_entity(named.name, named.type or None) or _try_entity(named.name, DEFAULT_ENTITY_TYPE)


def _try_entity(name: str, type: str | None = None) -> EntityIn | None:
    try:
        return EntityIn(name=name, type=type)
    except ValidationError:
        return None


def _read_predicate(word: str) -> str | None:
    name = _NON_PREDICATE_CHARACTERS.sub("_", word.strip().upper()).strip("_")[:64].rstrip("_")
    return name if name and name[0].isalpha() else None


def _has_one_value(predicate: str | None, subject: EntityIn | None) -> bool:
    if predicate in SINGLE_VALUED_OF_THINGS:
        return subject is not None and subject.type != PERSON_TYPE
    return predicate in SINGLE_VALUED_PREDICATES


def _clamp_to_unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if value == value else 0.0


def validate_tags(words: Iterable[str]) -> list[str]:
    """Return the words that are valid tags, without `domain:` tags, which decide where a memory is recalled."""
    tags = []
    for word in words:
        try:
            tag = parse_tag(_TAG_ADAPTER.validate_python(word))
        except (ValidationError, ValueError):
            continue
        if not tag.startswith("domain:"):
            tags.append(tag)
    return tags[:MAX_TAGS]


def _maintenance_tags(candidate: Candidate) -> list[str]:
    """Return the maintenance tags of a statement: that it fades, or that it is about how to reply."""
    if candidate.type is MemoryType.FEELING:
        return [TEMPORARY_TAG]
    is_about_answers = any(tag.upper() == ANSWERS_TOPIC for tag in candidate.tags)
    return [FEEDBACK_TAG] if is_about_answers and candidate.type is MemoryType.PREFERENCE else []


def _read_domain(candidate: Candidate) -> str | None:
    """Return the domain of a statement; None for statements about the session or a feeling."""
    is_lasting = candidate.type not in EPISODIC and candidate.type is not MemoryType.FEELING
    return (candidate.domain or "").strip()[:MAX_DOMAIN_CHARACTERS] or None if is_lasting else None


def _read_expiry(candidate: Candidate, sent_at: datetime) -> datetime | None:
    return sent_at + timedelta(days=FEELING_EXPIRY_DAYS) if candidate.type is MemoryType.FEELING else None


def _merge_duplicates(statements: Sequence[Statement]) -> list[Statement]:
    """Merge statements that say the same into the first one, which collects all message ids.

    Statements that are not saved are only merged with each other.
    """
    merged: dict[Hashable, Statement] = {}
    for statement in statements:
        memory = statement.memory
        subject = name_key(memory.subject.name) if memory.subject else USER
        target = name_key(memory.object.name) if memory.object else None
        stated = (content_hash(memory.content), subject, memory.predicate, target)
        key = (*stated, statement.retracts, statement.catch is not None)
        merged[key] = _merge(merged[key], statement) if key in merged else statement
    return list(merged.values())


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def _merge(first: Statement, other: Statement) -> Statement:
    """Return a statement with the messages of another statement that says the same."""
    assert first.memory.source
    assert other.memory.source
    ids = deduplicate([*first.memory.source.message_ids, *other.memory.source.message_ids])
    source = first.memory.source.model_copy(update={"message_ids": ids[:MAX_SOURCE_MESSAGES]})
    catch = first.catch
    if catch and other.catch:
        catch = replace(catch, message_ids=(*catch.message_ids, *other.catch.message_ids))
    merged = {
        "source": source,
        "metadata": {**other.memory.metadata, **first.memory.metadata},
        "expires_at": _earliest([first.memory.expires_at, other.memory.expires_at]),
    }
    return replace(
        first,
        memory=first.memory.model_copy(update=merged),
        catch=catch,
        user_message_ids=tuple(deduplicate([*first.user_message_ids, *other.user_message_ids])),
        stated_by=tuple(deduplicate([*first.stated_by, *other.stated_by])),
    )
