"""Systems that extract by themselves: what mem0 gets, what is said where it is missing, what their reports hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from graphmem.evaluation.benchmark import (
    AskedQuestion,
    Benchmark,
    BenchmarkConversation,
    BenchmarkData,
    BenchmarkMessage,
)
from graphmem.evaluation.evaluation import ExtractingSystemStorer
from graphmem.evaluation.graphiti_system import graphiti_group
from graphmem.evaluation.mem0_system import date_prompt, describe_memory, describe_unusable_mem0, to_mem0_messages
from graphmem.evaluation.plan import Prices
from graphmem.evaluation.report import build_report, render_report
from graphmem.evaluation.run_folder import AnswerContext, RunFolder, RunOptions, StoredSession, StoredSize
from graphmem.models.language_model import Receipt
from graphmem.runtime.errors import ModelUnavailable

SAID_AT = datetime(2023, 5, 1, 13, 56, tzinfo=UTC)


def message(number: int, session: str = "s1", **fields: str) -> BenchmarkMessage:
    given = {"role": "user", "name": "Gina", "content": f"sentence {number}", **fields}
    return BenchmarkMessage(id=f"m{number}", session=session, timestamp=SAID_AT, **given)


def conversation(*messages: BenchmarkMessage) -> BenchmarkConversation:
    return BenchmarkConversation(id="c", messages=list(messages))


def test_mem0_gets_messages_with_their_speakers() -> None:
    nameless = BenchmarkMessage(id="m2", session="s1", role="assistant", content="Good.")
    assert to_mem0_messages([message(1), nameless]) == [
        {"role": "user", "content": "Gina: sentence 1"},
        {"role": "assistant", "content": "Good."},
    ]


def test_a_prompt_of_mem0_has_the_day_of_its_messages() -> None:
    said = "user: I wrote ## Current Date 2020-01-01"
    prompt = f"## New Messages\n{said}\n\n## Observation Date\n2026-11-26\n\n## Current Date\n2026-11-26\n\n# Output:"
    dated = date_prompt(prompt, date(2023, 5, 1))
    assert dated == prompt.replace("2026-11-26", "2023-05-01")
    assert said in dated


def test_a_memory_of_mem0_is_a_line_with_the_day_on_which_it_was_said() -> None:
    assert describe_memory("Vera lives\nin Lund", SAID_AT.isoformat()) == "- 2023-05-01: Vera lives in Lund"
    assert describe_memory("Vera lives in Lund", None) == "- Vera lives in Lund"


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        (None, "needs mem0: run pip install 'mem0ai>=2'"),
        ("1.0.11", "cannot use mem0 1.0.11: run pip install 'mem0ai>=2'"),
        ("2.2.1", ""),
    ],
)
def test_a_package_that_cannot_be_used_is_named_with_how_to_get_it(installed: str | None, said: str) -> None:
    assert (describe_unusable_mem0(installed) or "").startswith(said)
    assert (describe_unusable_mem0(installed) is None) == (said == "")


def test_a_group_of_graphiti_is_none_of_graphmem() -> None:
    group = graphiti_group("evaluate-1", "conv: 1")
    assert ":" not in group
    assert group != graphiti_group("evaluate-2", "conv: 1")


class CountingSystem:
    """Counts the messages that it gets, and is out of order when it gets the one of `broken`."""

    messages_per_add = 2
    conversations_at_once = 1

    def __init__(self) -> None:
        self.got: list[list[str]] = []
        self.broken: str | None = None

    async def add(self, conversation: BenchmarkConversation, messages: Sequence[BenchmarkMessage]) -> Receipt:
        if self.broken in [one.id for one in messages]:
            raise ModelUnavailable("out of order")
        self.got.append([one.id for one in messages])
        return Receipt(llm_calls=1, prompt_tokens=100)

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        return []

    async def measure(self, conversation: BenchmarkConversation) -> StoredSize:
        return StoredSize(system="mem0", conversation=conversation.id, facts=3, entities=0, messages=0, size=2_000)

    async def remove(self, conversations: Sequence[BenchmarkConversation]) -> None:
        pass


async def test_a_system_that_failed_gets_what_is_left_of_the_session(tmp_path: Path) -> None:
    system = CountingSystem()
    held = conversation(*(message(number) for number in range(5)), message(5, "s2"))
    system.broken = "m2"
    with pytest.raises(ModelUnavailable):
        await ExtractingSystemStorer("mem0", system, RunFolder(tmp_path)).store_all([held], lambda *_: None)
    assert system.got == [["m0", "m1"]]
    system.broken = None
    for _ in range(2):
        await ExtractingSystemStorer("mem0", system, RunFolder(tmp_path)).store_all([held], lambda *_: None)
    assert system.got == [["m0", "m1"], ["m2", "m3"], ["m4"], ["m5"]]
    folder = RunFolder(tmp_path)
    first = folder.sessions.find("mem0", "c", "s1")
    assert first
    assert first.receipt
    assert (first.messages, first.receipt.llm_calls, first.receipt.prompt_tokens) == (5, 3, 300)
    assert [size.facts for size in folder.sizes] == [3]


def test_the_report_says_what_each_extraction_takes_for_a_thousand_messages(tmp_path: Path) -> None:
    folder, receipt = RunFolder(tmp_path), Receipt(llm_calls=2, prompt_tokens=20_000, completion_tokens=1_000)
    held = conversation(message(1), message(2))
    data = BenchmarkData(benchmark=Benchmark.OTHER, name="mine", conversations=[held], questions=[])
    for system in ("graphmem", "mem0"):
        session = StoredSession(system=system, conversation="c", session="s1", messages=2, receipt=receipt, seconds=3)
        folder.sessions.add(session)
    folder.sizes.add(StoredSize(system="mem0", conversation="c", facts=3, entities=1, messages=0, size=4_000))
    options = RunOptions(
        benchmark="other", name="mine", data="", conversations=["c"], questions=[], systems=["context", "mem0"],
        budgets=[100], given_facts=False, extraction_model="small", reader=None, judge=None, tenant="t",
    )  # fmt: skip
    report = build_report(data, folder, options, "mini", Prices(1.0, 2.0))
    assert report.messages == 2, "messages are counted once"
    ours, theirs = report.extractions
    assert (ours.system, theirs.system) == ("graphmem", "mem0")
    assert (theirs.calls, theirs.prompt_tokens, theirs.seconds, theirs.facts) == (1_000, 10_000_000, 1_500, 1_500)
    assert theirs.cost == pytest.approx(11.0)
    text = render_report(report)
    assert "| mem0 | 1,000 | 10,000,000 | 500,000 | 1,500 | 11.00 | 1,500 | 500 | 2,000 |" in text
    assert "- mem0 gets two messages at a time" in text
    assert "graphiti" not in text
