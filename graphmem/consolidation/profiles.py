"""Entity profiles: a model writes one from current facts, and a run stores the parts that the facts support."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from pydantic import BaseModel, Field

from graphmem.consolidation.guards import USER_WORDS
from graphmem.consolidation.models import RunPhase, RunStatus
from graphmem.consolidation.run_store import RunStore, RunUpdate, fetch_entities, load_zone
from graphmem.consolidation.text_checks import find_untold
from graphmem.memories.entity import Entity, ProfileSentence, number_sentences
from graphmem.memories.fact import DECAY_RATES, Fact, fact_from_row
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import DEFAULT_PREDICATES, MemoryType, Scope
from graphmem.memories.names import mentions_name
from graphmem.memories.saving import FactLoader, FactWrite
from graphmem.memories.snapshot import ElementKind
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel, LenientAnswer, PromptTemplate, Receipt, indent_continuations
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Conflict, ModelAnswerUnusable, ModelUnavailable
from graphmem.runtime.field_types import Vector, content_hash
from graphmem.runtime.times import Clock
from graphmem.secrets.scanner import SecretPolicy, make_redactor, render_secret_rule
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import CONSOLIDATION, SourceKind

MAX_SHOWN_FACTS = 40
"""Maximum facts to write a profile from, the most important ones."""

MAX_SHOWN_CHARACTERS = 12_000
"""Maximum total characters of these facts; a fact that does not fit is left out."""

PROFILE_IMPORTANCE = 0.5
"""Importance of a profile, which is never ranked: its statements rank by the facts behind them."""


MIN_SENTENCES = 2
"""Minimum sentences of a profile: a single one says no more than a fact does."""

MAX_SENTENCES = 8
"""Maximum sentences of a profile; the first ones are kept."""

MAX_SENTENCE_LENGTH = 500
"""Maximum length of a profile's sentence, in characters."""


class AnsweredSentence(BaseModel):
    """One sentence as the model writes it, with the numbers of the prompt."""

    content: str
    facts: list[int] = Field(description="numbers of the facts that the sentence takes something from")


class ProfileAnswer(LenientAnswer):
    """What the model answers about one entity."""

    sentences: list[AnsweredSentence]


class ProfileDraft(BaseModel):
    """The model's sentences about one entity that are supported by the facts they cite, and the cost of the call.

    `versions` are the versions of the cited memories. Without an answer, it is unknown whether there is anything to
    write.
    """

    entity_id: str
    sentences: list[ProfileSentence] = Field(default_factory=list)
    versions: dict[str, int] = Field(default_factory=dict)
    is_answered: bool = True
    receipt: Receipt = Field(default_factory=Receipt)

    @property
    def content(self) -> str:
        """The sentences as one text."""
        return " ".join(sentence.content for sentence in self.sentences)


# Checking: unsupported sentences are dropped whole, since a profile may say less than the facts but never more


@dataclass(frozen=True, slots=True)
class CitableFact:
    """A fact as shown in a prompt: its statement and the days between which it holds."""

    memory_id: str
    content: str
    days: str = ""

    @property
    def text(self) -> str:
        """The text that a sentence may be based on."""
        return f"{self.content} {self.days}"


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """The data that sentences about one entity are compared with.

    `names` are the entity's names, `other_names` those of each other entity that the facts name; `has_secret` says
    whether a text contains something that must not be stored.
    """

    facts: Sequence[CitableFact]
    names: Sequence[str]
    other_names: Sequence[Sequence[str]]
    has_secret: Callable[[str], bool]

    def keep_supported(self, answered: Iterable[tuple[str, Sequence[int]]]) -> list[ProfileSentence]:
        """Return the sentences, given with fact numbers, that cite known facts and say nothing else."""
        kept: list[ProfileSentence] = []
        for content, numbers in answered:
            content, numbers = " ".join(content.split()), list(dict.fromkeys(numbers))
            if self.find_problem(content, numbers) is None:
                memory_ids = [self.facts[number - 1].memory_id for number in numbers]
                kept.append(ProfileSentence(content=content, memory_ids=memory_ids))
        return kept[:MAX_SENTENCES]

    def find_problem(self, content: str, numbers: Sequence[int]) -> str | None:
        """Return why a sentence is not part of a profile, or None."""
        if not content or len(content) > MAX_SENTENCE_LENGTH:
            return "it is empty or too long"
        if not numbers or not all(0 < number <= len(self.facts) for number in numbers):
            return "it cites no fact, or one that was not shown"
        if self.has_secret(content):
            return "it holds a secret"
        sources = [self.facts[number - 1].text for number in numbers]
        for names in self.other_names:
            named = next((name for name in names if mentions_name(content, name)), None)
            if named and not any(mentions_name(source, name) for source in sources for name in names):
                return f"no source names {named}"
        return find_untold(sources, content, self.names)


class ProfileWriter:
    """Writes the entity profiles of one user or one space; `zone` is for users without their own."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        runs: RunStore,
        embedder: Embedder,
        policy: SecretPolicy,
        model: LanguageModel,
        template: PromptTemplate,
        clock: Clock,
        zone: str = "UTC",
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._embedder = embedder
        self._policy = policy
        self._model = model
        self._template = template
        self._clock = clock
        self._zone = zone

    # Writing

    async def write(self, owner: Owner, entity_id: str) -> ProfileDraft:
        """Return the model's profile of an entity, without the sentences that its facts do not support.

        If the model does not answer, the profile is left to the next run: the run itself has done its work.
        """
        facts, entities, zone = await self._load(owner, entity_id)
        entity = entities.get(entity_id)
        if entity is None or not facts:
            return ProfileDraft(entity_id=entity_id)
        allowed = self._policy.allowed_classes(owner.tenant)
        redact = make_redactor(allowed)
        shown = [CitableFact(fact.memory_id, redact(fact.content), _days(fact, zone)) for fact in facts]
        prompt = self._template.render(
            secrets=render_secret_rule(allowed),
            today=f"{self._clock().astimezone(zone):%A, %Y-%m-%d}",
            entity=_describe_entity(entity),
            facts="\n".join(
                f"[{number}] {indent_continuations(_describe_fact(fact, citable, entities))}"
                for number, (fact, citable) in enumerate(zip(facts, shown, strict=True), 1)
            ),
        )
        try:
            answer = await self._model.complete_structured(prompt, ProfileAnswer, use="main")
        except ModelAnswerUnusable:
            return ProfileDraft(entity_id=entity_id, receipt=Receipt(llm_calls=1))
        except ModelUnavailable:
            return ProfileDraft(entity_id=entity_id, is_answered=False)
        check = ProfileCheck(
            shown,
            _names_of(entity),
            [_names_of(other) for other in entities.values() if other.id != entity_id],
            lambda text: bool(self._policy.refused_classes(text, owner.tenant)),
        )
        kept = check.keep_supported((sentence.content, sentence.facts) for sentence in answer.value.sentences)
        cited = {memory_id for sentence in kept for memory_id in sentence.memory_ids}
        return ProfileDraft(
            entity_id=entity_id,
            sentences=kept if len(kept) >= MIN_SENTENCES else [],
            versions={fact.memory_id: fact.version for fact in facts if fact.memory_id in cited},
            receipt=answer.receipt,
        )

    async def _load(self, owner: Owner, entity_id: str) -> tuple[list[Fact], dict[str, Entity], tzinfo]:
        """Return the facts about an entity that fit the prompt, the entities they name, and the time zone."""

        async def work(transaction: Transaction) -> tuple[list[Fact], dict[str, Entity], tzinfo]:
            rows = await transaction.run(
                "consolidation.load_profile_facts",
                group_id=owner.group_id,
                entity_id=entity_id,
                now=self._clock(),
                limit=MAX_SHOWN_FACTS,
            )
            facts, left = [], MAX_SHOWN_CHARACTERS
            for fact in map(fact_from_row, rows):
                if len(fact.content) <= left:
                    left -= len(fact.content)
                    facts.append(fact)
            ids = [entity_id, *(key for fact in facts for key in (fact.subject_id, *fact.entity_ids))]
            entities = await fetch_entities(transaction, owner, ids)
            return facts, entities, await load_zone(transaction, owner, self._zone)

        return await self._graph.read(work)

    # Storing

    async def store(self, owner: Owner, run_id: str, drafts: Sequence[ProfileDraft]) -> int:
        """Store profiles as changes of an executed run, end the run, and return their number.

        Repeating it changes nothing. A profile derived from memories that have since changed is left out: it is due
        again.
        """
        written = [draft for draft in drafts if draft.sentences]
        texts = [draft.content for draft in written]
        vectors = dict(zip(texts, await self._embedder.embed(texts), strict=True)) if texts else {}

        async def work(transaction: Transaction) -> int:
            now = await self._facts.lock_user(transaction, owner)
            run = await self._runs.get(owner.tenant, run_id, with_changes=False, transaction=transaction)
            if run.phase is not RunPhase.EXECUTED:
                return run.profiles
            recorder = ChangeRecorder(transaction, run_id, owner.group_id, now)
            profiles = await self._write_all(transaction, owner, run_id, written, vectors, recorder, now)
            unprofiled = [draft.entity_id for draft in drafts if draft.is_answered and not draft.sentences]
            update = RunUpdate(
                status=RunStatus.SUCCEEDED,
                phase=RunPhase.DONE,
                finished_at=now,
                profiles=len(profiles),
                profiled_at=now if drafts else None,
                unprofiled=unprofiled,
                change_count=run.change_count + await recorder.record_after(),
                receipt=sum((draft.receipt for draft in drafts), run.receipt),
            )
            await self._runs.update(run_id, update, transaction)
            return len(profiles)

        return await self._graph.write(work)

    async def _write_all(
        self,
        transaction: Transaction,
        owner: Owner,
        run_id: str,
        drafts: Sequence[ProfileDraft],
        vectors: Mapping[str, Vector],
        recorder: ChangeRecorder,
        now: datetime,
    ) -> list[Fact]:
        """Write the profiles whose facts are unchanged since they were shown, and return them."""
        entity_ids = [draft.entity_id for draft in drafts]
        rows = await transaction.run("profiles.fetch_latest", group_id=owner.group_id, entity_ids=entity_ids)
        earlier = {fact.subject_id: fact for fact in map(fact_from_row, rows) if fact.expired_at is None}
        entities = await fetch_entities(transaction, owner, entity_ids)
        found = await FactLoader(transaction, owner).fetch(
            hashes=[content_hash(draft.content) for draft in drafts],
            memory_ids=[memory_id for draft in drafts for memory_id in draft.versions],
        )
        ledger = Ledger([*found.values(), *earlier.values()], now, _actor(run_id))
        order = await find_trust_order(transaction, owner.tenant, {fact.trust_kind for fact in found.values()})
        profiles: list[Fact] = []
        for draft in drafts:
            facts = [found[key] for key in draft.versions if key in found and found[key].is_valid_at(now)]
            if draft.entity_id not in entities or {fact.memory_id: fact.version for fact in facts} != draft.versions:
                continue
            known = earlier.get(draft.entity_id)
            memory_id = known.memory_id if known else str(uuid.uuid4())
            trusted_as = order.least_trusted(fact.trust_kind for fact in facts)
            profile = _to_fact(owner, memory_id, entities[draft.entity_id], draft, facts, trusted_as, now)
            try:
                profiles.append(ledger.rewrite_profile(profile, run_id))
            except Conflict:
                continue  # a memory of the entity already has these sentences
        await recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
        contents = {profile.uuid: vectors[profile.content] for profile in profiles}
        await FactWrite(owner, transaction, now, ledger, contents).commit()
        return profiles


def _actor(run_id: str) -> str:
    return f"consolidation:{run_id}"


def _to_fact(
    owner: Owner,
    memory_id: str,
    entity: Entity,
    draft: ProfileDraft,
    facts: Sequence[Fact],
    trusted_as: SourceKind,
    now: datetime,
) -> Fact:
    """Return the profile of an entity, with the lowest confidence of its facts; it is valid whenever they all are."""
    predicate = DEFAULT_PREDICATES[MemoryType.PROFILE]
    derived_from, content_data = number_sentences(draft.sentences)
    return Fact(
        uuid=str(uuid.uuid4()),
        memory_id=memory_id,
        version=1,
        group_id=owner.group_id,
        subject_id=entity.id,
        entity_ids=(entity.id,),
        predicate=predicate,
        content=draft.content,
        content_hash=content_hash(draft.content),
        content_data=content_data,
        derived_from=derived_from,
        type=MemoryType.PROFILE,
        scope=Scope.PROFILE,
        confidence=min(fact.confidence for fact in facts),
        importance=PROFILE_IMPORTANCE,
        decay_rate=DECAY_RATES[MemoryType.PROFILE],
        created_at=now,
        first_created_at=now,
        updated_at=now,
        source_kind=CONSOLIDATION,
        trusted_as=trusted_as,
        search_text=" ".join([predicate.replace("_", " ").lower(), *_names_of(entity)]),
    )


def _names_of(entity: Entity) -> list[str]:
    """Return all names of an entity; for the user, including the words for the user in statements."""
    return [entity.name, *entity.aliases, *(USER_WORDS if entity.is_user else ())]


def _describe_entity(entity: Entity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}{', the user' if entity.is_user else ''}){also}"


def _describe_fact(fact: Fact, citable: CitableFact, entities: Mapping[str, Entity]) -> str:
    subject = entities.get(fact.subject_id)
    marks = [fact.type.value, f"about {subject.name if subject else 'the user'}", citable.days]
    return f"({'; '.join(filter(None, marks))}) {citable.content}"


def _days(fact: Fact, zone: tzinfo) -> str:
    """Return the days between which a fact holds, as far as they are known."""
    bounds = (("since", fact.valid_at), ("until", fact.invalid_at))
    return "; ".join(f"{word} {at.astimezone(zone):%Y-%m-%d}" for word, at in bounds if at)
