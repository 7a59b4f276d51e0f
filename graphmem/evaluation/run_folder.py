"""The folder of a run: what it was asked to do and what it has done, so that a second start goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphmem.evaluation.benchmark import single_line
from graphmem.models.language_model import Receipt
from graphmem.runtime.errors import Conflict, InvalidInput


class _RunRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


class _KeyedRecord(_RunRecord):
    """A record that replaces an earlier one with the same values of the fields `KEY`."""

    KEY: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> tuple[Any, ...]:
        """The values by which the record is found."""
        return tuple(getattr(self, name) for name in self.KEY)


class RunOptions(_RunRecord):
    """What decides the results of a run; `data` is a hash of the conversations, `tenant` the tenant of its users."""

    benchmark: str
    name: str
    data: str
    conversations: list[str]
    questions: list[str]
    systems: list[str]
    budgets: list[int]
    given_facts: bool
    extraction_model: str | None
    reader: str | None
    judge: str | None
    tenant: str


GRAPHMEM = "graphmem"
"""The system that stores conversations in every run."""


class StoredSession(_KeyedRecord):
    """A session of a conversation that a system got; `receipt` is what its extraction cost, once that has ended.

    `seconds` are those from sending it to the end of its extraction. A system that gets the messages bit by bit has so
    many `messages` of it by now.
    """

    system: str = GRAPHMEM
    conversation: str
    session: str
    messages: int
    receipt: Receipt | None = None
    seconds: float = 0.0

    KEY = ("system", "conversation", "session")


class StoredSize(_KeyedRecord):
    """How much a system has stored of a conversation.

    `facts`, `entities` and `messages` are counts. `size` is the bytes of their values as JSON and of their vectors,
    with four bytes a number, without indexes.
    """

    system: str
    conversation: str
    facts: int
    entities: int
    messages: int
    size: int

    KEY = ("system", "conversation")


class AnswerContext(_KeyedRecord):
    """A context for a question: who built it, for how many tokens at most, how many it has, and how long it took.

    `covered` are the messages that are in it or that facts in it were taken from; `memories` the ids of its memories.
    """

    question_id: str
    system: str
    budget: int | None
    text: str
    tokens: int
    seconds: float
    covered: list[str] = Field(default_factory=list)
    memories: list[str] = Field(default_factory=list)

    KEY = ("question_id", "system", "budget")


class GivenAnswer(_KeyedRecord):
    """What the reader answered from a context, and what the request cost."""

    question_id: str
    system: str
    budget: int | None
    answer: str
    receipt: Receipt

    KEY = ("question_id", "system", "budget")


class Judgement(_KeyedRecord):
    """What the judge gave one of the different answers to a question, from 0 to 1, and why."""

    question_id: str
    answer: str
    score: float
    reason: str

    KEY = ("question_id", "answer")


class WrongAnswerCause(_KeyedRecord):
    """Where the wrong answer to a question from a context went wrong."""

    question_id: str
    system: str
    budget: int | None
    cause: str

    KEY = ("question_id", "system", "budget")


class RequestCost(_KeyedRecord):
    """What a request to the judge about a question cost; `purpose` is `judge` or `cause`."""

    question_id: str
    purpose: str
    receipt: Receipt

    KEY = ("question_id", "purpose")


R = TypeVar("R", bound=_KeyedRecord)


class RecordFile(Generic[R]):
    """Records of one kind in a JSONL file, by key; of several with one key the last one counts."""

    def __init__(self, path: Path, model: type[R]) -> None:
        self._path = path
        self._records: dict[tuple[object, ...], R] = {}
        for line in _complete_lines(path):
            record = model.model_validate_json(line)
            self._records[record.key] = record

    def __iter__(self) -> Iterator[R]:
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def find(self, *key: object) -> R | None:
        """Return the record of a key."""
        return self._records.get(key)

    def add(self, *records: R) -> None:
        """Store records at the end of the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{record.model_dump_json()}\n" for record in records))
        self._records.update((record.key, record) for record in records)


def _complete_lines(path: Path) -> Iterable[str]:
    """Return the lines of a file; one that an interrupted write has cut is removed."""
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        path.write_text(complete, "utf-8")
    return complete.split("\n")[:-1]


OPTIONS_FILE = "run.json"
"""Name of the file with the options of a run."""


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = RecordFile(path / "sessions.jsonl", StoredSession)
        self.sizes = RecordFile(path / "sizes.jsonl", StoredSize)
        self.contexts = RecordFile(path / "contexts.jsonl", AnswerContext)
        self.answers = RecordFile(path / "answers.jsonl", GivenAnswer)
        self.judgements = RecordFile(path / "judgements.jsonl", Judgement)
        self.causes = RecordFile(path / "causes.jsonl", WrongAnswerCause)
        self.costs = RecordFile(path / "costs.jsonl", RequestCost)

    @property
    def recordings(self) -> Path:
        """The file of the completions."""
        return self.path / "recordings.jsonl"

    @property
    def data(self) -> Path:
        """The folder of the embedded database and of the jobs."""
        return self.path / "data"

    def find_judgement(self, context: AnswerContext) -> Judgement | None:
        """Return the judgement on the answer from a context."""
        given = self.answers.find(*context.key)
        return None if given is None else self.judgements.find(context.question_id, single_line(given.answer))

    def begin(self, options: RunOptions) -> RunOptions:
        """Store the options of a new run, or return those of the run that goes on.

        Raises Conflict when the folder holds a run with other options: its results would not fit.
        """
        path = self.path / OPTIONS_FILE
        if not path.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            path.write_text(options.model_dump_json(indent=1), "utf-8")
            return options
        try:
            stored = RunOptions.model_validate_json(path.read_text("utf-8"))
        except ValidationError as error:
            raise InvalidInput(
                f"{path} belongs to a run of another version: choose another folder with --out."
            ) from error
        expected = options.model_copy(update={"tenant": stored.tenant})
        if different := [name for name in RunOptions.model_fields if getattr(stored, name) != getattr(expected, name)]:
            raise Conflict(
                f"{self.path} contains a run with other options ({', '.join(different)}): pass the same to continue "
                "it, or choose another folder with --out."
            )
        return stored
