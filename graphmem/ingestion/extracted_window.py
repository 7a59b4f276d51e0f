"""A window after its model calls, and the stored facts that its plan depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.conversations.session import RunMessage
from graphmem.ingestion.candidates import AliasGroup, Rejection, ValidatedCandidate
from graphmem.ingestion.linking_models import LinkingResult
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.turns import DerivedTurn
from graphmem.memories.entity import EntityRef
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_write import FactLoader
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.text import content_hash
from graphmem.tenants.owners import Owner


@dataclass(frozen=True, slots=True)
class ExtractedWindow:
    """The results of a window's model calls, to be applied under `id`; `user_name` is the user's name, if known.

    `run_session_id` is the session in which the job keeps its `transcript`.
    """

    id: str
    session_id: str
    message_ids: Sequence[str]
    run_session_id: str = ""
    transcript: Sequence[RunMessage] = ()
    user_name: str | None = None
    candidates: Sequence[ValidatedCandidate] = ()
    rejections: Sequence[Rejection] = ()
    turns: Sequence[DerivedTurn] = ()
    aliases: Sequence[AliasGroup] = ()
    linking: LinkingResult = field(default_factory=LinkingResult)
    answer: Reconciliation | None = None


@dataclass(frozen=True, slots=True)
class CurrentFacts:
    """The believed versions of facts by memory id, and the entities that they and new statements name by id."""

    facts: Mapping[str, Fact]
    entity_refs: Mapping[str, EntityRef]


async def load_current_facts(
    transaction: Transaction, loader: FactLoader, entities: EntityStore, owner: Owner, window: ExtractedWindow
) -> CurrentFacts:
    """Return the facts related to the candidates, and those that compete with the single-valued ones.

    The entities are those that the facts and the candidates name, and those that unclear names may mean.
    """
    ids = window.linking.entities
    slots = {
        (subject_id, candidate.memory.predicate)
        for candidate in window.candidates
        if candidate.memory.single_valued and (subject_id := ids.of_subject(candidate))
    }
    facts = await loader.fetch(
        hashes=[content_hash(candidate.memory.content) for candidate in window.candidates],
        memory_ids=window.linking.related,
        pairs=sorted((subject_id, predicate) for subject_id, predicate in slots if predicate),
    )
    named = {entity_id for fact in facts.values() for entity_id in (fact.subject_id, *fact.entity_ids)}
    possible = {entity.id for entity in window.linking.known}
    return CurrentFacts(facts, await entities.get_refs(transaction, owner, sorted(named | ids.all_ids | possible)))
