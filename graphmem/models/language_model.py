"""The language model interface: prompts from files, structured answers, tool calls, and their cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticOmit

from graphmem.runtime.errors import ConfigurationError
from graphmem.text.added_texts import escape_tags


class Receipt(BaseModel):
    """The cost of model calls or of a whole job; `seconds` of a job count from its last start to its end.

    Tokens are estimated at four characters each where the server does not count them.
    """

    model_config = ConfigDict(frozen=True)

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    seconds: float = 0.0

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(
            llm_calls=self.llm_calls + other.llm_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            embedded_texts=self.embedded_texts + other.embedded_texts,
            seconds=self.seconds + other.seconds,
        )


class AnswerPart(BaseModel):
    """An object in an answer: null properties take their default."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        optional = {name for name, known in cls.model_fields.items() if not known.is_required()}
        return {name: child for name, child in value.items() if child is not None or name not in optional}


CUT_OFF = "the answer was cut off: what it would have said after that is lost"
"""Sentence in a lenient answer about its missing end."""


class LenientAnswer(AnswerPart):
    """An answer whose lists keep the items that fit the schema; `refused` has a sentence for each rejected item.

    The sentences do not quote the model. An answer that was cut off keeps its complete items.
    """

    refused: SkipJsonSchema[list[str]] = Field(default_factory=list)


T = TypeVar("T", bound=BaseModel)
Item = TypeVar("Item")


def _omit_if_malformed(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        raise PydanticOmit from None


Labels = list[Annotated[Item, WrapValidator(_omit_if_malformed)]]
"""A list of a statement's labels: items that do not fit are left out, and the statement stays."""

CHARACTERS_PER_TOKEN = 4
"""Estimated characters per token if the server does not count tokens."""


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """An answer that fits its schema, and its cost."""

    value: T
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; `arguments` are the model's, not validated."""

    name: str
    arguments: dict[str, Any]


TOOL_DONE = "done"
"""The result reported for a usable tool call."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One answer of a model that may call tools: its text, its calls, and their results."""

    text: str
    calls: list[ToolCall]
    results: list[str]


@dataclass(frozen=True, slots=True)
class ToolCallCompletion:
    """A model's distinct tool calls in order, the text of its first answer, and the cost.

    `messages` is the prompt, `exchange` the answers that followed.
    """

    calls: list[ToolCall]
    text: str
    receipt: Receipt
    messages: list[ChatMessage] = field(default_factory=list)
    exchange: list[ToolExchange] = field(default_factory=list)


DEFAULT_MODEL = "gpt-4.1-mini"
"""Model used if the settings have a key or an address but no model."""

MAX_TOOL_ANSWERS = 6
"""Maximum number of answers from a model that calls tools; each answer's results are sent back."""


ModelUse = Literal["gate", "main"]
"""Purpose of a call: `gate` decides what, if anything, is worth remembering; `main` is everything else."""

CheckToolCall = Callable[[ToolCall], str | None]
"""Return a message for the model about why a tool call cannot be used, or None."""


class LanguageModel(Protocol):
    """A language model that graphmem may call; a provider is a class with these methods.

    Every failure is a ModelUnavailable; its `retry_after` is None if the call keeps failing until a setting changes.
    """

    async def complete_structured(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        schema: type[T],
        *,
        use: ModelUse = "main",
    ) -> Completion[T]:
        """Return one answer in the shape of `schema`."""
        ...

    async def call_tools(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        use: ModelUse = "main",
        check: CheckToolCall = lambda call: None,
    ) -> ToolCallCompletion:
        """Return the model's tool calls, if any; `tools` has the chat completions format.

        The model receives each call's result, or the reason if `check` rejects it, and may continue until it calls no
        tool, only repeats itself, or has answered `MAX_TOOL_ANSWERS` times.
        """
        ...


ChatMessage = dict[str, str]
"""A message of a chat completion request: `role` and `content`."""

PROMPTS_FOLDER = Path(__file__).parent / "prompts"
"""Folder of the prompts that graphmem sends."""

EMPTY = "(none)"
"""Text for an untrusted placeholder with an empty value."""

_HEAD = re.compile(r"\A<!--\s*prompt:\s*([a-z][a-z0-9_]*)\(([^)]*)\)\s*-->\n")
_PART = re.compile(r"^## (system|user)[ \t]*$", re.MULTILINE)
_PARAMETER = re.compile(r"([a-z][a-z0-9_]*)([!?]?)")
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_FENCED = re.compile(r"^<([a-z_]+)>\n\{\{\s*([a-z][a-z0-9_]*)\s*\}\}\n</\1>$", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with all placeholders filled; an empty system part is not sent."""

    name: str
    system: str
    user: str

    def messages(self) -> list[ChatMessage]:
        """Return the messages of a chat completion request."""
        head = [{"role": "system", "content": self.system}] if self.system else []
        return [*head, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt with placeholders; `fences` are the tags around the `untrusted` ones.

    Some untrusted placeholders are `optional`.
    """

    name: str
    system: str
    user: str
    parameters: frozenset[str]
    untrusted: frozenset[str]
    fences: frozenset[str]
    optional: frozenset[str] = frozenset()

    def render(self, **values: str | int) -> Prompt:
        """Fill in every placeholder; placeholders inside values stay. Raises TypeError for wrong names."""
        if not self.parameters - self.optional <= values.keys() <= self.parameters:
            raise TypeError(f"prompt {self.name} takes {sorted(self.parameters)}, not {sorted(values)}")
        absent = {name for name in self.optional if not values.get(name)}
        texts = {name: self._text_of(name, str(value)) for name, value in values.items() if name not in absent}
        return Prompt(self.name, _fill(self.system, texts), _fill(_without_paragraphs(self.user, absent), texts))

    def _text_of(self, name: str, value: str) -> str:
        return escape_tags(value, self.fences) or EMPTY if name in self.untrusted else value


def load_prompts(folder: Path = PROMPTS_FOLDER) -> Mapping[str, PromptTemplate]:
    """Return the prompts of a folder by name; raise ConfigurationError naming the file and the problem."""
    return {path.stem: _load_template(path) for path in sorted(folder.glob("*.md"))}


def indent_continuations(text: str) -> str:
    """Return a list entry's text, with all lines after the first indented so that none looks like an entry."""
    return _LINE_END.sub("\n    ", text.strip())


def _without_paragraphs(template: str, absent: Iterable[str]) -> str:
    names = set(absent)
    return "\n\n".join(part for part in template.split("\n\n") if names.isdisjoint(_PLACEHOLDER.findall(part)))


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def _load_template(path: Path) -> PromptTemplate:
    text = path.read_text("utf-8")
    head = _HEAD.match(text)
    if head is None or head[1] != path.stem:
        raise _prompt_error(path, f"its first line must be <!-- prompt: {path.stem}(parameters) -->")
    declared = _parse_parameters(path, head[2])
    _, *parts = _PART.split(text[head.end() :])
    named = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    if len(parts) != 2 * len(named) or not named.get("user"):
        raise _prompt_error(path, "it needs one part `## user` that is not empty, and at most one `## system`")
    system, user = named.get("system", ""), named["user"]
    _check_placeholders(path, declared, system, user)
    untrusted = frozenset(name for name, mark in declared.items() if mark != "!")
    optional = frozenset(name for name, mark in declared.items() if mark == "?")
    fences = frozenset(tag for tag, _ in _FENCED.findall(user))
    return PromptTemplate(path.stem, system, user, frozenset(declared), untrusted, fences, optional)


def _parse_parameters(path: Path, text: str) -> dict[str, str]:
    """Return the declared placeholders, each with its mark."""
    declared: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _PARAMETER.fullmatch(item)
        if match is None or match[1] in declared:
            raise _prompt_error(path, f"its parameter {item!r} is no name or declared twice")
        declared[match[1]] = match[2]
    return declared


def _check_placeholders(path: Path, declared: Mapping[str, str], system: str, user: str) -> None:
    used = set(_PLACEHOLDER.findall(system + user))
    if missing := used - declared.keys():
        raise _prompt_error(path, f"it uses {sorted(missing)} without declaring them")
    if unused := declared.keys() - used:
        raise _prompt_error(path, f"it declares {sorted(unused)} and does not use them")
    fenced = _FENCED.findall(user)
    if len({tag for tag, _ in fenced}) < len(fenced):
        raise _prompt_error(path, "two placeholders are in the same tag; each needs its own")
    bare = _PLACEHOLDER.findall(system) + _PLACEHOLDER.findall(_FENCED.sub("", user))
    if unsafe := {name for name in bare if declared[name] != "!"}:
        raise _prompt_error(
            path,
            f"{sorted(unsafe)} must be in the user part, alone between <tag> and </tag> lines, or be marked `!`",
        )


def _prompt_error(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"The prompt file {path.name} cannot be used: {why}.")
