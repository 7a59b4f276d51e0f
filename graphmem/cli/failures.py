"""How a command fails: one line, or with `--json` one problem document as the HTTP API has it, on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from graphmem.runtime.errors import GraphmemError, InvalidInput

_UsageProblem: Any = typer.BadParameter.__mro__[2]
"""The base of errors in a command's options and arguments, which typer does not export."""

EXIT_FAILED = 1
EXIT_USAGE = 2


@dataclass
class CommandFailed(Exception):
    """A command ends: what went wrong as one sentence, and the exit code."""

    detail: str
    exit_code: int = EXIT_FAILED
    title: str = "Failed"
    status: int = 500
    errors: Sequence[Mapping[str, Any]] = ()

    def exit(self, *, as_json: bool) -> NoReturn:
        """Exit with one line on standard error."""
        line = json.dumps(self._to_problem(), ensure_ascii=False) if as_json else f"graphmem: {self._to_sentence()}"
        typer.echo(line.encode(errors="backslashreplace"), err=True)
        raise typer.Exit(self.exit_code)

    def _to_problem(self) -> dict[str, Any]:
        from graphmem.runtime.problems import problem_type

        document = {
            "type": problem_type(self.title),
            "title": self.title,
            "status": self.status,
            "detail": " ".join(self.detail.split()),
        }
        return {**document, "errors": [*self.errors]} if self.errors else document

    def _to_sentence(self) -> str:
        from graphmem.runtime.validation_domain import describe_field_errors

        detail = " ".join(self.detail.split())
        described = describe_field_errors(self.errors)
        return detail if described in detail else f"{detail} ({described})"


def failure_of(error: Exception) -> CommandFailed:
    """Return how a command fails by an error."""
    if isinstance(error, CommandFailed):
        return error
    if isinstance(error, GraphmemError):
        code = EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED
        return CommandFailed(error.detail, code, error.title, error.status, error.errors)
    if isinstance(error, UnicodeDecodeError):
        sentence = f"The input is not UTF-8 text ({error.reason} at byte {error.start})."
        return CommandFailed(sentence, EXIT_USAGE, InvalidInput.title, InvalidInput.status)
    return CommandFailed(
        f"Unexpected {type(error).__name__}: run the command again with --debug and report its output.",
        title=GraphmemError.title,
    )


_PARAMETERS = {"types": "type", "tags": "tag", "content": "text", "query": "text", "q": "text", "session_id": "session"}
"""Fields of operations whose values commands take under another name."""


@contextmanager
def named_as_options(shown: Mapping[str, str]) -> Iterator[None]:
    """Name the fields of InvalidInput as the command does that the user typed; `shown` has these names by parameter."""
    try:
        yield
    except InvalidInput as error:
        from graphmem.runtime.validation_domain import describe_field_errors

        described = describe_field_errors(error.errors)
        error.errors = [{**problem, "loc": _option_path(problem["loc"], shown)} for problem in error.errors]
        if described and described in error.detail:
            error.detail = error.detail.replace(described, describe_field_errors(error.errors))
        error.detail = _SNAKE_CASE.sub(lambda word: shown.get(word[0], word[0]), error.detail)
        raise


_SNAKE_CASE = re.compile(r"(?<![\w-])[a-z]+(?:_[a-z]+)+(?!\w)")
"""Names of fields in sentences, such as `valid_at`."""


def _option_path(loc: Any, shown: Mapping[str, str]) -> list[str | int]:
    """Return the option at the location of a field: `types.0` is `--type`, `memories.0.object.name` is `--object`.

    What the command has no option for stays, and so does the place in a document that an option names.
    """
    path = [*loc]
    while path and (path[0] in ("body", "memories") or (len(path) > 1 and isinstance(path[0], int))):
        path = path[1:]
    name = _PARAMETERS.get(path[0], path[0]) if path and isinstance(path[0], str) else None
    if name is None or name not in shown:
        return [] if path == [0] and "text" in shown else [*loc]  # the one statement that was typed
    rest = path[1:] if name not in ("subject", "object") and any(isinstance(part, str) for part in path[1:]) else []
    return [shown[name], *rest]


class GroupWithJsonErrors(TyperGroup):
    """A group of commands that reports wrong use as a problem document when `--json` is given."""

    def main(self, args: Sequence[str] | None = None, *given: Any, **options: Any) -> Any:
        """Run a command."""
        if "--json" not in (sys.argv[1:] if args is None else args):
            return super().main(args, *given, **options)
        try:
            code = super().main(args, *given, **{**options, "standalone_mode": False})
        except typer.Abort:
            failure = CommandFailed("The command was cancelled.", title="Cancelled")
        except _UsageProblem as error:
            failure = CommandFailed(error.format_message(), error.exit_code, InvalidInput.title, InvalidInput.status)
        else:
            sys.exit(code or 0)
        try:
            failure.exit(as_json=True)
        except typer.Exit as ended:
            sys.exit(ended.exit_code)
