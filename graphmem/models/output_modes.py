"""How a request asks for JSON, chosen by the profile of a model and the refusals of its server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from graphmem.models.prompts import ChatMessage
from graphmem.models.structured_output import response_schema, schema_name

OutputMode = Literal["native", "tool", "prompted", "text"]
"""How a request asks for JSON.

`native`: by a schema that the server enforces; `tool`: as the arguments of a tool that must be called; `prompted`: by
the schema in the prompt and the server's JSON mode; `text`: in the prompt alone.
"""

REFUSAL_SECONDS = 3600.0
"""Seconds after which a parameter that a server refused is sent again."""

_SUCCESSORS: dict[OutputMode, OutputMode] = {"native": "prompted", "tool": "prompted", "prompted": "text"}


def preferred_mode(model: Model) -> OutputMode:
    """Return the output mode that the profile of a model favours."""
    profile = model.profile
    if profile.get("supports_json_schema_output", False):
        return "native"
    can_force_tool = profile.get("supports_tools", True) and profile.get("supports_forced_tool_choice", True)
    return "tool" if can_force_tool else "prompted"


@dataclass(slots=True)
class ServerRefusals:
    """The output modes and parameters that the server of one model has refused lately."""

    preferred: OutputMode
    clock: Callable[[], float] = time.monotonic
    _refused_at: dict[str, float] = field(default_factory=dict)

    def add(self, refused: str) -> None:
        """Remember that the server refused an output mode or a parameter."""
        self._refused_at[refused] = self.clock()

    def __contains__(self, name: str) -> bool:
        refused_at = self._refused_at.get(name)
        return refused_at is not None and self.clock() - refused_at < REFUSAL_SECONDS

    def output_mode(self) -> OutputMode:
        """Return the first output mode, from the preferred one on, that the server has not refused."""
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
    # The library's own sentence about the schema would be a second system message, which some servers refuse.
    return ModelRequestParameters(output_mode=mode, output_object=output, prompted_output_template=False)


def add_schema_to_system(messages: list[ChatMessage], schema: type[BaseModel]) -> list[ChatMessage]:
    """Return the messages with the schema in the system message, for servers that take no schema."""
    shape = json.dumps(response_schema(schema))
    instruction = f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{shape}"
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
