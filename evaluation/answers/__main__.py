"""Answers per token: how many questions a reader answers rightly from contexts of 250 to 2,000 tokens.

    python -m evaluation.answers FILE[=COUNT] … [--contexts-only] [--completions FILE] [--out FOLDER]
    python -m evaluation.answers --contexts FILE [--completions FILE] [--out FOLDER]

Loads conversations with questions (`benches/conversations.py` describes the files) into new users of the database of
the settings, who are erased at the end, and builds contexts for COUNT questions of each file, spread evenly over
categories and conversations: from graphmem's `context`, from its search, and from Graphiti's search on the same graph.
Where a conversation has no facts, both searches find messages.

The contexts are written to `contexts.jsonl` of the folder; `--contexts` reads them from there, without a database, so
that a run that was interrupted asks about the same contexts.

A reader model answers each question from each context in a request of its own. A judge model compares the different
answers to a question with the expected one. Both are the model of the settings. Answers are kept in the file of
completions; requests that it answers are not sent again, and without a model it is all that is read. `--contexts-only`
asks no model and reports which share of the evidence and of the words of the expected answer the contexts hold.
`--pending FILE` writes the requests that are not answered yet instead of sending them.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from evaluation.answers.completions import RecordedModel, request_key
from evaluation.answers.contexts import AnswerContext, open_source
from evaluation.answers.judge import JudgeAnswer, distinct_answers, find_score, judge_prompt, scores_by_answer
from evaluation.answers.questions import AskedQuestion, SourceFile, draw, read_file
from evaluation.answers.reader import ReaderAnswer, in_rounds, reader_prompt
from evaluation.answers.report import render_report
from evaluation.answers.scores import Figure, answer_share, evidence_share, measure
from graphmem.models.prompts import Prompt
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime import process
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.settings import Settings

_CONTEXT = TypeAdapter(AnswerContext)

OUT = Path("reports/answers")
"""Folder of the report and the completions."""


async def build_contexts(files: Sequence[tuple[SourceFile, list[AskedQuestion]]]) -> list[AnswerContext]:
    """Load the conversations one after the other and return the contexts of the questions drawn."""
    contexts: list[AnswerContext] = []
    tenant = f"answers{uuid.uuid4().hex[:8]}"
    async with open_source(Settings()) as source:
        for file, drawn in files:
            for entry in file.conversations:
                asked = [question for question in drawn if question.conversation == entry["id"]]
                if not asked:
                    continue
                async with source.load(entry, tenant) as loaded:
                    for question in asked:
                        contexts += await source.build(loaded, question)
                print(f"{file.name}/{entry['id']}: {len(asked)} questions", flush=True)
    return contexts


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question with the answer of a reader to each of its contexts."""

    question: AskedQuestion
    answers: Sequence[tuple[AnswerContext, str]]

    def judge_prompt(self) -> Prompt:
        """Return the request to the judge."""
        return judge_prompt(self.question, self._distinct())

    def figures(self, judged: JudgeAnswer) -> list[Figure]:
        """Return what the answers count."""
        scores = scores_by_answer(self._distinct(), judged)
        score_of = {id(context): find_score(scores, text) for context, text in self.answers}
        return measure((context for context, _ in self.answers), lambda context: score_of[id(context)])

    def _distinct(self) -> list[str]:
        return distinct_answers(self.question, (text for _, text in self.answers))


async def read_contexts(model: RecordedModel, contexts: Sequence[AnswerContext]) -> list[AnsweredQuestion]:
    """Have the questions answered; return those of which every context has an answer."""
    ordered = in_rounds(contexts)
    found = await model.ask_all([reader_prompt(context) for context in ordered], ReaderAnswer)
    answers: dict[AskedQuestion, list[tuple[AnswerContext, str]]] = defaultdict(list)
    for context, given in zip(ordered, found, strict=True):
        if given is not None:
            answers[context.question].append((context, given.answer))
    wanted = Counter(context.question for context in contexts)
    return [AnsweredQuestion(question, given) for question, given in answers.items() if len(given) == wanted[question]]


async def judge_answers(model: RecordedModel, answered: Sequence[AnsweredQuestion]) -> list[Figure]:
    """Have the answers judged; return what they count."""
    judged = await model.ask_all([question.judge_prompt() for question in answered], JudgeAnswer)
    return [
        figure
        for question, verdicts in zip(answered, judged, strict=True)
        if verdicts is not None
        for figure in question.figures(verdicts)
    ]


async def score_answers(contexts: Sequence[AnswerContext], options: argparse.Namespace) -> list[Figure]:
    """Have the questions answered and the answers judged, by the model of the settings if there is one."""
    async with AsyncExitStack() as stack:
        model = None if options.pending else ProviderModel.from_settings(Settings())
        if model is not None:
            await stack.enter_async_context(model)
        recorded = RecordedModel(options.completions, model, options.in_flight)
        answered = await read_contexts(recorded, contexts)
        figures = await judge_answers(recorded, answered)
        readers = [reader_prompt(context) for context in in_rounds(contexts)]
        pending = [
            *with_schema(recorded.find_pending(readers, ReaderAnswer), ReaderAnswer),
            *with_schema(
                recorded.find_pending([question.judge_prompt() for question in answered], JudgeAnswer), JudgeAnswer
            ),
        ]
    if pending:
        print(f"{len(pending)} requests are not answered; judges read a question once all its contexts are answered.")
    if options.pending:
        options.pending.parent.mkdir(parents=True, exist_ok=True)
        options.pending.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in pending), "utf-8")
        print(f"Written: {options.pending}")
    return figures


def with_schema(prompts: Sequence[Prompt], schema: type[BaseModel]) -> list[dict[str, Any]]:
    """Return requests as they are written for a model that is asked in another way."""
    return [
        {
            "key": request_key(prompt, schema),
            "name": prompt.name,
            "messages": prompt.messages(),
            "schema": schema.model_json_schema(),
        }
        for prompt in prompts
    ]


def parse_source(text: str) -> tuple[SourceFile, list[AskedQuestion]]:
    """Return the file that `PATH=COUNT` names and the questions drawn from it, all of them without a count."""
    name, _, count = text.partition("=")
    file = read_file(Path(name))
    return file, draw(file.questions, int(count) if count else len(file.questions))


def load_contexts(path: Path) -> list[AnswerContext]:
    """Return the contexts of a file."""
    return [_CONTEXT.validate_json(line) for line in path.read_text("utf-8").splitlines()]


def save_contexts(contexts: Sequence[AnswerContext], path: Path) -> None:
    """Write contexts into a file, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_CONTEXT.dump_json(context).decode() + "\n" for context in contexts), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if bool(options.files) == bool(options.contexts):
        parser.error("name files of conversations, or a file of contexts with --contexts")
    try:
        if options.contexts:
            contexts = load_contexts(options.contexts)
        else:
            contexts = process.run(build_contexts(list(map(parse_source, options.files))))
            save_contexts(contexts, options.out / "contexts.jsonl")
        parts = [
            render_report("Evidence in the context", measure(contexts, evidence_share)),
            render_report("Words of the expected answer in the context", measure(contexts, answer_share)),
        ]
        if not options.contexts_only:
            figures = process.run(score_answers(contexts, options))
            parts = [*([render_report("Right answers", figures)] if figures else []), *parts]
    except GraphmemError as error:
        print(error.detail, file=sys.stderr)
        return 1
    report = "\n".join(["# Answers per token", "", *parts])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "answers.md").write_text(report, "utf-8")
    print(report)
    print(f"Written: {options.out / 'answers.md'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE[=COUNT]", help="conversations with questions")
    parser.add_argument("--contexts", type=Path, help="read the contexts of an earlier run from this file")
    parser.add_argument("--contexts-only", action="store_true", help="ask no model; report what the contexts hold")
    parser.add_argument("--completions", type=Path, default=OUT / "completions.jsonl", help="file of the answers")
    parser.add_argument("--pending", type=Path, help="write the unanswered requests to this file, send none")
    parser.add_argument("--in-flight", type=int, default=200, help="requests at the same time")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
