"""The way into the store for every statement: policy first, then vectors, then one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from graphmem.domain.formats.told import Told
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MIN_CONFIDENCE, Action, MemoryIn, MemoryPatch, SaveResult
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.temporary import is_temporary_state
from graphmem.domain.text import content_hash, name_key
from graphmem.embedding import Embedder
from graphmem.errors import InvalidInput
from graphmem.store.facts import FactStore
from graphmem.store.statements import Statement


class Saving:
    """Save statements under the policy; what is refused is told by class, never by value."""

    def __init__(self, facts: FactStore, embedder: Embedder, policy: SecretPolicy) -> None:
        self._facts = facts
        self._embedder = embedder
        self._policy = policy

    async def save(
        self,
        owner: Owner,
        memories: Sequence[MemoryIn],
        *,
        actor: str | None,
        kind: str,
        told: Sequence[Told] | None = None,
    ) -> list[SaveResult]:
        """Save what the policy lets through, all of it or nothing; the results are in the order given.

        `told` says of each when another memory knew it.
        """
        reasons = [self.refusal(owner, memory) for memory in memories]
        kept = [place for place, reason in enumerate(reasons) if reason is None]
        statements, names = await self.prepare(owner, [memories[place] for place in kept], kind)
        if told is not None:
            statements = [replace(each, told=told[place]) for each, place in zip(statements, kept, strict=True)]
        saved = iter(await self._facts.save(owner, statements, names, actor) if statements else [])
        return [
            next(saved) if reason is None else SaveResult(action=Action.SKIP, memory=None, reason=reason)
            for reason in reasons
        ]

    def refusal(self, owner: Owner, memory: MemoryIn) -> str | None:
        """Return why a statement is not stored, or None."""
        if memory.confidence < MIN_CONFIDENCE:
            return f"confidence below {MIN_CONFIDENCE}"
        classes = {found for part in _parts(memory) for found in self._policy.refused(part, owner.tenant)}
        if classes:
            return f"holds a secret: {', '.join(sorted(classes))}"
        if is_temporary_state(memory.content):
            return "a temporary state"
        return None

    async def prepare(
        self, owner: Owner, memories: Sequence[MemoryIn], kind: str
    ) -> tuple[list[Statement], dict[str, list[float]]]:
        """Return statements with their vectors, and the vectors of the entities they name by name key."""
        if not memories:
            return [], {}
        named = {name_key(name): name for memory in memories for name in _names(memory)}
        named.setdefault(name_key(owner.user_id or "everyone"), owner.user_id or "everyone")
        vectors = await self._embedder.embed([memory.content for memory in memories] + list(named.values()))
        statements = [Statement(memory, vector, kind) for memory, vector in zip(memories, vectors, strict=False)]
        return statements, dict(zip(named, vectors[len(memories) :], strict=True))

    async def prepare_patch(self, owner: Owner, patch: MemoryPatch) -> tuple[dict[str, Any], list[float] | None]:
        """Return a patch as changes of a fact, and the vector of a new content; raise InvalidInput for a secret."""
        changes: dict[str, Any] = {name: getattr(patch, name) for name in patch.model_fields_set}
        classes = {
            found
            for part in (changes.get("content"), changes.get("tags"), changes.get("metadata"))
            if part
            for found in self._policy.refused(part, owner.tenant)
        }
        if classes:
            raise InvalidInput(f"The change holds a secret ({', '.join(sorted(classes))}), which is not stored.")
        if "tags" in changes:
            changes["tags"] = tuple(changes["tags"])
        if patch.content is None:
            return changes, None
        if is_temporary_state(patch.content):
            raise InvalidInput("The change is a temporary state, which is not stored.")
        changes["content_hash"] = content_hash(patch.content)
        return changes, (await self._embedder.embed([patch.content]))[0]


def _names(memory: MemoryIn) -> Iterable[str]:
    return (each.name for each in (memory.subject, memory.object, *memory.entities) if each)


def _parts(memory: MemoryIn) -> list[Any]:
    return [memory.content, *_names(memory), memory.tags, memory.metadata, memory.domain or ""]
