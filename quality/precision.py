"""How precisely search stops: the share of questions that are answered with exactly the memories that fit.

A second table is of requests that need a memory without asking for it, such as "Order dinner for me" of a user with an
allergy: the share of the needed memories that search returns.

    python -m quality.precision [--set fit|report] [--details]

The cases are in `precision_cases.yaml`; no model is called. Each user is stored in the database of the settings and
forgotten at the end. A question is exact if the search returns all the memories it should and no other.
"""

from __future__ import annotations

import argparse
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphmem.graph_memory import GraphMemory
from graphmem.runtime import process
from graphmem.runtime.settings import Settings

CASES = Path(__file__).with_name("precision_cases.yaml")

LIMIT = 10
"""Memories that each search may return at most."""

WAYS: dict[str, dict[str, Any]] = {
    "all 10": {},
    "min_score 0.5": {"min_score": 0.5},
    "min_score 0.8": {"min_score": 0.8},
    "cut auto": {"cut": "auto"},
}
"""The options of search that are compared, by name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search returned for one question, and what it should have."""

    way: str
    language: str
    question: str
    is_request: bool
    expected: frozenset[str]
    found: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the search returned all that it should and nothing else."""
        return self.expected == frozenset(self.found)


async def ask_user(memory: GraphMemory, user: dict[str, Any]) -> list[Answer]:
    """Store the memories of a user, ask the questions in every way, and forget the user."""
    user_id = f"{user['id']}-{uuid.uuid4().hex[:6]}"
    names = list(user["memories"])
    saved = await memory.add(user_id, list(user["memories"].values()))
    name_by_id = {result.memory.id: name for result, name in zip(saved, names, strict=True) if result.memory}
    answers = []
    for question in [*user["questions"], *user["requests"]]:
        is_request = "needs" in question
        expected = frozenset(question["needs" if is_request else "finds"])
        for way, options in WAYS.items():
            response = await memory.search(user_id, question["ask"], limit=LIMIT, reinforce=False, **options)
            found = tuple(name_by_id[hit.memory.id] for hit in response.results)
            answers.append(Answer(way, user["language"], question["ask"], is_request, expected, found))
    await memory.forget(user_id)
    return answers


async def run(users: Sequence[dict[str, Any]], settings: Settings) -> list[Answer]:
    """Ask the questions of all users."""
    async with GraphMemory.open(settings=settings) as memory:
        return [answer for user in users for answer in await ask_user(memory, user)]


def question_table(answers: Sequence[Answer]) -> str:
    """Return the report on questions in Markdown."""
    lines = ["| | exact | of those without an answer | precision | recall |", "|---|---:|---:|---:|---:|"]
    for way, given in _by_way(answer for answer in answers if not answer.is_request).items():
        empty = [answer for answer in given if not answer.expected]
        right = sum(len(answer.expected.intersection(answer.found)) for answer in given)
        found, expected = sum(len(answer.found) for answer in given), sum(len(answer.expected) for answer in given)
        lines.append(
            f"| {way} | {sum(answer.is_exact for answer in given)}/{len(given)} "
            f"| {sum(answer.is_exact for answer in empty)}/{len(empty)} "
            f"| {right / max(1, found):.3f} | {right / max(1, expected):.3f} |"
        )
    return "\n".join(lines)


def request_table(answers: Sequence[Answer]) -> str:
    """Return the report on requests in Markdown."""
    lines = ["| | needed memories found | memories per request | nothing found |", "|---|---:|---:|---:|"]
    for way, given in _by_way(answer for answer in answers if answer.is_request).items():
        right = sum(len(answer.expected.intersection(answer.found)) for answer in given)
        expected, found = sum(len(answer.expected) for answer in given), sum(len(answer.found) for answer in given)
        empty = sum(not answer.found for answer in given)
        lines.append(f"| {way} | {right}/{expected} | {found / len(given):.1f} | {empty}/{len(given)} |")
    return "\n".join(lines)


def _by_way(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    by_way: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_way[answer.way].append(answer)
    return by_way


def main() -> None:
    """Run the evaluation and print its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("fit", "report"), help="only the users of this set")
    parser.add_argument(
        "--details", action="store_true", help="print each question that cut auto does not answer exactly"
    )
    given = parser.parse_args()
    users = yaml.safe_load(CASES.read_text("utf-8"))["users"]
    for name in (given.set,) if given.set else ("fit", "report"):
        answers = process.run(run([user for user in users if user["set"] == name], Settings()))
        print(f"## {name}\n\n{question_table(answers)}\n\n{request_table(answers)}\n")
        for answer in answers:
            if given.details and answer.way == "cut auto" and not answer.is_exact:
                print(
                    f"{answer.language}: {answer.question}: {', '.join(answer.found) or 'nothing'}, "
                    f"not {', '.join(sorted(answer.expected)) or 'nothing'}"
                )


if __name__ == "__main__":
    main()
