"""The first step: what is put before the model, and its answer as JSON that outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from graphmem.domain.actions import Extraction
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Role
from graphmem.domain.text import name_key
from graphmem.ingestion.claims import Refusal
from graphmem.ingestion.redaction import Hide, hider
from graphmem.ingestion.tools import UPSERT_MEMORIES, extraction_of, period_of, render_history
from graphmem.ingestion.window import CONTEXT_MESSAGES, Line, Piece, lines_of, render, render_context
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import PromptTemplate, within_line
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore, Opening

KNOWN_NAMES = 80
NOTED_INTERESTS = 50
MAX_REASON = 300

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a window was read as; `lines` is empty when its messages are gone.

    `acquainted` says whether anything was known of the user by then.
    """

    lines: list[Line]
    session_id: str = ""
    acquainted: bool = True
    own_names: tuple[str, ...] = ()
    extraction: Extraction | None = None
    refusals: tuple[Refusal, ...] = ()
    cost: LlmReceipt = field(default_factory=LlmReceipt)


class Reader:
    """Makes the first call of a window, in either form."""

    def __init__(
        self,
        graph: Graph,
        episodes: EpisodeStore,
        policy: SecretPolicy,
        prompts: Mapping[str, PromptTemplate],
        zone: str,
    ) -> None:
        self._graph = graph
        self._episodes = episodes
        self._policy = policy
        self._prompts = prompts
        self._zone = zone

    async def read(self, owner: Owner, pieces: Sequence[Piece], model: LanguageModel) -> Json:
        """Ask what is worth keeping of some pieces: one structured call."""
        opened, (known, interests) = await asyncio.gather(self._open(owner, pieces), self._known(owner))
        if opened is None:
            return {"lines": []}
        opening, lines, hide = opened
        own_names = _own_names(lines, known)
        prompt = self._prompts["extract"].render(
            known_names=_known_names(known, own_names, hide),
            noted_interests="\n".join(map(within_line, interests)) or "(none)",
            earlier=render_context(opening.earlier, opening.zone, self._zone, hide),
            conversation=render(lines),
        )
        answer = await model.complete_structured(prompt, Extraction, use="gate")
        extraction = answer.value.model_copy(update={"reason": hide(answer.value.reason)[:MAX_REASON]})
        return self._recorded(opening, lines, known, extraction, [], answer.receipt)

    async def read_by_tools(self, owner: Owner, pieces: Sequence[Piece], model: LanguageModel) -> Json:
        """Let the model save what is worth keeping by the tool `upsert_memories`: one call with tools."""
        opened, (known, _) = await asyncio.gather(self._open(owner, pieces), self._known(owner))
        if opened is None:
            return {"lines": []}
        opening, lines, hide = opened
        prompt = self._prompts["tool_extraction"].render(
            conversation_history=render_history(lines), period=period_of(lines)
        )
        answer = await model.call_tools(prompt, [UPSERT_MEMORIES], use="gate")
        calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
        extraction, refusals = extraction_of(calls, lines)
        reason = " ".join(hide(answer.text).split())[:MAX_REASON]
        extraction = extraction.model_copy(update={"reason": reason})
        return self._recorded(opening, lines, known, extraction, refusals, answer.receipt)

    async def _open(self, owner: Owner, pieces: Sequence[Piece]) -> tuple[Opening, list[Line], Hide] | None:
        opening = await self._episodes.opening(
            owner, list(dict.fromkeys(piece.message_id for piece in pieces)), CONTEXT_MESSAGES
        )
        if opening is None:
            return None
        hide = hider(self._policy.allowed(owner.tenant))
        return opening, lines_of(pieces, opening.messages, opening.zone, self._zone, hide), hide

    async def _known(self, owner: Owner) -> tuple[list[Json], list[str]]:
        """Return the entities a user's facts speak of most, and the interests shown once."""
        entities, interests = await self._graph.value(
            "linking.known", group_id=owner.group_id, names=KNOWN_NAMES, interests=NOTED_INTERESTS
        )
        return entities, interests

    def _recorded(
        self,
        opening: Opening,
        lines: Sequence[Line],
        known: Sequence[Json],
        extraction: Extraction,
        refusals: Sequence[Refusal],
        receipt: LlmReceipt,
    ) -> Json:
        return {
            "session_id": opening.messages[0].session_id,
            "lines": [_line_json(line, opening.zone) for line in lines],
            "acquainted": bool(known),
            "own_names": _own_names(lines, known),
            "extraction": extraction.model_dump(mode="json"),
            "refusals": [asdict(refusal) for refusal in refusals],
            "receipt": asdict(receipt),
        }


def reading_of(stored: Json) -> Reading:
    """Return a recorded first step."""
    if not stored["lines"]:
        return Reading([])
    return Reading(
        lines=[_line_of(line) for line in stored["lines"]],
        session_id=stored["session_id"],
        acquainted=stored.get("acquainted", True),
        own_names=tuple(stored["own_names"]),
        extraction=Extraction.model_validate(stored["extraction"]),
        refusals=tuple(Refusal(**refusal) for refusal in stored["refusals"]),
        cost=LlmReceipt(**stored["receipt"]),
    )


def _own_names(lines: Sequence[Line], known: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, in order, what the user is called: by the one name on their lines, by the aliases of their own entity."""
    speakers = {line.speaker for line in lines if line.role is Role.USER and line.speaker}
    told = sorted(speakers) if len(speakers) == 1 else []
    aliases = [alias for entity in known if entity["is_user"] for alias in entity["aliases"]]
    called = {name_key(name): name for name in [*aliases, *told]}
    return [called[key] for key in sorted(called)]


def _known_names(known: Sequence[Mapping[str, Any]], own_names: Sequence[str], hide: Hide) -> str:
    also = f", also called {', '.join(own_names)}" if own_names else ""
    told = [f"User (Person): who writes the USER lines{also}"]
    for entity in sorted(known, key=lambda each: name_key(each["name"])):
        if not entity["is_user"]:
            aliases = f", also {', '.join(entity['aliases'])}" if entity["aliases"] else ""
            told.append(f"{entity['name']} ({entity['type']}){aliases}")
    return "\n".join(within_line(hide(line)) for line in told)


def _line_json(line: Line, user_zone: str | None) -> Json:
    offset = line.told_at.utcoffset() or timedelta()
    zone = user_zone or getattr(line.told_at.tzinfo, "key", None) or int(offset.total_seconds())
    return {**asdict(line), "told_at": line.told_at.isoformat(), "zone": zone}


def _line_of(stored: Json) -> Line:
    zone = stored["zone"]
    tz = ZoneInfo(zone) if isinstance(zone, str) else timezone(timedelta(seconds=zone))
    told_at = datetime.fromisoformat(stored["told_at"]).astimezone(tz)
    return Line(
        stored["number"], stored["message_id"], Role(stored["role"]), stored["speaker"], told_at, stored["text"]
    )
