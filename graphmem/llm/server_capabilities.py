"""The optional parameters of requests that a server supports, learned from its refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from openai import APIStatusError
from pydantic import BaseModel

from graphmem.llm.failures import unsupported_parameter
from graphmem.llm.prompts import ChatMessage
from graphmem.llm.structured_output import response_format, response_schema

JsonMode = Literal["json_schema", "json_object", "text"]
"""How a request asks for JSON: by a schema, by `json_object` with the schema in the prompt, or in the prompt alone."""


@dataclass(slots=True)
class ServerCapabilities:
    """The JSON mode of one model at a server, and the parameters that it refuses."""

    json_mode: JsonMode = "json_schema"
    unsupported_parameters: set[str] = field(default_factory=set)

    def learn_from_refusal(self, error: APIStatusError, request: Mapping[str, Any]) -> bool:
        """Stop using the parameter of the request that the server refused; return False when it refused none."""
        refused = unsupported_parameter(error, request)
        if refused is None:
            return False
        if refused != "response_format":
            self.unsupported_parameters.add(refused)
        elif request[refused]["type"] == "json_object":
            self.json_mode = "text"
        else:
            self.put_schema_into_prompt()
        return True

    def put_schema_into_prompt(self) -> None:
        """Send the schema in the prompt from now on."""
        if self.json_mode == "json_schema":
            self.json_mode = "json_object"


def build_structured_request(
    messages: list[ChatMessage], schema: type[BaseModel], json_mode: JsonMode
) -> dict[str, Any]:
    """Return the part of a chat completion request that asks for an answer in the shape of `schema`."""
    if json_mode == "json_schema":
        return {"messages": messages, "response_format": response_format(schema)}
    request: dict[str, Any] = {"messages": _add_schema_to_system(messages, schema)}
    return {**request, "response_format": {"type": "json_object"}} if json_mode == "json_object" else request


def _add_schema_to_system(messages: list[ChatMessage], schema: type[BaseModel]) -> list[ChatMessage]:
    """Return the messages with the schema in the system message, for servers that take no schema."""
    shape = json.dumps(response_schema(schema))
    instruction = f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{shape}"
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
