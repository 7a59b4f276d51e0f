"""Structured answers: asking for JSON, the schema sent, and parsing the answer. Pure."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeVar

from openai import pydantic_function_tool
from pydantic import BaseModel, ValidationError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_core import ErrorDetails

from graphmem.models.language_model import CUT_OFF, ChatMessage, LenientAnswer
from graphmem.text.added_texts import without_thoughts

JsonNode = Any
"""A value of a JSON document."""

MAX_DESCRIBED_ERRORS = 3
"""Maximum number of an answer's errors described; the others are counted."""

T = TypeVar("T", bound=BaseModel)

_UNSUPPORTED_KEYWORDS = {"title", "default", "examples", "discriminator", "minLength", "maxLength", "uniqueItems"}
_JSON_START = re.compile(r'\{\s*["}]|\[\s*\{')
_SEPARATORS = re.compile(r"[\s_-]+")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)


class UnusableAnswer(ValueError):
    """The answer contains no JSON (`found_json` is False) or none that fits the schema; the message never quotes it."""

    def __init__(self, reason: str, *, found_json: bool) -> None:
        super().__init__(reason)
        self.found_json = found_json


@lru_cache(maxsize=256)
def response_schema(schema: type[BaseModel]) -> dict[str, JsonNode]:
    """Return the strict JSON schema of a model class: all properties required, no others, keywords of strict mode only.

    It keeps field descriptions, which instruct the model, but not class docstrings.
    """
    plain = schema.model_json_schema()
    docstrings = {node.get("description") for node in (plain, *plain.get("$defs", {}).values())}
    function = pydantic_function_tool(schema)["function"]
    cleaned: dict[str, JsonNode] = _to_strict_schema(function.get("parameters", {}), docstrings)
    return cleaned


def schema_name(schema: type[BaseModel]) -> str:
    """Return a schema's name, limited to characters that every provider accepts."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", schema.__name__)[:64]


def read_answer(text: str, schema: type[T]) -> T:
    """Return the object in an answer; thoughts, code fences, other text and the spelling of enum values are ignored.

    A lenient answer loses list items and properties with a default that do not fit, and its end if it is cut; any other
    answer is returned whole. Raises UnusableAnswer if no object fits.
    """
    root = schema.model_json_schema()
    failure = UnusableAnswer("it holds no JSON", found_json=False)
    is_lenient = issubclass(schema, LenientAnswer)
    for found, is_cut in _find_json_values(without_thoughts(text), is_lenient=is_lenient):
        value = _unwrap(found, root) if is_lenient else found
        if not isinstance(value, dict) or not value.keys() & root.get("properties", {}).keys():
            failure = UnusableAnswer("its JSON is another object than the one asked for", found_json=True)
            continue
        spelled = _normalize_enum_values(value, root, root.get("$defs", {}))
        try:
            if not is_lenient:
                return schema.model_validate(spelled)
            usable, refused = _drop_unusable_items(spelled, schema, root)
            return schema.model_validate({**usable, "refused": [*refused, *([CUT_OFF] if is_cut else [])]})
        except ValidationError as error:
            failure = UnusableAnswer(_describe_errors(error, root), found_json=True)
    raise failure


def _unwrap(value: JsonNode, root: Mapping[str, JsonNode]) -> JsonNode:
    """Return the object from a single-item list, or from a wrapper object whose only key the model made up."""
    match value:
        case [dict() as only]:
            return only
        case dict() if len(value) == 1 and not value.keys() & root.get("properties", {}).keys():
            return next(iter(value.values()))
    return value


def _drop_unusable_items(
    value: dict[str, JsonNode], schema: type[BaseModel], root: Mapping[str, JsonNode]
) -> tuple[dict[str, JsonNode], list[str]]:
    """Return an object without its unusable parts, and a sentence for each part removed.

    Removable parts are list items and properties with a default. Raises UnusableAnswer if a required list ends up
    empty.
    """
    try:
        schema.model_validate({**value, "refused": []})
        return value, []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
    unusable: dict[str, dict[int, str]] = {}
    dropped: dict[str, str] = {}
    for detail in details:
        match detail["loc"]:
            case (str(name), int(index), *_):
                unusable.setdefault(name, {}).setdefault(index, _describe_error(detail, root, skip=2))
            case (str(name),) if name in value and not schema.model_fields[name].is_required():
                dropped.setdefault(name, f"{name} is malformed: {detail['type']}")
    lists = {
        name: [item for index, item in enumerate(items) if index not in unusable.get(name, ())]
        for name, items in value.items()
        if isinstance(items, list)
    }
    refused = [
        f"item {index + 1} of {name} is malformed: {problem}"
        for name, problems in unusable.items()
        for index, problem in problems.items()
    ]
    if emptied := [name for name in unusable if not lists[name] and schema.model_fields[name].is_required()]:
        raise UnusableAnswer(f"every item of its {emptied[0]} is malformed", found_json=True)
    kept = {name: child for name, child in value.items() if name not in dropped}
    return {**kept, **{name: items for name, items in lists.items() if name in kept}}, [*refused, *dropped.values()]


def _to_strict_schema(node: JsonNode, docstrings: set[str | None]) -> JsonNode:
    """Return a schema without the keywords that strict mode rejects."""
    if isinstance(node, list):
        return [_to_strict_schema(item, docstrings) for item in node]
    if not isinstance(node, Mapping):
        return node
    cleaned: dict[str, JsonNode] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):  # their keys are names, not keywords
            cleaned[key] = {name: _to_strict_schema(child, docstrings) for name, child in value.items()}
        elif key == "description" and value in docstrings:
            continue
        elif key not in _UNSUPPORTED_KEYWORDS:
            cleaned["anyOf" if key == "oneOf" else key] = _to_strict_schema(value, docstrings)
    return cleaned


def _find_json_values(text: str, *, is_lenient: bool) -> Iterator[tuple[JsonNode, bool]]:
    """Yield the outermost JSON objects and lists of objects in a text, and whether they are cut.

    Raises UnusableAnswer at a malformed value. With `is_lenient`, NaN becomes null, and a cut object ends after its
    last whole item.
    """
    decoder = json.JSONDecoder(parse_constant=_read_as_null if is_lenient else _refuse_constant)
    position = 0
    while match := _JSON_START.search(text, position):
        try:
            value, position = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            try:
                yield decoder.decode(_complete_cut_object(text[match.start() :]) if is_lenient else ""), True
                return
            except (ValueError, RecursionError):
                raise UnusableAnswer("its JSON is cut or malformed", found_json=True) from None
        yield value, False


def _read_as_null(name: str) -> None:
    return None


def _complete_cut_object(text: str) -> str:
    """Return a cut object up to its last whole property or list item; an empty object if there is none."""
    whole, open_brackets = "", ""
    for token in _JSON_TOKEN.finditer(text):
        match token[0]:
            case "{" | "[" as bracket:
                open_brackets += bracket
                continue
            case "}" | "]":
                open_brackets = open_brackets[:-1]
                end = token.end()
            case ",":
                end = token.start()
            case _:
                continue
        if not open_brackets:
            return ""
        if open_brackets in ("{", "{["):
            whole = text[:end] + ("]}" if open_brackets == "{[" else "}")
    return whole


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _normalize_enum_values(value: JsonNode, node: JsonNode, definitions: Mapping[str, JsonNode]) -> JsonNode:
    """Return a value with enum values spelled as in the schema, if only case, spaces, `-` and `_` differ."""
    branches = list(_schema_branches(node, definitions))
    if isinstance(value, str):
        return _match_enum_value(value, [option for branch in branches for option in _enum_values(branch)])
    if isinstance(value, list):
        items = [branch["items"] for branch in branches if "items" in branch]
        return [_normalize_enum_values(item, items[0], definitions) for item in value] if len(items) == 1 else value
    objects = [branch["properties"] for branch in branches if "properties" in branch]
    if isinstance(value, dict) and len(objects) == 1:
        return {
            key: _normalize_enum_values(child, objects[0].get(key, {}), definitions) for key, child in value.items()
        }
    return value


def _schema_branches(node: JsonNode, definitions: Mapping[str, JsonNode]) -> Iterator[dict[str, JsonNode]]:
    if "$ref" in node:
        yield from _schema_branches(definitions[node["$ref"].rpartition("/")[2]], definitions)
    for key in ("anyOf", "oneOf", "allOf"):
        for child in node.get(key, ()):
            yield from _schema_branches(child, definitions)
    yield node


def _enum_values(node: Mapping[str, JsonNode]) -> list[JsonNode]:
    return [*node.get("enum", ()), *([node["const"]] if "const" in node else ())]


def _match_enum_value(value: str, options: list[JsonNode]) -> str:
    if value in options:
        return value
    same = {option for option in options if isinstance(option, str) and _spelling_key(option) == _spelling_key(value)}
    return same.pop() if len(same) == 1 else value


def _spelling_key(text: str) -> str:
    return _SEPARATORS.sub("_", text.strip()).casefold()


def _describe_errors(error: ValidationError, root: Mapping[str, JsonNode]) -> str:
    """Return the first errors as `path (kind)`, with positions and declared property names only."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    described = [_describe_error(detail, root) for detail in details[:MAX_DESCRIBED_ERRORS]]
    more = len(details) - len(described)
    return f"it does not fit at {', '.join(described)}" + (f" and {more} more" if more > 0 else "")


def _describe_error(detail: ErrorDetails, root: Mapping[str, JsonNode], skip: int = 0) -> str:
    """Return an error as `path (kind)`, without the first `skip` parts of the path."""
    declared = {name for node in (root, *root.get("$defs", {}).values()) for name in node.get("properties", ())}
    path = ".".join(str(part) for part in detail["loc"][skip:] if isinstance(part, int) or part in declared)
    return f"{path or 'the object'} ({detail['type']})"


OutputMode = Literal["native", "tool", "prompted", "text"]
"""How a request asks for JSON.

`native`: a schema that the server enforces; `tool`: arguments of a tool that must be called; `prompted`: the schema in
the prompt, with the server's JSON mode; `text`: the prompt alone.
"""

REFUSAL_SECONDS = 3600.0
"""Seconds after which a rejected parameter is sent again."""

_SUCCESSORS: dict[OutputMode, OutputMode] = {"native": "prompted", "tool": "prompted", "prompted": "text"}


def preferred_mode(model: Model) -> OutputMode:
    """Return the output mode preferred by a model's profile."""
    profile = model.profile
    if profile.get("supports_json_schema_output", False):
        return "native"
    can_force_tool = profile.get("supports_tools", True) and profile.get("supports_forced_tool_choice", True)
    return "tool" if can_force_tool else "prompted"


@dataclass(slots=True)
class ServerRefusals:
    """The output modes and parameters that a model's server has recently rejected."""

    preferred: OutputMode
    clock: Callable[[], float] = time.monotonic
    _refused_at: dict[str, float] = field(default_factory=dict)

    def add(self, refused: str) -> None:
        """Remember that the server rejected an output mode or parameter."""
        self._refused_at[refused] = self.clock()

    def __contains__(self, name: str) -> bool:
        refused_at = self._refused_at.get(name)
        return refused_at is not None and self.clock() - refused_at < REFUSAL_SECONDS

    def output_mode(self) -> OutputMode:
        """Return the first output mode, starting with the preferred one, that the server has not rejected."""
        mode = self.preferred
        while mode in self and mode in _SUCCESSORS:
            mode = _SUCCESSORS[mode]
        return mode


def structured_parameters(schema: type[BaseModel], mode: OutputMode) -> ModelRequestParameters:
    """Return the part of a request that asks for an answer in the shape of `schema`."""
    shape, name = response_schema(schema), schema_name(schema)
    if mode == "tool":
        tool = ToolDefinition(name=name, parameters_json_schema=shape, strict=True, kind="output")
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    if mode == "text":
        return ModelRequestParameters()
    output = OutputObjectDefinition(json_schema=shape, name=name, strict=True)
    # The library's own sentence about the schema would be a second system message, which some servers reject.
    return ModelRequestParameters(output_mode=mode, output_object=output, prompted_output_template=False)


def add_schema_to_system(messages: list[ChatMessage], schema: type[BaseModel]) -> list[ChatMessage]:
    """Return the messages with the schema in the system message, for servers without schema support."""
    shape = json.dumps(response_schema(schema))
    instruction = f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{shape}"
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
