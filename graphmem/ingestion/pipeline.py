"""Extraction as a durable job: extract → reconcile → apply, for each window of a batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from graphmem.domain.actions import Reconciliation
from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.policy import SecretPolicy
from graphmem.embedding import Embedder
from graphmem.ingestion.apply import Applier, Entry, Part, reinforced_texts, texts_of
from graphmem.ingestion.claims import Alias, Claim, Refuse, aliases_of, claims_of
from graphmem.ingestion.link import Linked, Linker
from graphmem.ingestion.reading import Reader, Reading, reading_of
from graphmem.ingestion.reconcile import ask, needs_model
from graphmem.ingestion.redaction import hider
from graphmem.ingestion.saving import Saving
from graphmem.ingestion.window import Piece
from graphmem.jobs import Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import load_prompts
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.episodes import EpisodeStore
from graphmem.store.facts import FactStore
from graphmem.store.writes import Touched

JOB = "extraction"
"""The kind of the job that reads a batch of messages."""

TOOL_JOB = "tool_extraction"
"""The kind of the job in which a model saves by a tool."""

NO_MODEL = "no language model is configured: set OPENAI_API_KEY or OPENAI_BASE_URL"

Json = dict[str, Any]


class Vectors:
    """The vectors of one window's texts, each computed once; `count` says how many were."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.known: dict[str, list[float]] = {}
        self.count = 0

    async def add(self, texts: Sequence[str]) -> None:
        """Compute what is missing."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, await self._embedder.embed(missing), strict=True))
            self.count += len(missing)


class ExtractionJob:
    """Handles extraction jobs: two model calls a window at most, one when there is nothing to keep."""

    def __init__(
        self,
        *,
        graph: Graph,
        episodes: EpisodeStore,
        facts: FactStore,
        entities: EntityStore,
        saving: Saving,
        policy: SecretPolicy,
        embedder: Embedder,
        model: LanguageModel | None,
        zone: str = "UTC",
    ) -> None:
        self._graph = graph
        self._episodes = episodes
        self._linker = Linker(graph)
        self._applier = Applier(graph, facts, entities)
        self._saving = saving
        self._policy = policy
        self._embedder = embedder
        self._model = model
        self._prompts = load_prompts()
        self._reader = Reader(graph, episodes, policy, self._prompts, zone)

    async def run(self, payload: Json, steps: Steps) -> JobOutcome:
        """Read the messages of the payload; its windows were cut when it was queued."""
        return await self._run(payload, steps, self._reader.read)

    async def run_tools(self, payload: Json, steps: Steps) -> JobOutcome:
        """The same, the model saving by the tool `upsert_memories`."""
        return await self._run(payload, steps, self._reader.read_by_tools)

    async def _run(self, payload: Json, steps: Steps, read: Callable[..., Awaitable[Json]]) -> JobOutcome:
        owner = Owner(payload["tenant"], payload["user_id"])
        if self._model is None:
            await steps.run("release", lambda: self._episodes.release(owner, steps.job_id))
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL)
        windows = [
            _Window(self, owner, steps, number, [Piece(*piece) for piece in pieces])
            for number, pieces in enumerate(payload["windows"], 1)
        ]
        for window in windows:
            await window.run(read, self._model)
        done = {message_id for window in windows for message_id in window.message_ids}
        silent = [each for each in payload["message_ids"] if each not in done]
        if silent:
            await steps.run("mark read", lambda: self._episodes.mark_read(owner, silent))
        return _outcome(windows)

    # What the steps after the first do

    async def reconcile(
        self,
        owner: Owner,
        reading: Reading,
        claims: Sequence[Claim],
        aliases: Sequence[Alias],
        keywords: Sequence[str],
        vectors: Vectors,
        model: LanguageModel,
    ) -> Json:
        """Link names, fetch what is related, and make the second call where a model must decide about it."""
        await vectors.add(texts_of(claims, aliases, owner.user_id))
        linked, related = await self._linker.link(owner, claims, aliases, vectors.known, keywords)
        found = {"linked": linked.model_dump(mode="json")}
        if not needs_model(claims, linked, related):
            return {**found, "answer": None}
        facts, names = await self._current(owner, linked, claims)
        answer = await ask(model, self._prompts["reconcile"], reading.lines, claims, linked, facts, names)
        hide = hider(self._policy.allowed(owner.tenant))
        told = [each.model_copy(update={"reason": hide(each.reason)}) for each in answer.value.decisions]
        value = answer.value.model_copy(update={"decisions": told})
        return {**found, "answer": value.model_dump(mode="json"), "receipt": asdict(answer.receipt)}

    async def apply(self, owner: Owner, part: Part, vectors: Vectors, actor: str) -> list[Entry]:
        """Write what was decided; the vectors come first."""
        if part.claims:
            await vectors.add(texts_of(part.claims, part.aliases, owner.user_id))
        if part.answer and any(decision.known for decision in part.answer.decisions):
            facts, _ = await self._current(owner, part.linked, part.claims)
            await vectors.add(reinforced_texts(part.answer, part.linked, facts))
        return await self._applier.apply(owner, part, vectors.known, actor)

    def vectors(self) -> Vectors:
        """Return a place for the vectors of one window."""
        return Vectors(self._embedder)

    def refuse_for(self, owner: Owner) -> Refuse:
        """Return the policy of a user as a function of a statement."""
        return lambda memory: self._saving.refusal(owner, memory)

    async def _current(
        self, owner: Owner, linked: Linked, claims: Sequence[Claim]
    ) -> tuple[dict[str, Fact], dict[str, EntityRef]]:
        return await self._graph.read(
            lambda transaction: self._applier.current(transaction, Touched(transaction, owner), owner, linked, claims)
        )


class _Window:
    """One window of a batch on its way through three steps: the job records the calls, the writing records itself."""

    def __init__(self, job: ExtractionJob, owner: Owner, steps: Steps, number: int, pieces: list[Piece]) -> None:
        self._job = job
        self._owner = owner
        self._steps = steps
        self._number = number
        self._pieces = pieces
        self._vectors = job.vectors()
        self.message_ids = list(dict.fromkeys(piece.message_id for piece in pieces))
        self.skipped: str | None = None
        self.entries: list[Entry] = []
        self.cost = LlmReceipt()

    @property
    def embedded(self) -> int:
        """How many texts were embedded."""
        return self._vectors.count

    async def run(self, read: Callable[..., Awaitable[Json]], model: LanguageModel) -> None:
        """Do the steps; a window with nothing to keep ends with the first one."""
        reading = reading_of(await self._step("extract", lambda: read(self._owner, self._pieces, model)))
        self.cost += reading.cost
        extraction = reading.extraction
        if extraction is None:
            self.skipped = "the messages are gone"
            return
        if extraction.skip or not extraction.candidates:
            self.skipped = None if reading.refusals else extraction.reason or "nothing worth keeping"
            await self._apply(self._part(reading))
            return
        own = self._owner.user_id
        refuse = self._job.refuse_for(self._owner)
        claims, refused = claims_of(extraction, reading.lines, reading.session_id, own, reading.own_names, refuse)
        aliases = [Alias("", reading.own_names), *aliases_of(extraction, reading.own_names)]
        part = self._part(reading, claims=claims, refusals=[*reading.refusals, *refused], aliases=aliases)
        await self._apply(await self._decided(part, reading, extraction.keywords, model) if claims else part)

    async def _decided(self, part: Part, reading: Reading, keywords: Sequence[str], model: LanguageModel) -> Part:
        if not reading.acquainted:
            return part.decided(Linked(near=[[] for _ in part.claims]), None)
        found = await self._step(
            "reconcile",
            lambda: self._job.reconcile(
                self._owner, reading, part.claims, part.aliases, keywords, self._vectors, model
            ),
        )
        linked = Linked.model_validate(found["linked"])
        if found["answer"] is None:
            return part.decided(linked, None)
        self.cost += LlmReceipt(**found["receipt"])
        return part.decided(linked, Reconciliation.model_validate(found["answer"]))

    def _part(self, reading: Reading, **found: Any) -> Part:
        part_id = f"{self._steps.job_id}:{self._number}"
        return Part(
            **{"refusals": reading.refusals, **found},
            id=part_id,
            session_id=reading.session_id,
            message_ids=self.message_ids,
        )

    async def _apply(self, part: Part) -> None:
        actor = f"job:{self._steps.job_id}"
        self.entries = await self._steps.repeat(
            f"apply {self._number}", lambda: self._job.apply(self._owner, part, self._vectors, actor)
        )

    async def _step(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        return await self._steps.run(f"{name} {self._number}", do)


def _outcome(windows: Sequence[_Window]) -> JobOutcome:
    cost = sum((window.cost for window in windows), LlmReceipt())
    receipt = Receipt(
        llm_calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        embedded_texts=sum(window.embedded for window in windows),
    )
    skipped = [window.skipped for window in windows if window.skipped]
    if len(skipped) == len(windows):
        reason = skipped[0] if skipped else "no message of the user or the assistant"
        return JobOutcome(status=JobStatus.SKIPPED, reason=reason, receipt=receipt)
    return JobOutcome(actions=[entry for window in windows for entry in window.entries], receipt=receipt)


def payload_of(owner: Owner, session_id: str, message_ids: Sequence[str], windows: Sequence[Sequence[Piece]]) -> Json:
    """Return the payload of an extraction job: ids and places, no text."""
    return {
        "tenant": owner.tenant,
        "user_id": owner.user_id,
        "session_id": session_id,
        "message_ids": list(message_ids),
        "windows": [[[piece.message_id, piece.start, piece.end] for piece in pieces] for pieces in windows],
    }
