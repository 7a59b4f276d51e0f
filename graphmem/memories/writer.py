"""Saving of statements: the policy first, then vectors, then one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal

from graphmem.memories.entity import PERSON_TYPE, EntityIn
from graphmem.memories.fact import ImportProvenance
from graphmem.memories.fact_store import DoubtfulStatement, FactStore
from graphmem.memories.memory import (
    MAX_QUOTE_LENGTH,
    MIN_CONFIDENCE,
    MemoryIn,
    MemoryPatch,
    MemoryType,
    SaveAction,
    SaveResult,
)
from graphmem.memories.new_memory import NewMemory, find_doubt, find_label_doubt
from graphmem.models.embedder import Embedder
from graphmem.runtime.errors import Forbidden, InvalidInput, NotFound
from graphmem.runtime.field_types import JSON, Vector, content_hash, name_key, stored_values, text_length
from graphmem.runtime.process import read_text
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.trust import CONSOLIDATION, SourceKind


class MemoryWriter:
    """Saves statements that the policy allows; the reason of a rejection names classes of secrets, never values."""

    def __init__(
        self,
        facts: FactStore,
        embedder: Embedder,
        policy: SecretPolicy,
        profiles: TenantProfiles,
        quarantine: Literal["keep", "refuse"] = "keep",
    ) -> None:
        """`quarantine` decides whether third-party text that may address the assistant is quarantined or refused."""
        self._facts = facts
        self._embedder = embedder
        self._policy = policy
        self._profiles = profiles
        self._keeps_doubtful = quarantine == "keep"

    async def save(
        self,
        owner: Owner,
        memories: Sequence[MemoryIn],
        *,
        actor: str | None,
        kind: SourceKind,
        trusted_as: SourceKind | None = None,
        provenance: Sequence[ImportProvenance] | None = None,
        request: IdempotentRequest | None = None,
        creates_user: bool = True,
        spaces: Mapping[str, Owner] = MappingProxyType({}),
    ) -> list[SaveResult]:
        """Save the statements that the policy allows, all or none; the results are in the order of `memories`.

        `kind` is the source of statements that name none, `trusted_as` the kind whose trust they have; `provenance` is
        their history in the memory they were imported from. With `request`, they are saved only once for it. `spaces`
        are those that the owner may write, by id: in a space, the owner is the speaker, and the subject of statements
        without one. Raises UserBeingForgotten, and NotFound for an unavailable space and for a user that does not exist
        unless `creates_user`.
        """
        placed = [find_space(memory.space, spaces) for memory in memories]
        reasons = await read_text(
            sum(map(text_length, memories)),
            lambda: [
                self.rejection_reason(owner, memory, is_source_known=kind == CONSOLIDATION) for memory in memories
            ],
        )
        allowed = [index for index, reason in enumerate(reasons) if reason is None]
        # After the policy, which would mistake the user's id for text of the statement.
        memories = [
            memory if space is None else about_speaker(memory, owner)
            for memory, space in zip(memories, placed, strict=True)
        ]
        doubts = {index: doubt for index in allowed if (doubt := find_doubt(memories[index], kind, owner.entity_name))}
        if doubts:  # known content is not new text, but its labels may be
            hashes = {index: content_hash(memories[index].content) for index in doubts}
            known = {
                (place.group_id, stated)
                for place in {placed[index] or owner for index in doubts}
                for stated in await self._facts.find_stated(place, list(hashes.values()))
            }
            doubts = {
                index: doubt
                for index, doubt in doubts.items()
                if ((placed[index] or owner).group_id, hashes[index]) not in known
                or find_label_doubt(memories[index], kind)
            }
        if not self._keeps_doubtful:
            reasons = [doubts.get(index, reason) for index, reason in enumerate(reasons)]
        allowed = [index for index in allowed if index not in doubts]
        owners = [owner, *filter(None, placed)]
        vectors, names = await self._embed(owners, [memories[index] for index in allowed])
        statements = [
            NewMemory(
                memories[index],
                vector,
                kind_of_statement(memories[index], kind),
                links_names=True,
                given=memories[index].model_fields_set,
                trusted_as=trusted_as,
                space=placed[index],
                speaker=owner.user_id if placed[index] else None,
                provenance=provenance[index] if provenance is not None else None,
            )
            for index, vector in zip(allowed, vectors, strict=True)
        ]
        doubtful = [
            DoubtfulStatement(
                memories[index],
                doubt,
                memories[index].content[:MAX_QUOTE_LENGTH],
                kind_of_statement(memories[index], kind),
                placed[index],
            )
            for index, doubt in (doubts if self._keeps_doubtful else {}).items()
        ]
        results = (
            await self._facts.save(
                owner, statements, names, actor, request, creates_user=creates_user, doubtful=doubtful
            )
            if statements or doubtful
            else []
        )
        saved = dict(zip([*allowed, *(doubts if self._keeps_doubtful else ())], results, strict=True))
        return [
            saved[index] if index in saved else SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)
            for index, reason in enumerate(reasons)
        ]

    def rejection_reason(self, owner: Owner, memory: MemoryIn, *, is_source_known: bool = False) -> str | None:
        """Return why the policy rejects a statement, or None.

        With `is_source_known`, the source ids are not checked: they are those of a stored session and its messages.
        """
        if memory.confidence < MIN_CONFIDENCE:
            return f"confidence below {MIN_CONFIDENCE}"
        checked = memory.model_copy(update={"source": None}) if is_source_known else memory
        # A predicate may contain a secret as a word of its own, such as PIN_4321.
        values = [stored_values(checked), (memory.predicate or "").replace("_", " ")]
        if classes := self._policy.refused_classes(values, owner.tenant):
            return f"holds a secret: {', '.join(classes)}"
        if self._is_temporary(owner, memory.content, memory.type):
            return "a temporary state"
        return None

    def _is_temporary(self, owner: Owner, text: str, type: MemoryType | None) -> bool:
        """Return whether a text states a passing condition; a feeling may be one, since it expires."""
        profile = self._profiles.for_tenant(owner.tenant)
        if profile.temporary_states.are_met_by(text):
            return True
        return type is not MemoryType.FEELING and profile.momentary_states.are_met_by(text)

    def refused_classes(self, owner: Owner, value: JSON) -> list[str]:
        """Return the classes of secrets in a value that the owner's tenant may not store."""
        return self._policy.refused_classes(value, owner.tenant)

    def remove_temporary_states(self, owner: Owner, text: str) -> str:
        """Return a text without the sentences that would be rejected as a temporary state."""
        return self._profiles.for_tenant(owner.tenant).temporary_states.remove_from(text)

    async def _embed(
        self, owners: Iterable[Owner], memories: Sequence[MemoryIn]
    ) -> tuple[list[Vector], dict[str, Vector]]:
        """Return the vectors of statements and, by name key, of the names in them and of the owners."""
        if not memories:
            return [], {}
        named = {name_key(name): name for memory in memories for name in _entity_names(memory)}
        for owner in owners:
            named.setdefault(name_key(owner.entity_name), owner.entity_name)
        vectors = await self._embedder.embed([memory.content for memory in memories] + list(named.values()))
        return vectors[: len(memories)], dict(zip(named, vectors[len(memories) :], strict=True))

    async def prepare_patch(self, owner: Owner, patch: MemoryPatch, kind: SourceKind | None) -> Vector | None:
        """Return the vector of the new content in a patch by a source, if it has one.

        Raises InvalidInput for a secret, a temporary state or a confidence too low to store, and Forbidden for
        third-party text that may address somebody.
        """
        if patch.confidence is not None and patch.confidence < MIN_CONFIDENCE:
            raise InvalidInput(
                f"A memory needs a confidence of at least {MIN_CONFIDENCE}: delete it if it is no longer believed."
            )
        classes = await read_text(
            text_length(patch), lambda: self._policy.refused_classes(stored_values(patch), owner.tenant)
        )
        if classes:
            raise InvalidInput(f"The change contains a secret ({', '.join(classes)}), which is not stored.")
        stated = MemoryIn(content=patch.content or "-", type=patch.type or MemoryType.FACT, domain=patch.domain)
        find = find_label_doubt if patch.content is None else partial(find_doubt, self_name=owner.entity_name)
        if kind is not None and (doubt := find(stated, kind)):
            raise Forbidden(f"The change is not stored: {doubt}. Save it as a separate memory instead.")
        if patch.content is None:
            return None
        if self._is_temporary(owner, patch.content, patch.type):
            raise InvalidInput("The change is a temporary state, which is not stored.")
        return (await self._embedder.embed([patch.content]))[0]


def find_space(space: str | None, writable: Mapping[str, Owner]) -> Owner | None:
    """Return the space of a statement, or None without one; raise NotFound unless it is writable."""
    if space is None:
        return None
    if space not in writable:
        raise NotFound("There is no such space.")
    return writable[space]


def kind_of_statement(memory: MemoryIn, kind: SourceKind) -> SourceKind:
    """Return the source of a statement: the one it names, else the saver's."""
    return (memory.source.kind if memory.source else None) or kind


def about_speaker(memory: MemoryIn, speaker: Owner) -> MemoryIn:
    """Return a space member's statement, about the member if it has no subject."""
    if memory.subject is not None:
        return memory
    return memory.model_copy(update={"subject": EntityIn(name=speaker.user_id, type=PERSON_TYPE)})


def _entity_names(memory: MemoryIn) -> Iterable[str]:
    return (entity.name for entity in (memory.subject, memory.object, *memory.entities) if entity)
