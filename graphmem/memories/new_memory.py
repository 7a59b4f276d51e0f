"""New memories: checks of third-party text, statements ready to save, and their first versions. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.memories.fact import DECAY_RATES, INITIAL_STRENGTH, TYPE_PREDICATES, Fact, ImportProvenance
from graphmem.memories.memory import (
    FEELING_EXPIRY_DAYS,
    MAX_QUOTE_LENGTH,
    TEMPORARY_TAG,
    MemoryIn,
    MemoryType,
    Scope,
)
from graphmem.runtime.field_types import Vector, content_hash, deduplicate, name_key, scalar_texts
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import TEXT_OF_OTHERS, SourceKind
from graphmem.text.added_texts import is_label
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.tokenising import split_words

_IMPORT_NAMESPACE = uuid.UUID("6f8b3c1e-52a7-4d0e-9b57-1c4a60d2e9f3")
"""Namespace of the ids of imported memories."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A statement to save, with options; `vector` is its text's vector, once computed.

    `reason` is stored with the superseded memories; `ends` are their end times by memory id, if not the statement's
    start. A statement that `contests` memories, by id, is saved as contested next to them. An imported statement has a
    `provenance`. With `links_names`, it is also linked to the known entities that its text names. It is saved in
    `space`, which the writer may write, or else in the writer's own memory; `speaker` is the member who stated it.
    `source_kind` is its source, and `trusted_as` the kind whose trust it has, if different. `given` names the fields
    that were stated explicitly, which a repetition passes on to the memory it repeats. `index` is the statement's
    position in the batch it was planned for.
    """

    memory: MemoryIn
    vector: Vector = field(default_factory=list)
    source_kind: SourceKind = "user"
    reason: str = "superseded"
    provenance: ImportProvenance | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)
    contests: Sequence[str] = ()
    links_names: bool = False
    space: Owner | None = None
    speaker: str | None = None
    trusted_as: SourceKind | None = None
    given: Set[str] = frozenset()
    index: int = 0

    def memory_id(self, owner: Owner) -> str:
        """Return an id for the memory: random, or always the same for the same imported statement."""
        if self.provenance is None:
            return str(uuid.uuid4())
        if self.provenance.memory_id is not None:
            return self.provenance.memory_id
        return str(uuid.uuid5(_IMPORT_NAMESPACE, f"{owner.group_id} {self.provenance.key}"))

    @property
    def trust_kind(self) -> SourceKind:
        """The source kind whose trust the statement has."""
        return self.trusted_as or self.source_kind

    @property
    def entities(self) -> list[EntityIn]:
        """The entities that the statement names: subject, object and others."""
        named = (self.memory.subject, self.memory.object, *self.memory.entities)
        return [entity for entity in named if entity]

    @property
    def message_ids(self) -> list[str]:
        """The ids of the messages that the statement was taken from."""
        return self.memory.source.message_ids if self.memory.source else []


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A stored message that a statement was taken from; `content` is its text without secrets.

    `is_of_user` marks the user's own message, which statements by strangers do not quote. `author` is the user who sent
    it to a space. If it `is_caught`, part of it addresses the assistant, so a memory neither quotes it nor is found by
    its words.
    """

    message_id: str
    uuid: str
    session_id: str
    content: str
    author: str | None = None
    is_caught: bool = False
    is_of_user: bool = False


def first_version(
    owner: Owner, new: NewMemory, refs: Mapping[str, EntityRef], sources: Mapping[str, SourceMessage], now: datetime
) -> Fact:
    """Return the first version of a new memory.

    `refs` holds the entities it names by name key, with the owner's own entity under the empty key. `sources` holds
    stored messages by id; unknown messages are ignored.
    """
    memory = new.memory
    subject = refs[name_key(memory.subject.name)] if memory.subject else refs[""]
    target = refs[name_key(memory.object.name)] if memory.object else None
    others = [refs[name_key(entity.name)] for entity in memory.entities]
    entities = {ref.id: ref for ref in [subject, *([target] if target else []), *others]}
    may_quote_user = new.trust_kind not in TEXT_OF_OTHERS
    found = [sources[message_id] for message_id in new.message_ids if message_id in sources]
    messages = [message for message in found if may_quote_user or not message.is_of_user]
    return Fact(
        uuid=str(uuid.uuid4()),
        memory_id=new.memory_id(owner),
        version=1,
        group_id=owner.group_id,
        subject_id=subject.id,
        object_id=target.id if target else None,
        entity_ids=tuple(entities),
        predicate=memory.predicate or "",
        content=memory.content,
        content_hash=content_hash(memory.content),
        content_data=memory.content_data,
        type=memory.type,
        subtype=memory.subtype,
        scope=memory.scope or Scope.PROFILE,
        domain=memory.domain,
        tags=_tags_of(memory),
        confidence=memory.confidence,
        importance=memory.importance,
        strength=INITIAL_STRENGTH,
        decay_rate=DECAY_RATES[memory.type],
        valid_at=memory.valid_at,
        invalid_at=memory.invalid_at,
        claimed_invalid_at=memory.invalid_at,
        created_at=now,
        first_created_at=now,
        updated_at=now,
        expires_at=_expiry(memory, now),
        source_kind=new.source_kind,
        trusted_as=new.trusted_as,
        source_quote=_source_quote(memory, messages),
        speaker=new.speaker or _speaker_of(memory, messages),
        session_id=(memory.source.session_id if memory.source else None)
        or (messages[0].session_id if messages else None),
        message_ids=tuple(new.message_ids),
        episodes=tuple(message.uuid for message in messages),
        immutable=memory.immutable,
        single_valued=memory.single_valued,
        metadata=memory.metadata,
        search_text=_build_search_text(memory, entities.values(), messages),
    )


def _tags_of(memory: MemoryIn) -> tuple[str, ...]:
    """Return the tags of a memory, with the temporary tag if its type makes it expire."""
    is_temporary = memory.expires_at is None and memory.type is MemoryType.FEELING
    return tuple(deduplicate([*memory.tags, TEMPORARY_TAG])) if is_temporary else tuple(memory.tags)


def _expiry(memory: MemoryIn, now: datetime) -> datetime | None:
    if memory.expires_at is None and memory.type is MemoryType.FEELING:
        return max(now, memory.valid_at or now) + timedelta(days=FEELING_EXPIRY_DAYS)
    return memory.expires_at


def _speaker_of(memory: MemoryIn, messages: Sequence[SourceMessage]) -> str | None:
    """Return the space member whose message states a memory, else the name given by its source."""
    author = next((message.author for message in messages if message.author), None)
    return author or (memory.source.speaker if memory.source else None)


def _source_quote(memory: MemoryIn, messages: Sequence[SourceMessage]) -> str | None:
    if memory.source and memory.source.quote:
        return memory.source.quote
    return next((message.content[:MAX_QUOTE_LENGTH] for message in messages if not message.is_caught), None)


def _build_search_text(memory: MemoryIn, entities: Iterable[EntityRef], messages: Iterable[SourceMessage]) -> str:
    """Return the text for full-text search of a fact, besides its statement.

    It contains the predicate, the entities, the tags, the metadata values and the source messages, because a question
    may use any of their words, even in another language than the statement's.
    """
    words = [(memory.predicate or "").replace("_", " ").lower(), *(ref.name for ref in entities)]
    words += [tag.replace("_", " ").replace("-", " ") for tag in memory.tags]
    words += scalar_texts(memory.metadata)
    return "\n".join([" ".join(words), *(message.content for message in messages if not message.is_caught)])


PLACE_TYPE = "Place"
ORGANIZATION_TYPE = "Organization"


class ImpliedTypes(NamedTuple):
    """The types of a predicate's subject and object; None means any."""

    subject: str | None
    object: str | None


_PLACES = ("LIVES_IN", "LIVED_IN", "BORN_IN", "GREW_UP_IN", "RESIDES_IN", "LOCATED_IN")
_WORK = ("WORKS_AT", "WORKED_AT", "WORKS_FOR", "WORKED_FOR", "EMPLOYED_BY", "STUDIES_AT", "STUDIED_AT")
_PEOPLE = (
    "MARRIED_TO", "ENGAGED_TO", "DIVORCED_FROM", "SPOUSE_OF", "HUSBAND_OF", "WIFE_OF", "PARTNER_OF", "FRIEND_OF",
    "COLLEAGUE_OF", "NEIGHBOUR_OF", "NEIGHBOR_OF", "ROOMMATE_OF", "SIBLING_OF", "BROTHER_OF", "SISTER_OF", "PARENT_OF",
    "MOTHER_OF", "FATHER_OF", "CHILD_OF", "SON_OF", "DAUGHTER_OF", "COUSIN_OF", "AUNT_OF", "UNCLE_OF",
    "GRANDPARENT_OF", "GRANDMOTHER_OF", "GRANDFATHER_OF", "BOSS_OF", "REPORTS_TO",
)  # fmt: skip

IMPLIED_TYPES = {
    **dict.fromkeys(_PLACES, ImpliedTypes(None, PLACE_TYPE)),
    **dict.fromkeys(_WORK, ImpliedTypes(PERSON_TYPE, ORGANIZATION_TYPE)),
    **dict.fromkeys(_PEOPLE, ImpliedTypes(PERSON_TYPE, PERSON_TYPE)),
}
"""Types by predicate, only for predicates whose subjects or objects are nearly always of one kind."""


def with_implied_types(memories: Sequence[MemoryIn]) -> list[MemoryIn]:
    """Return statements whose untyped subjects and objects have the types that their predicates imply.

    A type that any statement of the same save gives a name applies to that name everywhere.
    """
    typed = {name_key(entity.name) for memory in memories for entity in _entities_of(memory) if entity.type}
    return [_with_implied_types(memory, typed) for memory in memories]


def _with_implied_types(memory: MemoryIn, typed: set[str]) -> MemoryIn:
    implied = IMPLIED_TYPES.get(memory.predicate or "")
    if implied is None:
        return memory
    changes = {
        role: entity.model_copy(update={"type": type})
        for role, entity, type in (
            ("subject", memory.subject, implied.subject),
            ("object", memory.object, implied.object),
        )
        if entity and type and entity.type is None and name_key(entity.name) not in typed
    }
    return memory.model_copy(update=changes) if changes else memory


def _entities_of(memory: MemoryIn) -> Iterable[EntityIn]:
    return (entity for entity in (memory.subject, memory.object, *memory.entities) if entity)


SEVERAL_LINES = "it is a text of several lines or with markup, not one statement"
"""Why a text is doubtful that may look like more than one statement when displayed."""

SPEAKS_FOR_USER = "it says what the user likes, wants or does, and only a text of others says so"
"""Why a statement about the user's preferences or habits is not saved."""

NAMES_NOTHING = (
    "it does not begin with the name of what it is about: give that as its subject, or its predicate and object"
)
"""Why a text is doubtful that may address somebody instead of informing."""

GOES_ON = "it goes on after its statement with words that no name or relation of it explains"
"""Why a text is doubtful if a part of it may address somebody."""

NO_LABEL = "a name, an alias, the relation or the domain is a text: give what a thing is called in a few words"
"""Why a statement is doubtful whose labels may hold text that its content may not."""

PERSONAL_TYPES = frozenset({MemoryType.PREFERENCE, MemoryType.BEHAVIORAL_PATTERN, MemoryType.INFERRED_INTEREST})
"""Types of statements about the user that only the user makes."""

MIN_EXPLAINED = 0.5
"""Minimum share of a statement's words explained by its names and relation, unless it begins with a name."""

MAX_LABEL_WORDS = 6
"""Maximum words of a name, a relation or a domain."""

MAX_UNEXPLAINED = 2
"""Maximum unexplained words in a further clause; with more, it may address somebody."""

_MARKUP = re.compile(r"[\r\n\u2028\u2029]|^\s*(#|```|[-*>]\s)|<[/!a-zA-Z|]|\[/?[A-Z]+\]")
_CLAUSE_END = re.compile(r"[,;:.!?…،؛؟](?=\s)|[。、！？，；：—–]")


def find_doubt(memory: MemoryIn, kind: SourceKind, self_name: str) -> str | None:
    """Return why a statement is not saved unchanged, or None.

    `kind` is the kind of the saving key: one that speaks for the user vouches for the third-party text it saves.
    `self_name` is the owner's name.
    """
    if kind not in TEXT_OF_OTHERS:
        return None
    if doubt := find_label_doubt(memory, kind):
        return doubt
    text = memory.content.strip()
    if _MARKUP.search(text):
        return SEVERAL_LINES
    is_about_user = memory.subject is None or name_key(memory.subject.name) == name_key(self_name)
    if is_about_user and memory.type in PERSONAL_TYPES:
        return SPEAKS_FOR_USER
    entities = [entity for entity in (memory.subject, memory.object, *memory.entities) if entity]
    names = [self_name, *_names_of(entities)]
    explained = {word for name in names for word in split_words(name.casefold())}
    relation = memory.predicate if memory.object and memory.predicate not in TYPE_PREDICATES else None
    explained |= set(split_words((relation or "").replace("_", " ").casefold()))
    words = split_words(text.casefold())
    share = sum(word in explained for word in words) / len(words) if words else 0.0
    said_of = [name for name in names if 2 * len(name) <= len(text)]
    if not any(_begins_with(text, name) for name in said_of) and not (relation and share >= MIN_EXPLAINED):
        return NAMES_NOTHING
    further = [split_words(clause.casefold()) for clause in _CLAUSE_END.split(text)[1:]]
    if any(sum(word not in explained for word in clause) > MAX_UNEXPLAINED for clause in further):
        return GOES_ON
    return None


def find_label_doubt(memory: MemoryIn, kind: SourceKind) -> str | None:
    """Return why the names, the relation and the domain of a statement by a source are doubtful, or None."""
    if kind not in TEXT_OF_OTHERS:
        return None
    entities = [entity for entity in (memory.subject, memory.object, *memory.entities) if entity]
    relation = (memory.predicate or "").replace("_", " ")
    labels = [*_names_of(entities), relation, memory.domain or ""]
    return None if all(map(_is_short_label, labels)) else NO_LABEL


def _is_short_label(text: str) -> bool:
    return is_label(text) and "\n" not in text and len(split_words(text)) <= MAX_LABEL_WORDS


def _names_of(entities: Iterable[EntityIn]) -> Iterable[str]:
    return (name for entity in entities for name in (entity.name, *entity.aliases))


def _begins_with(text: str, name: str) -> bool:
    """Return whether a text begins with a statement about a name; addressing it, as in "Ada, …", does not count."""
    begin, rest = text[: len(name)], text[len(name) :]
    if begin.casefold() != name.casefold() or not rest:
        return False
    return rest[0].isspace() or rest[0] in "'’-" or bool(UNSPACED_LETTER.match(rest[0]))
