"""Estimates of a run's model usage before it starts: calls, tokens, time, and cost at given prices. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from graphmem.evaluation.benchmark import BenchmarkConversation, BenchmarkData
from graphmem.evaluation.context_lines import describe_message
from graphmem.evaluation.judging import PROMPTS as EVALUATION_PROMPTS
from graphmem.ingestion.transcript import MAX_BATCH_CHARACTERS, MAX_BATCH_MESSAGES
from graphmem.models.language_model import PromptTemplate, load_prompts
from graphmem.text.token_counts import count_tokens

CONTEXT, SEARCH, FULL_CONTEXT, GRAPHITI_SEARCH = "context", "search", "full-context", "graphiti-search"
ASK = "ask"
GRAPHITI, MEM0 = "graphiti", "mem0"
"""Names of compared systems in options, plans and reports."""

CALLS_PER_BATCH = 2
"""Model calls per batch of messages: one extracts, one compares the result with known facts."""

KNOWN_FACTS_TOKENS = 1_500
"""Tokens of names, facts and earlier messages in both prompts of a batch; measured on LoCoMo."""

ANSWER_TOKENS: Mapping[str, int] = {"extraction": 900, "reading": 30, "judging": 120, "causes": 60}
"""Completion tokens of a call by step; measured on LoCoMo."""


@dataclass(frozen=True, slots=True)
class AddEstimate:
    """The model usage of a system with its own extraction, per add.

    `prompt_tokens` are those of a call, including the messages; `rounds` of the `calls` are sequential. Conversations
    are sequential unless `parallel`.
    """

    messages: int
    calls: int
    rounds: int
    prompt_tokens: int
    completion_tokens: int
    parallel: bool


ADD_ESTIMATES: Mapping[str, AddEstimate] = {
    # The entities of a message, known entities, its facts; comparing two facts with known ones, and dating them.
    GRAPHITI: AddEstimate(messages=1, calls=6, rounds=5, prompt_tokens=1_900, completion_tokens=150, parallel=False),
    # One prompt of 7,700 tokens, with earlier messages and ten memories.
    MEM0: AddEstimate(messages=2, calls=1, rounds=1, prompt_tokens=9_000, completion_tokens=250, parallel=True),
}
"""The estimates by system."""

SECONDS_PER_CALL = 5.0
"""Estimated seconds per call."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in any currency."""

    prompt: float
    completion: float

    def cost_of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the cost of tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


class StepPlan(BaseModel):
    """The most model usage of a step."""

    step: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    minutes: float
    cost: float | None


class RunPlan(BaseModel):
    """The plan of a run, with the model usage of each step."""

    benchmark: str
    name: str
    conversations: int
    messages: int
    sessions: int
    questions: int
    systems: list[str]
    budgets: list[int]
    steps: list[StepPlan]
    minutes: float
    cost: float | None


def make_plan(
    data: BenchmarkData,
    systems: Sequence[str],
    budgets: Sequence[int],
    *,
    in_flight: int,
    extracts: bool,
    answers: bool,
    prices: Prices | None,
) -> RunPlan:
    """Return the plan of a run; the sessions of a conversation are sequential, everything else is parallel.

    For `ask`, which may look twice, two calls are counted.
    """
    steps = []
    if extracts:
        batches = {conversation.id: _count_batches(conversation) for conversation in data.conversations}
        tokens = sum(_message_tokens(conversation) for conversation in data.conversations)
        prompts = load_prompts()
        calls = CALLS_PER_BATCH * sum(batches.values())
        overhead = _prompt_tokens(prompts["extract"]) + _prompt_tokens(prompts["reconcile"]) + KNOWN_FACTS_TOKENS
        serial = CALLS_PER_BATCH * max(batches.values(), default=0)
        steps.append(_plan_step("extraction", calls, tokens + sum(batches.values()) * overhead, serial, prices))
    steps += [
        _plan_adds(data, system, estimate, prices) for system, estimate in ADD_ESTIMATES.items() if system in systems
    ]
    if answers:
        contexts = {system: [None] if system == FULL_CONTEXT else list(budgets) for system in systems}
        count = sum(map(len, contexts.values()))
        reading = sum(map(sum, (budgets for system in systems if system != FULL_CONTEXT)))
        full = {conversation.id: _message_tokens(conversation) for conversation in data.conversations}
        whole = sum(full[question.conversation] for question in data.questions) if FULL_CONTEXT in systems else 0
        asked = len(data.questions)
        calls = asked * (count + (len(budgets) if ASK in systems else 0))
        answer_prompt = _prompt_tokens(EVALUATION_PROMPTS["answer"])
        read_tokens = asked * (reading + count * answer_prompt) + whole
        steps.append(_plan_step("reading", calls, read_tokens, math.ceil(calls / in_flight), prices))
        judged = asked * (_prompt_tokens(EVALUATION_PROMPTS["judge"]) + count * ANSWER_TOKENS["reading"])
        steps.append(_plan_step("judging", asked, judged, math.ceil(asked / in_flight), prices))
        looked_at = asked * (_prompt_tokens(EVALUATION_PROMPTS["cause"]) + sum(budgets))
        steps.append(_plan_step("causes", asked, looked_at, math.ceil(asked / in_flight), prices))
    return RunPlan(
        benchmark=data.benchmark.value,
        name=data.name,
        conversations=len(data.conversations),
        messages=sum(len(conversation.messages) for conversation in data.conversations),
        sessions=sum(len(conversation.sessions()) for conversation in data.conversations),
        questions=len(data.questions),
        systems=list(systems),
        budgets=list(budgets),
        steps=steps,
        minutes=sum(step.minutes for step in steps),
        cost=sum(step.cost or 0.0 for step in steps) if prices else None,
    )


def _plan_adds(data: BenchmarkData, system: str, estimate: AddEstimate, prices: Prices | None) -> StepPlan:
    """Return the model usage of a system with its own extraction."""
    adds = [
        sum(math.ceil(len(messages) / estimate.messages) for _, messages in conversation.sessions())
        for conversation in data.conversations
    ]
    calls = sum(adds) * estimate.calls
    serial = (max(adds, default=0) if estimate.parallel else sum(adds)) * estimate.rounds
    tokens = calls * estimate.prompt_tokens
    return _plan_step(f"extraction, {system}", calls, tokens, serial, prices, estimate.completion_tokens)


def _plan_step(
    step: str,
    calls: int,
    prompt_tokens: int,
    serial_calls: int,
    prices: Prices | None,
    answer_tokens: int | None = None,
) -> StepPlan:
    completion_tokens = calls * (ANSWER_TOKENS[step] if answer_tokens is None else answer_tokens)
    return StepPlan(
        step=step,
        calls=calls,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        minutes=serial_calls * SECONDS_PER_CALL / 60,
        cost=prices.cost_of(prompt_tokens, completion_tokens) if prices else None,
    )


def _count_batches(conversation: BenchmarkConversation) -> int:
    return sum(
        max(
            math.ceil(len(messages) / MAX_BATCH_MESSAGES),
            math.ceil(sum(len(message.content) for message in messages) / MAX_BATCH_CHARACTERS),
        )
        for _, messages in conversation.sessions()
    )


def _message_tokens(conversation: BenchmarkConversation) -> int:
    return _tokens(map(describe_message, conversation.messages))


def _prompt_tokens(prompt: PromptTemplate) -> int:
    return _tokens([prompt.system, prompt.user])


def _tokens(texts: Iterable[str]) -> int:
    return sum(map(count_tokens, texts))
