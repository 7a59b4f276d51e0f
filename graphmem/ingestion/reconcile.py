"""Reconciliation: link statements to known facts, and let a model decide where the rules cannot.

The second model call of a batch: whether it is needed, its prompt, and its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphmem.conversations.session import MessageRole, RunMessage
from graphmem.ingestion.answers import Reconciliation, Remainder
from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, AliasGroup, Statement
from graphmem.ingestion.jobs import MemoryAction
from graphmem.ingestion.link import (
    AmbiguousName,
    EntityIds,
    LinkingResult,
    PossibleEntity,
    RelatedFact,
    choose_user_name,
    collect_named_entities,
    has_same_slot,
    has_stated_start,
    repeats,
    select_related_facts,
)
from graphmem.ingestion.transcript import DerivedTurn, TranscriptLine, render_transcript
from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef, alias_detail, follow_aliases, read_detail_sources
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact, fact_from_row
from graphmem.memories.memory import PENDING_TYPES, MemoryIn, MemoryStatus
from graphmem.memories.names import NameReason, compare_name_lists, is_short_form
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import (
    LanguageModel,
    Prompt,
    PromptTemplate,
    Receipt,
    indent_continuations,
    load_prompts,
)
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.migrations import FACT_TEXT_FIELDS, NAME_TEXT_FIELDS
from graphmem.runtime.field_types import Vector, content_hash, name_key
from graphmem.runtime.times import AS_OF_NOW
from graphmem.secrets.scanner import Redactor, SecretPolicy, make_redactor
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import DEFAULT_ORDER, Effect, SourceKind, TrustOrder
from graphmem.text.tokenising import build_lucene_query, query_terms

FACTS_PER_CHANNEL = 24
"""Number of facts fetched per channel (vector, words, entities) before the most related are selected."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The statements of a batch of messages, or of a save, on their way into the graph.

    `lines` are the messages as shown in prompts, which call the user `user_label`; `keywords` are search words for
    known facts. `user_name` is the user's name, if known. `caught` are the statements to quarantine or refuse, and
    `refusals` say which are refused. `linking` and `answer` are the results of reconciliation. `transcript` is the
    prompt of a model that calls tools, kept in the session `run_session_id`. The statements of a save are given
    (`is_given`), by the member `speaker` of a space.
    """

    id: str = ""
    session_id: str = ""
    message_ids: Sequence[str] = ()
    lines: Sequence[TranscriptLine] = ()
    keywords: Sequence[str] = ()
    user_name: str | None = None
    user_label: str = "User"
    statements: Sequence[Statement] = ()
    caught: Sequence[Statement] = ()
    refusals: Sequence[MemoryAction] = ()
    turns: Sequence[DerivedTurn] = ()
    aliases: Sequence[AliasGroup] = ()
    linking: LinkingResult = field(default_factory=LinkingResult)
    answer: Reconciliation | None = None
    transcript: Sequence[RunMessage] = ()
    run_session_id: str = ""
    is_given: bool = False
    speaker: str | None = None

    def texts(self, owner: Owner) -> list[str]:
        """Return the texts whose vectors a write may need, except those added by the answer."""
        names = [entity.name for entity in collect_named_entities(self.statements, self.aliases).values()]
        if new_name := choose_user_name(self.user_name or owner.user_id, owner.user_id, self.aliases):
            names.append(new_name)
        return [*(statement.memory.content for statement in self.statements), *names, owner.entity_name]


# Linking


async def find_exact_matches(
    transaction: Transaction, owner: Owner, keys: Sequence[str], statements: Sequence[Statement]
) -> EntityIds:
    """Return the entities that match these name keys, by name before alias, and the user's own.

    An alias from one source is not used for a statement from a more trusted source.
    """
    rows = await transaction.run(
        "extraction.find_entities_by_keys", group_ids=[owner.group_id], keys=[*keys, name_key(owner.entity_name)]
    )
    has_sources = any(detail_sources for *_, detail_sources, _ in rows[0]["found"])
    order = await find_trust_order(transaction, owner.tenant) if has_sources else DEFAULT_ORDER
    user: str | None = None
    found: dict[str, str] = {}
    for entity_id, entity_key, alias_keys, detail_sources, is_user in rows[0]["found"]:
        if is_user:
            user = entity_id
        sources = read_detail_sources({"detail_sources": detail_sources})
        for key in keys:
            given_by = sources.get(alias_detail(key), "user")
            is_alias = key in alias_keys and order.permits(
                Effect.REDIRECT, given_by, source_of_name(key, statements, order)
            )
            if entity_key == key or (is_alias and key not in found):
                found[key] = entity_id
    return EntityIds(user=user, by_name_key=found)


def source_of_name(key: str, statements: Iterable[Statement], order: TrustOrder) -> SourceKind:
    """Return the most trusted source of the statements that use a name, or the user if none does."""
    kinds = [one.source_kind(order) for one in statements if key in name_keys_of(one.memory)]
    return order.most_trusted(kinds or ["user"])


def name_keys_of(memory: MemoryIn) -> set[str]:
    """Return the keys of the names in a statement."""
    return {name_key(entity.name) for entity in (memory.subject, memory.object, *memory.entities) if entity}


def _ids_by_alias(aliases: Sequence[AliasGroup], entities: EntityIds) -> dict[str, str]:
    """Return entity ids for a group's unknown names if its full name, or only one entity by its aliases, is known."""
    found: dict[str, str] = {}
    for group in aliases:
        if group.is_of_user:
            continue
        known = {**found, **entities.by_name_key}
        keys = [name_key(name) for name in (group.name, *group.others)]
        ids = list(dict.fromkeys(known[key] for key in keys if key in known))
        if keys[0] in known or len(ids) == 1:
            found.update({key: ids[0] for key in keys if key not in known})
    return found


def _is_called(entity: EntityIn, possible: PossibleEntity) -> bool:
    """Return whether a known person may be called by a name: an alias, or part of the person's own name."""
    return possible.type == PERSON_TYPE and (
        name_key(entity.name) in map(name_key, possible.aliases) or is_short_form(entity.name, possible.name)
    )


def _is_unsettled(options: Sequence[str], known_id: str | None) -> bool:
    """Return whether a name may mean one of `options` other than the known entity of exactly this name."""
    return known_id is None or (known_id in options and len(options) > 1)


def _build_fulltext_query(owner: Owner, text: str, fields: Sequence[str]) -> str:
    return build_lucene_query(query_terms(text), [owner.group_key], fields)


# The second call


class TextVectors:
    """The vectors of the texts of one batch; each text is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.by_text: dict[str, Vector] = {}

    async def add(self, texts: Sequence[str]) -> None:
        """Compute the vectors that are missing."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.by_text]
        if missing:
            self.by_text.update(zip(missing, await self._embedder.embed(missing), strict=True))


class ReconciliationStep(BaseModel):
    """The result of linking and of the second call; `answer` is None if the rules alone decide.

    `texts` are texts that the answer may save besides the statements: known facts it names, and what remains of them.
    """

    model_config = ConfigDict(frozen=True)

    linking: LinkingResult
    answer: Reconciliation | None = None
    texts: list[str] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)


class Reconciler:
    """Links statements to known facts, and asks a model to decide on them."""

    def __init__(self, graph: Graph, entities: EntityStore, memory_writer: MemoryWriter, policy: SecretPolicy) -> None:
        self._graph = graph
        self._entities = entities
        self._memory_writer = memory_writer
        self._policy = policy
        self._prompt = load_prompts()["reconcile"]

    async def reconcile(
        self, owner: Owner, batch: Batch, vectors: TextVectors, model: LanguageModel
    ) -> ReconciliationStep:
        """Link the statements of a batch, and ask a model if it must decide on a related fact or a name."""
        await vectors.add(batch.texts(owner))
        linking, related = await self._link(owner, batch.statements, batch.aliases, vectors.by_text, batch.keywords)
        if not needs_model_call(batch.statements, linking, related):
            return ReconciliationStep(linking=linking)
        subjects = sorted({fact.subject_id for fact in related})
        entity_refs = await self._graph.read(lambda transaction: self._entities.get_refs(transaction, owner, subjects))
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        prompt = build_reconciliation_prompt(
            self._prompt, batch.lines, batch.statements, linking, related, entity_refs, batch.user_label, redact
        )
        answer = await model.complete_structured(prompt, Reconciliation, use="main")
        decisions = [
            decision.model_copy(
                update={
                    "reason": redact(decision.reason),
                    "remaining": self._check_remainders(owner, decision.remaining),
                }
            )
            for decision in answer.value.decisions
        ]
        numbers = sorted({number for decision in decisions for number in decision.known})
        named = [related[number - 1] for number in numbers if 1 <= number <= len(related)]
        return ReconciliationStep(
            linking=linking,
            answer=answer.value.model_copy(update={"decisions": decisions}),
            texts=[
                *(fact.content for fact in named if fact.status is MemoryStatus.ACTIVE),
                *(remainder.content for decision in decisions for remainder in decision.remaining),
            ],
            receipt=answer.receipt,
        )

    async def _link(
        self,
        owner: Owner,
        statements: Sequence[Statement],
        aliases: Sequence[AliasGroup],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> tuple[LinkingResult, list[Fact]]:
        """Return the linking result and its related facts; `vectors` holds the vectors of all contents and names."""
        named = collect_named_entities(statements, aliases)
        entities = await self._graph.read(
            lambda transaction: find_exact_matches(transaction, owner, list(named), statements)
        )
        entities = entities.with_names(_ids_by_alias(aliases, entities))
        same, known, ambiguous_names = await self._find_similar_names(owner, statements, named, entities, vectors)
        entities = entities.with_names(same)
        found = await self._find_related_facts(owner, statements, entities, vectors, keywords)
        related, related_by_statement = select_related_facts(found, statements, entities)
        linking = LinkingResult(
            entities=entities,
            known=known,
            ambiguous_names=ambiguous_names,
            related=[fact.memory_id for fact in related],
            related_by_statement=related_by_statement,
        )
        return linking, related

    async def _find_similar_names(
        self,
        owner: Owner,
        statements: Sequence[Statement],
        named: Mapping[str, EntityIn],
        entities: EntityIds,
        vectors: Mapping[str, Vector],
    ) -> tuple[dict[str, str], list[PossibleEntity], list[AmbiguousName]]:
        """Return the ids for names that differ only in spelling, and the ambiguous names with their possible entities.

        A name that exactly one known entity has is not ambiguous, unless it is a person's and another known person
        shares it: as an alias, with a surname, or with a distinguishing addition.
        """
        compared = {
            key: entity
            for key, entity in named.items()
            if key not in entities.by_name_key
            or (entity.type == PERSON_TYPE and entities.by_name_key[key] != entities.user)
        }
        if not compared:
            return {}, [], []
        rows = await self._graph.fetch_value(
            "extraction.find_similar_entities",
            group_id=owner.group_id,
            names=[
                {
                    "key": key,
                    "words": _build_fulltext_query(owner, entity.name, NAME_TEXT_FIELDS),
                    "vector": vectors[entity.name],
                }
                for key, entity in compared.items()
            ],
        )
        same: dict[str, str] = {}
        known: dict[str, PossibleEntity] = {}
        options: dict[str, list[str]] = {}
        has_sources = any(given["detail_sources"] for _, _, given, _ in rows)
        order = DEFAULT_ORDER
        if has_sources:
            order = await self._graph.read(lambda transaction: find_trust_order(transaction, owner.tenant))
        for key, stored, given, similarity in rows:
            if given["detail_sources"]:
                stored["aliases"] = follow_aliases(given, source_of_name(key, statements, order), order)
            possible = PossibleEntity(**stored)
            if key in entities.by_name_key:
                if entities.by_name_key[key] == possible.id or _is_called(compared[key], possible):
                    known[possible.id] = possible
                    options.setdefault(key, []).append(possible.id)
                continue
            name, known_names = compared[key], (possible.name, *possible.aliases)
            reason = compare_name_lists([name.name], name.type, known_names, possible.type, similarity)
            if reason is NameReason.SAME_WORDS:
                same.setdefault(key, possible.id)
            elif reason is not None:
                known[possible.id] = possible
                options.setdefault(key, []).append(possible.id)
        ambiguous_names = [
            AmbiguousName(name=compared[key].name, type=compared[key].type, options=ids)
            for key, ids in options.items()
            if key not in same and _is_unsettled(ids, entities.by_name_key.get(key))
        ]
        asked = {entity_id for ambiguous_name in ambiguous_names for entity_id in ambiguous_name.options}
        possible_entities = [known[entity_id] for entity_id in asked]
        return same, sorted(possible_entities, key=lambda entity: (name_key(entity.name), entity.id)), ambiguous_names

    async def _find_related_facts(
        self,
        owner: Owner,
        statements: Sequence[Statement],
        entities: EntityIds,
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> list[RelatedFact]:
        contents = [statement.memory.content for statement in statements]
        rows = await self._graph.fetch(
            "extraction.find_related_facts",
            group_id=owner.group_id,
            vectors=[vectors[content] for content in contents],
            words=_build_fulltext_query(owner, " ".join([*keywords, *contents]), FACT_TEXT_FIELDS),
            entity_ids=sorted({entity_id for statement in statements for entity_id in entities.named_in(statement)}),
            pairs=[
                [subject, statement.memory.predicate]
                for statement in statements
                if (subject := entities.of_subject(statement))
            ],
            hashes=[content_hash(content) for content in contents],
            user_id=entities.user,
            pending_types=sorted(PENDING_TYPES),
            ends_after=min(statement.sent_at for statement in statements).astimezone(UTC),
            known_at=AS_OF_NOW,
            limit=FACTS_PER_CHANNEL,
        )
        return [RelatedFact(fact_from_row(row), row["similarities"]) for row in rows]

    def _check_remainders(self, owner: Owner, remainders: Sequence[Remainder]) -> list[Remainder]:
        """Return the statements worded by the second call, without those that the policy rejects."""
        checked = []
        for remainder in remainders:
            try:
                memory = MemoryIn(content=remainder.content)
            except ValidationError:
                continue
            if not self._memory_writer.rejection_reason(owner, memory):
                checked.append(remainder.model_copy(update={"content": memory.content}))
        return checked


def needs_model_call(statements: Sequence[Statement], linking: LinkingResult, related: Sequence[Fact]) -> bool:
    """Return whether any name or related fact is left that the rules cannot settle.

    `related` are the facts of `linking.related`, in that order.
    """
    if linking.ambiguous_names:
        return True
    return any(
        not is_settled_by_rules(statement, [related[position] for position in positions], linking.entities)
        for statement, positions in zip(statements, linking.related_by_statement, strict=True)
    )


def is_settled_by_rules(statement: Statement, related: Sequence[Fact], entities: EntityIds) -> bool:
    """Return whether rules alone decide a statement's effect on its related facts.

    They settle a statement that repeats a fact word for word, and a single value that is related only to earlier values
    of the same subject and predicate.
    """
    if not related or statement.retracts:
        return not related
    if any(repeats(statement, fact, entities) for fact in related):
        return True
    return statement.memory.single_valued and all(_is_earlier_value(fact, statement, entities) for fact in related)


def _is_earlier_value(fact: Fact, statement: Statement, entities: EntityIds) -> bool:
    return (
        has_same_slot(statement, fact, entities)
        and not fact.immutable
        and statement.memory.object is not None
        and fact.object_id is not None
        and fact.object_id != entities.of_entity(statement.memory.object)
        and fact.effective_start < statement.effective_start
    )


def build_reconciliation_prompt(
    template: PromptTemplate,
    lines: Sequence[TranscriptLine],
    statements: Sequence[Statement],
    linking: LinkingResult,
    related: Sequence[Fact],
    entity_refs: Mapping[str, EntityRef],
    user_name: str,
    redact: Redactor,
) -> Prompt:
    """Return the prompt of the second call, with statements, memories, names and entities numbered from 1.

    It contains no ids, and no times except those of the messages and memories, so that the same batch gives the same
    prompt.
    """
    numbers = {entity.id: number for number, entity in enumerate(linking.known, 1)}
    user_id, zone = linking.entities.user, statements[0].sent_at.tzinfo
    return template.render(
        conversation=render_transcript(lines),
        new_statements=_render_numbered([_render_statement(statement, user_name) for statement in statements]),
        known_memories=_render_numbered(
            [_render_known_fact(fact, entity_refs, user_id, user_name, zone) for fact in related]
        ),
        unclear_names=_render_numbered([_render_ambiguous_name(name, numbers) for name in linking.ambiguous_names]),
        known_entities=_render_numbered([redact(_render_possible_entity(entity)) for entity in linking.known]),
    )


def call_user(lines: Sequence[TranscriptLine], user_name: str | None, user_names: Sequence[str]) -> str:
    """Return how to call the user: by the name on their lines, else by the known name, else `User`."""
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


def _render_statement(statement: Statement, user_name: str) -> str:
    memory = statement.memory
    subject = memory.subject.name if memory.subject else user_name
    marks = [f"about {subject}", memory.type.value, f"told {statement.sent_at:%Y-%m-%d}"]
    marks += [f"{key} {memory.metadata[key]}" for key in (STATED_START_KEY, STATED_END_KEY) if key in memory.metadata]
    if statement.retracts:
        marks.append("TAKEN BACK")
    return f"{memory.content} ({'; '.join(marks)})"


def _render_known_fact(
    fact: Fact,
    entity_refs: Mapping[str, EntityRef],
    user_id: str | None,
    user_name: str,
    zone: tzinfo | None,
) -> str:
    if fact.subject_id not in entity_refs:
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
