"""The interface of a language model: structured answers and tool calls, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Protocol, TypeVar

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

if TYPE_CHECKING:
    from graphmem.models.prompts import ChatMessage, Prompt


class Receipt(BaseModel):
    """What model calls or a whole job cost; `seconds` of a job are those from its last start to its end.

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
    """An object in an answer: a property that is null has its default."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        optional = {name for name, known in cls.model_fields.items() if not known.is_required()}
        return {name: child for name, child in value.items() if child is not None or name not in optional}


class LenientAnswer(AnswerPart):
    """An answer whose lists keep the items that fit the schema; `refused` has a sentence for each of the others.

    The sentences do not quote the model. An answer that was cut off keeps what was complete.
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
"""A list of what a statement is labelled with: an item that does not fit is left out, and the statement stays."""

CHARACTERS_PER_TOKEN = 4
"""Characters of one token, where the server does not count tokens."""


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """An answer that fits its schema, and its cost."""

    value: T
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; `arguments` are as the model wrote them, not validated."""

    name: str
    arguments: dict[str, Any]


TOOL_DONE = "done"
"""The result of a tool call that can be used."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One answer of a model that may call tools: its text, its calls, and the result of each."""

    text: str
    calls: list[ToolCall]
    results: list[str]


@dataclass(frozen=True, slots=True)
class ToolCallCompletion:
    """The different tool calls of a model, in order, the text of its first answer, and the cost.

    `messages` are the prompt, and `exchange` are the answers that followed.
    """

    calls: list[ToolCall]
    text: str
    receipt: Receipt
    messages: list[ChatMessage] = field(default_factory=list)
    exchange: list[ToolExchange] = field(default_factory=list)


DEFAULT_MODEL = "gpt-4.1-mini"
"""Model where the settings name a key or an address and no model."""

MAX_TOOL_ANSWERS = 6
"""Answers of a model that calls tools, at most; it gets the results of the calls of each."""


ModelUse = Literal["gate", "main"]
"""What a call is for: `gate` decides whether anything is worth remembering, and what; `main` is everything else."""

CheckToolCall = Callable[[ToolCall], str | None]
"""Return why a tool call cannot be used, in words for the model, or None."""


class LanguageModel(Protocol):
    """A language model that graphmem may call; a provider is a class with these methods.

    Every failure is a ModelUnavailable, whose `retry_after` is None where the same call fails until a setting changes.
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
        """Return the tool calls that the model makes, if any; `tools` as in the chat completions API.

        The model gets the result of each call, the reason where `check` refuses it, and may call again until it calls
        no tool, only repeats itself, or has answered `MAX_TOOL_ANSWERS` times.
        """
        ...
