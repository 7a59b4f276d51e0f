"""The folder of a run: its options and results so far, so that a second start resumes it."""

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
    """A record that replaces an earlier one with the same values of the `KEY` fields."""

    KEY: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that identify the record."""
        return tuple(getattr(self, name) for name in self.KEY)


class RunOptions(_RunRecord):
    """The options that determine a run's results; `data` is a hash of the conversations, `tenant` that of its users."""

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
    """A session that a system received; `receipt` is the cost of its extraction, once ended.

    `seconds` is the time from sending the session to the end of its extraction. For a system that receives a session in
    parts, `messages` is the number received so far.
    """

    system: str = GRAPHMEM
    conversation: str
    session: str
    messages: int
    receipt: Receipt | None = None
    seconds: float = 0.0

    KEY = ("system", "conversation", "session")


class StoredSize(_KeyedRecord):
    """The size of a conversation in a system.

    `facts`, `entities` and `messages` are counts. `size` is the bytes of their values as JSON and of their vectors, at
    four bytes per number, without indexes.
    """

    system: str
    conversation: str
    facts: int
    entities: int
    messages: int
    size: int

    KEY = ("system", "conversation")


class AnswerContext(_KeyedRecord):
    """A context for a question, with the system, the budget, the number of tokens and the time to build it.

    `covered` are the messages in it or behind its facts; `memories` are the ids of its memories.
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
    """The reader's answer from a context, and the cost of the request."""

    question_id: str
    system: str
    budget: int | None
    answer: str
    receipt: Receipt

    KEY = ("question_id", "system", "budget")


class Judgement(_KeyedRecord):
    """The judge's score for a distinct answer to a question, from 0 to 1, and the reason."""

    question_id: str
    answer: str
    score: float
    reason: str

    KEY = ("question_id", "answer")


class WrongAnswerCause(_KeyedRecord):
    """The cause of a wrong answer to a question from a context."""

    question_id: str
    system: str
    budget: int | None
    cause: str

    KEY = ("question_id", "system", "budget")


class RequestCost(_KeyedRecord):
    """The cost of a request to the judge about a question; `purpose` is `judge` or `cause`."""

    question_id: str
    purpose: str
    receipt: Receipt

    KEY = ("question_id", "purpose")


R = TypeVar("R", bound=_KeyedRecord)


class RecordFile(Generic[R]):
    """Records of one kind in a JSONL file, by key; the last record of a key counts."""

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
        """Append records to the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{record.model_dump_json()}\n" for record in records))
        self._records.update((record.key, record) for record in records)


def _complete_lines(path: Path) -> Iterable[str]:
    """Return the lines of a file, after removing one cut off by an interrupted write."""
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        path.write_text(complete, "utf-8")
    return complete.split("\n")[:-1]


OPTIONS_FILE = "run.json"
"""Name of the file with a run's options."""


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
        """The file with the recorded completions."""
        return self.path / "recordings.jsonl"

    @property
    def data(self) -> Path:
        """The folder of the embedded database and the jobs."""
        return self.path / "data"

    def find_judgement(self, context: AnswerContext) -> Judgement | None:
        """Return the judgement on an answer from a context."""
        given = self.answers.find(*context.key)
        return None if given is None else self.judgements.find(context.question_id, single_line(given.answer))

    def begin(self, options: RunOptions) -> RunOptions:
        """Store the options of a new run, or return those of the run to resume.

        Raises Conflict if the folder has a run with other options, whose results would not fit.
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
