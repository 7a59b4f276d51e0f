"""Conversations with questions about them, the selection of questions, and the files of both. Pure.

The format of your own files is `{conversations: [{id, messages: [{id, session, role, name?, content, timestamp?}],
facts?, qa: [{question, answer, category | ability, evidence?, rubric?}]}], categories?: {number: name}}`. `facts` are
`[{fact, evidence, type?, subject?, predicate?, object?, valid_at?, invalid_at?, confidence?, importance?, tags?}]`;
`evidence` has message ids. Files of all benchmarks may be in this format, too.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.validation import describe_field_errors, field_errors

SEED = 20261123
"""Seed for drawing questions in random order."""


class Benchmark(StrEnum):
    """A benchmark with published rules of judging; `other` is your own file."""

    LOCOMO = "locomo"
    LONGMEMEVAL = "longmemeval"
    BEAM = "beam"
    OTHER = "other"


ADDRESSES: Mapping[Benchmark, str] = {
    Benchmark.LOCOMO: "https://github.com/snap-research/locomo (data/locomo10.json, CC BY-NC 4.0)",
    Benchmark.LONGMEMEVAL: "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned (…_s_cleaned.json)",
    Benchmark.BEAM: "https://github.com/mohammadtavakoli78/BEAM (a folder such as chats/100K)",
}
"""Download addresses of the benchmarks' files, none of which is part of this package."""


class _ReadModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class BenchmarkMessage(_ReadModel):
    """A message of a conversation."""

    id: str
    session: str
    role: str
    content: str
    name: str | None = None
    timestamp: datetime | None = None

    @field_validator("timestamp")
    @classmethod
    def _read_as_utc(cls, time: datetime | None) -> datetime | None:
        """Return a time, in UTC if without an offset, such as a date."""
        return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)

    @property
    def speaker(self) -> str:
        """The name of the speaker, or else the role."""
        return self.name or self.role


class GivenFact(_ReadModel):
    """A fact that a file states about a conversation, for runs without extraction; `memory` has `MemoryIn` fields."""

    memory: dict[str, Any]
    message_ids: list[str]


class BenchmarkConversation(_ReadModel):
    """A conversation in its original order; each becomes a separate user."""

    id: str
    messages: list[BenchmarkMessage]
    facts: list[GivenFact] = Field(default_factory=list)

    def sessions(self) -> list[tuple[str, list[BenchmarkMessage]]]:
        """Return the messages of each session, in order."""
        return [(key, list(group)) for key, group in groupby(self.messages, key=lambda message: message.session)]


class AskedQuestion(_ReadModel):
    """A question about a conversation; `evidence` are the messages that answer it.

    An answer is judged by each of the `criteria`. For an unanswerable question, `expected` may be the answer that it
    tempts to give. `asked_at` is the day of the question.
    """

    id: str
    conversation: str
    text: str
    category: str
    expected: str
    evidence: list[str] = Field(default_factory=list)
    criteria: list[str] = Field(default_factory=list)
    is_unanswerable: bool = False
    asked_at: str | None = None


class BenchmarkData(_ReadModel):
    """The conversations of a file and the questions about them."""

    benchmark: Benchmark
    name: str
    conversations: list[BenchmarkConversation]
    questions: list[AskedQuestion]

    def limit(self, conversations: Sequence[str] | int | None, questions: int | None) -> BenchmarkData:
        """Return the conversations with these ids, or the first ones, and at most this many questions about them.

        Conversations without any of these questions are left out.
        """
        kept = self.conversations
        if isinstance(conversations, int):
            kept = kept[:conversations]
        elif conversations is not None:
            kept = [conversation for conversation in kept if conversation.id in conversations]
        ids = {conversation.id for conversation in kept}
        asked = [question for question in self.questions if question.conversation in ids]
        if questions is not None:
            asked = draw_questions(asked, questions)
        used = {question.conversation for question in asked}
        return self.model_copy(
            update={"conversations": [kept_one for kept_one in kept if kept_one.id in used], "questions": asked}
        )


def draw_questions(questions: Iterable[AskedQuestion], count: int, seed: int = SEED) -> list[AskedQuestion]:
    """Return up to `count` questions, spread evenly over categories, and within them over conversations."""
    shuffled = sorted(questions, key=lambda question: question.id)
    random.Random(seed).shuffle(shuffled)
    by_category: dict[str, dict[str, list[AskedQuestion]]] = defaultdict(lambda: defaultdict(list))
    for question in shuffled:
        by_category[question.category][question.conversation].append(question)
    within = [_take_turns(by_category[category].values()) for category in sorted(by_category)]
    return sorted(_take_turns(within)[:count], key=lambda question: question.id)


def _take_turns(groups: Iterable[Sequence[AskedQuestion]]) -> list[AskedQuestion]:
    """Return the first element of every group, then the second of every group, and so on."""
    return [question for question in chain.from_iterable(zip_longest(*groups)) if question is not None]


def single_line(text: str) -> str:
    """Return a text with every run of white space as a single space."""
    return " ".join(text.split())


Json = dict[str, Any]

LOCOMO_CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""Meanings of LoCoMo's category numbers."""

ADVERSARIAL = LOCOMO_CATEGORIES[5]
"""The category of questions about things nobody said."""

MESSAGE_SECONDS = 20
"""Seconds between the messages of a session whose file only states its beginning."""


def read_benchmark(benchmark: Benchmark, path: Path) -> BenchmarkData:
    """Return the contents of a benchmark's file; raise InvalidInput, naming what it should have, for another file."""
    try:
        data = _read_folder(path) if path.is_dir() else json.loads(path.read_text("utf-8"))
        return _read(benchmark, path.parent.name if path.stem == "dev" else path.stem, data)
    except OSError as error:
        address = ADDRESSES.get(benchmark)
        where = f": get it from {address}" if address else ""
        raise InvalidInput(f"{path} cannot be read ({error.strerror or error}){where}.") from error
    except ValidationError as error:
        raise InvalidInput(f"{path} does not have this form: {describe_field_errors(field_errors(error))}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path} is not a {benchmark.value} file ({type(error).__name__}: {error}): give it as it is published, or "
            "in the form of docs/evaluate.md."
        ) from error


def _read(benchmark: Benchmark, name: str, data: Any) -> BenchmarkData:
    if isinstance(data, dict) and "conversations" in data:
        return _read_own_form(benchmark, name, data)
    readers: Mapping[Benchmark, Callable[[str, Any], BenchmarkData]] = {
        Benchmark.LOCOMO: _read_locomo,
        Benchmark.LONGMEMEVAL: _read_longmemeval,
        Benchmark.BEAM: _read_beam,
    }
    if benchmark not in readers:
        raise ValueError("there are no `conversations`")
    return readers[benchmark](name, data)


def _read_own_form(benchmark: Benchmark, name: str, data: Json) -> BenchmarkData:
    categories = {int(key): value for key, value in data.get("categories", {}).items()}
    conversations, questions = [], []
    for entry in data["conversations"]:
        messages = [
            BenchmarkMessage.model_validate({**message, "session": f"session-{message['session']}"})
            for message in entry["messages"]
        ]
        facts = [_to_fact(fact) for fact in entry.get("facts") or []]
        conversations.append(BenchmarkConversation(id=entry["id"], messages=messages, facts=facts))
        for number, asked in enumerate(entry["qa"]):
            category = _name_category(asked, categories)
            questions.append(_to_question(f"{entry['id']}/{number}", entry["id"], category, asked))
    return BenchmarkData(benchmark=benchmark, name=name, conversations=conversations, questions=questions)


def _name_category(asked: Json, categories: Mapping[int, str]) -> str:
    if "category" not in asked:
        return str(asked.get("ability", "all")).replace("_", " ")
    number = asked["category"]
    return categories.get(number, str(number)) if isinstance(number, int) else str(number)


def _to_question(question_id: str, conversation: str, category: str, asked: Json) -> AskedQuestion:
    expected = asked.get("answer", asked.get("adversarial_answer", ""))
    return AskedQuestion(
        id=question_id,
        conversation=conversation,
        text=asked["question"],
        category=category,
        expected=str(expected),
        evidence=[str(message_id) for message_id in asked.get("evidence") or []],
        criteria=asked.get("rubric") or [],
        is_unanswerable=category in (ADVERSARIAL, "abstention"),
    )


def _to_fact(fact: Json) -> GivenFact:
    fields = ("type", "subject", "predicate", "object", "confidence", "importance", "tags")
    memory = {"content": fact["fact"], **{name: fact[name] for name in fields if fact.get(name) is not None}}
    for name in ("valid_at", "invalid_at"):
        if day := fact.get(name):
            memory[name] = f"{day}T00:00:00Z" if len(day) == len("2023-05-08") else day
    return GivenFact(memory=memory, message_ids=fact["evidence"])


_LOCOMO_SESSION = re.compile(r"session_(\d+)")


def _read_locomo(name: str, data: Sequence[Json]) -> BenchmarkData:
    """Read `locomo10.json`; the speakers are two people of equal rank, so both become users with a name."""
    conversations, questions = [], []
    for entry in data:
        held, conversation_id = entry["conversation"], entry["sample_id"]
        numbers = sorted(int(match[1]) for key in held if (match := _LOCOMO_SESSION.fullmatch(key)))
        messages = [
            BenchmarkMessage(
                id=turn["dia_id"],
                session=f"session-{number}",
                role="user",
                name=turn["speaker"],
                content=_locomo_text(turn),
                timestamp=began + timedelta(seconds=MESSAGE_SECONDS * place),
            )
            for number in numbers
            for began in [_parse_time(held[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")]
            for place, turn in enumerate(held[f"session_{number}"])
        ]
        conversations.append(BenchmarkConversation(id=conversation_id, messages=messages))
        for number, asked in enumerate(entry["qa"]):
            category = _name_category(asked, LOCOMO_CATEGORIES)
            questions.append(_to_question(f"{conversation_id}/{number}", conversation_id, category, asked))
    return BenchmarkData(benchmark=Benchmark.LOCOMO, name=name, conversations=conversations, questions=questions)


def _locomo_text(turn: Json) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares a picture: {caption}]" if caption else turn["text"]


def _parse_time(text: str, form: str) -> datetime:
    return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)


_WEEKDAY = re.compile(r"\s*\(\w+\)")


def _read_longmemeval(name: str, data: Sequence[Json]) -> BenchmarkData:
    """Read `longmemeval_*.json`; each question has its own history, and so becomes a separate user."""
    conversations, questions = [], []
    for entry in data:
        question_id = entry["question_id"]
        messages = [
            BenchmarkMessage(
                id=f"{session}:{place}:{number}",
                session=f"{place}-{session}",
                role=turn["role"],
                content=turn["content"],
                timestamp=began + timedelta(seconds=MESSAGE_SECONDS * number),
            )
            for place, (session, day, turns) in enumerate(
                zip(entry["haystack_session_ids"], entry["haystack_dates"], entry["haystack_sessions"], strict=True)
            )
            for began in [_parse_time(_WEEKDAY.sub("", day), "%Y/%m/%d %H:%M")]
            for number, turn in enumerate(turns)
            if turn["content"].strip()
        ]
        messages.sort(key=lambda message: message.timestamp or datetime.min.replace(tzinfo=UTC))
        is_unanswerable = question_id.endswith("_abs")
        conversations.append(BenchmarkConversation(id=question_id, messages=messages))
        questions.append(
            AskedQuestion(
                id=question_id,
                conversation=question_id,
                text=entry["question"],
                category="abstention" if is_unanswerable else entry["question_type"],
                expected=str(entry["answer"]),
                evidence=list(_longmemeval_evidence(entry)),
                is_unanswerable=is_unanswerable,
                asked_at=entry.get("question_date"),
            )
        )
    return BenchmarkData(benchmark=Benchmark.LONGMEMEVAL, name=name, conversations=conversations, questions=questions)


def _longmemeval_evidence(entry: Json) -> Iterator[str]:
    for place, (session, turns) in enumerate(
        zip(entry["haystack_session_ids"], entry["haystack_sessions"], strict=True)
    ):
        yield from (f"{session}:{place}:{number}" for number, turn in enumerate(turns) if turn.get("has_answer"))


def _read_folder(path: Path) -> list[Json]:
    """Return the conversations of a BEAM folder: `*/chat.json` with `*/probing_questions/probing_questions.json`."""
    chats = sorted(path.glob("*/chat.json"), key=lambda chat: (len(chat.parent.name), chat.parent.name))
    if not chats:
        raise ValueError("the folder has no */chat.json")
    return [
        {
            "id": chat.parent.name,
            "chat": json.loads(chat.read_text("utf-8")),
            "probing_questions": json.loads(
                (chat.parent / "probing_questions" / "probing_questions.json").read_text("utf-8")
            ),
        }
        for chat in chats
    ]


_BEAM_MARK = re.compile(r"\s*->->\s*[\d,]+\s*$")
"""The mark at the end of a user's text for its place in the plan of the conversation."""


def _read_beam(name: str, data: Sequence[Json]) -> BenchmarkData:
    """Read a BEAM folder; each batch of turns becomes a session, dated by the latest day named so far."""
    conversations, questions = [], []
    for entry in data:
        conversation_id = f"beam-{entry['id']}"
        conversations.append(BenchmarkConversation(id=conversation_id, messages=list(_beam_messages(entry["chat"]))))
        for ability, asked_of_it in entry["probing_questions"].items():
            for number, asked in enumerate(asked_of_it):
                expected = next((asked[key] for key in _BEAM_ANSWERS if asked.get(key)), "")
                known = {**asked, "answer": expected, "evidence": list(_chat_ids(asked.get("source_chat_ids")))}
                question_id = f"{conversation_id}/{ability}/{number}"
                questions.append(_to_question(question_id, conversation_id, ability.replace("_", " "), known))
    return BenchmarkData(benchmark=Benchmark.BEAM, name=name, conversations=conversations, questions=questions)


_BEAM_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
"""Names of a question's expected answer, which depend on the ability."""


def _beam_messages(batches: Sequence[Json]) -> Iterator[BenchmarkMessage]:
    moment: datetime | None = None
    for batch in batches:
        for turn in (turn for exchange in batch["turns"] for turn in exchange):
            if anchor := turn.get("time_anchor"):
                moment = _parse_time(anchor, "%B-%d-%Y")
            elif moment is not None:
                moment += timedelta(seconds=MESSAGE_SECONDS)
            yield BenchmarkMessage(
                id=str(turn["id"]),
                session=f"batch-{batch['batch_number']}",
                role=turn["role"],
                content=_BEAM_MARK.sub("", turn["content"]),
                timestamp=moment,
            )


def _chat_ids(given: Any) -> Iterator[str]:
    """Yield the ids in a number, a list, or named lists."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        for item in given:
            yield from _chat_ids(item)
    elif given is not None:
        yield str(given)
