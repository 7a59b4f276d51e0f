"""Answers of a model that a file keeps: a request is sent once, and a run that was interrupted continues.

A line of the file is `{key, name, messages, answer}`; `key` is a hash of the messages and the schema. The file holds
texts of the conversations asked about and belongs into no repository.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import Prompt
from graphmem.runtime.errors import GraphmemError

T = TypeVar("T", bound=BaseModel)


class RecordedModel:
    """A model whose answers a file keeps; without a model, only the answers of the file are returned."""

    def __init__(self, path: Path, model: LanguageModel | None, in_flight: int) -> None:
        self._path = path
        self._model = model
        self._slots = asyncio.Semaphore(in_flight)
        self._answers: dict[str, Any] = {}
        if path.exists():
            entries = map(json.loads, path.read_text("utf-8").splitlines())
            self._answers = {entry["key"]: entry["answer"] for entry in entries}

    def find_pending(self, prompts: Sequence[Prompt], schema: type[T]) -> list[Prompt]:
        """Return the prompts without an answer, once and in order."""
        by_key = {request_key(prompt, schema): prompt for prompt in prompts}
        return [prompt for key, prompt in by_key.items() if key not in self._answers]

    async def ask_all(self, prompts: Sequence[Prompt], schema: type[T]) -> list[T | None]:
        """Return the answers to prompts, in order; None where a request failed or there is no model.

        Requests without an answer are sent in the order of their prompts, as many at the same time as may be.
        """
        if self._model is not None:
            pending = self.find_pending(prompts, schema)
            await asyncio.gather(*(self._ask(self._model, prompt, schema) for prompt in pending))
        found = [self._answers.get(request_key(prompt, schema)) for prompt in prompts]
        return [None if answer is None else schema.model_validate(answer) for answer in found]

    async def _ask(self, model: LanguageModel, prompt: Prompt, schema: type[T]) -> None:
        async with self._slots:
            try:
                answer = (await model.complete_structured(prompt, schema)).value
            except GraphmemError as error:
                print(f"{prompt.name}: {error.detail}", file=sys.stderr)
                return
        key, value = request_key(prompt, schema), answer.model_dump(mode="json")
        self._answers[key] = value
        entry = {"key": key, "name": prompt.name, "messages": prompt.messages(), "answer": value}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def request_key(prompt: Prompt, schema: type[BaseModel]) -> str:
    """Return 24 hex digits over what the model gets: the messages and the schema of the answer."""
    sent = {"messages": prompt.messages(), "schema": schema.model_json_schema()}
    return hashlib.sha256(json.dumps(sent, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:24]
