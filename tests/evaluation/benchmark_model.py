"""A model for benchmarks of a test: it extracts and reads sentences of one form, `NAME lives in PLACE.`, and judges."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from graphmem.models.replay import CompletionServer, build_completion, build_error, recording_key

Json = dict[str, Any]

LINE = re.compile(r"^\[(\d+)\] .*?: (.*)$", re.MULTILINE)
HOME = re.compile(r"(\w+) lives in (\w+)")
SUBJECT = re.compile(r"Where does (\w+) live")


class BenchmarkModel(CompletionServer):
    """Knows what it was asked by the name of the schema; `unread` are names whose homes it does not extract.

    `failing` requests of a schema are refused, as many as the counter says.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failing: Counter[str] = Counter()
        self.unread: set[str] = set()

    def answer(self, request: Json) -> tuple[int, Json]:
        name = request["response_format"]["json_schema"]["name"]
        if self.failing[name] > 0:
            self.failing[name] -= 1
            return 400, build_error("out of order", "broken")
        self.calls[name] += 1
        text = "\n".join(message["content"] for message in request["messages"])
        content = json.dumps(getattr(self, f"_{name}")(text))
        return 200, build_completion(recording_key(request), request, {"content": content})

    def _Extraction(self, text: str) -> Json:  # noqa: N802 - named as the schema
        lines = LINE.findall(_between(text, "conversation"))
        found = [(int(number), home) for number, said in lines for home in self._homes(said)]
        candidates = [_candidate(number, *home) for number, home in found]
        turns: list[Json] = [{"message": int(number), "intent": None, "entities": []} for number, _ in lines]
        skip = not candidates
        reason = "nothing" if skip else ""
        empty: Json = {"keywords": [], "names": [], "summarize": False}
        return {"skip": skip, "reason": reason, "candidates": candidates, "turns": turns, **empty}

    def _Reconciliation(self, text: str) -> Json:  # noqa: N802
        numbers = re.findall(r"^\[(\d+)\]", _between(text, "new_statements"), re.MULTILINE)
        fixed: Json = {"action": "insert", "known": [], "ended_at": None, "remaining": [], "reason": "new"}
        return {"decisions": [{"new": int(number), **fixed} for number in numbers], "same_entities": []}

    def _ReaderAnswer(self, text: str) -> Json:  # noqa: N802
        asked = SUBJECT.search(_between(text, "question"))
        homes = dict(HOME.findall(_between(text, "notes")))
        return {"answer": homes.get(asked[1], "not known") if asked else "not known"}

    def _ModelAnswer(self, text: str) -> Json:  # noqa: N802
        asked = SUBJECT.search(_between(text, "question"))
        for line in _between(text, "sources").splitlines():
            number, home = re.match(r"\[(\d+)\]", line), HOME.search(line)
            if asked and number and home and home[1] == asked[1]:
                quote = {"source": int(number[1]), "quote": home[0]}
                return {"sources": [quote], "answer": home[2], "search": None}
        return {"sources": [], "answer": None, "search": None}

    def _RatedAnswers(self, text: str) -> Json:  # noqa: N802
        expected = "not known" if "Nobody said" in text else _between(text, "expected")
        answers = re.findall(r"^(\d+)\. (.*)$", _between(text, "answers"), re.MULTILINE)
        return {
            "verdicts": [
                {"number": int(number), "reason": "compared", "rating": "right" if given == expected else "wrong"}
                for number, given in answers
            ]
        }

    def _ExtractedEntities(self, text: str) -> Json:  # noqa: N802 - of Graphiti, as those that follow
        said = _between(text, "CURRENT MESSAGE")
        names = [said.partition(":")[0], *(name for home in self._homes(said) for name in home)]
        unique = dict.fromkeys(names)
        return {"extracted_entities": [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in unique]}

    def _ExtractedEdges(self, text: str) -> Json:  # noqa: N802
        return {
            "edges": [
                {
                    "source_entity_name": name,
                    "target_entity_name": place,
                    "relation_type": "LIVES_IN",
                    "fact": f"{name} lives in {place}",
                    "valid_at": None,
                    "invalid_at": None,
                    "episode_indices": [0],
                }
                for name, place in self._homes(_between(text, "CURRENT_MESSAGE"))
            ]
        }

    def _NodeResolutions(self, text: str) -> Json:  # noqa: N802
        found = json.loads(_between(text, "ENTITIES"))
        resolutions = [{"id": one["id"], "name": one["name"], "duplicate_candidate_id": -1} for one in found]
        return {"entity_resolutions": resolutions}

    def _EdgeDuplicate(self, text: str) -> Json:  # noqa: N802
        return {"duplicate_facts": [], "contradicted_facts": []}

    def _EdgeTimestamps(self, text: str) -> Json:  # noqa: N802
        return {"valid_at": _between(text, "REFERENCE TIME"), "invalid_at": None}

    def _SummarizedEntities(self, text: str) -> Json:  # noqa: N802
        return {"summaries": []}

    def _Mem0StatedMemories(self, text: str) -> Json:  # noqa: N802
        said = text.rpartition("## New Messages\n")[2].partition("\n\n## Observation Date")[0]
        stated = [
            {"id": str(number), "text": f"{name} lives in {place}", "attributed_to": "user", "linked_memory_ids": []}
            for number, (name, place) in enumerate(self._homes(said))
        ]
        return {"memory": stated}

    def _homes(self, text: str) -> list[tuple[str, str]]:
        return [home for home in HOME.findall(text) if home[0] not in self.unread]

    def _CauseAnswer(self, text: str) -> Json:  # noqa: N802
        expected = _between(text, "expected")
        memories = re.findall(r"^(\d+)\. (.*)$", _between(text, "memories"), re.MULTILINE)
        supporting = [int(number) for number, memory in memories if expected in memory]
        contexts = _between(text, "contexts").split("Context ")[1:]
        return {
            "memories_suffice": bool(supporting),
            "supporting": supporting,
            "misleading": [],
            "sufficient_contexts": [number for number, shown in enumerate(contexts, 1) if expected in shown],
        }


def _candidate(number: int, name: str, place: str) -> Json:
    return {
        "content": f"{name} lives in {place}.",
        "type": "fact",
        "subject": {"name": name, "type": "Person"},
        "predicate": "LIVES_IN",
        "object": {"name": place, "type": "Place"},
        "entities": [],
        "valid_at": None,
        "invalid_at": None,
        "confidence": 0.9,
        "importance": 0.5,
        "tags": [],
        "domain": None,
        "single_valued": False,
        "retracts": False,
        "messages": [number],
    }


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]
