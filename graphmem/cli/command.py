"""What every command has in common: its options, one event loop, an output and an end."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from graphmem.errors import GraphmemError, InvalidInput

if TYPE_CHECKING:
    from pydantic import ValidationError
    from rich.console import Console, RenderableType

    from graphmem.settings import Settings

_PIPED_WIDTH = 160

EXIT_FAILED = 1
EXIT_USAGE = 2

JsonFlag = Annotated[bool, typer.Option("--json", help="Print what the HTTP API would.")]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show stack traces and the log.")]
User = Annotated[str, typer.Option("--user", "-u", help="Whose memory it is.", show_default=False)]
AnyUser = Annotated[str | None, typer.Option("--user", "-u", help="One user; absent: all of the tenant.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant of the user.")]


@dataclass(frozen=True)
class Flags:
    """The options that may stand before or after the command."""

    json: bool = False
    debug: bool = False

    def __or__(self, other: Flags) -> Flags:
        return Flags(self.json or other.json, self.debug or other.debug)


class Output:
    """Where a command's answer goes: JSON or tables to standard output, everything else to standard error."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags

    @functools.cached_property
    def stdout(self) -> Console:
        """Standard output for people; in a pipe that does not say how wide it is there is room for ids."""
        from rich.console import Console

        told = sys.stdout.isatty() or "COLUMNS" in os.environ
        return Console(highlight=False, width=None if told else _PIPED_WIDTH)

    @functools.cached_property
    def stderr(self) -> Console:
        """Standard error, for progress and remarks."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def show(self, value: object, *drawn: RenderableType) -> None:
        """Print the answer: `value` as JSON when that was asked for, else what was drawn of it."""
        if self.flags.json:
            sys.stdout.write(as_json(value) + "\n")
        else:
            for each in drawn:
                self.stdout.print(each, crop=False)

    def note(self, text: str) -> None:
        """Print a remark to standard error, as it is."""
        self.stderr.print(text, markup=False, soft_wrap=True)


def as_json(value: object) -> str:
    """Return models, dataclasses, times and what holds them as JSON text."""
    from pydantic_core import to_json

    return to_json(value, indent=2, inf_nan_mode="null").decode()


def read_settings(**changes: object) -> Settings:
    """Return the settings; end with a line about each that cannot be used."""
    from pydantic import ValidationError

    from graphmem.settings import Settings

    try:
        settings = Settings()
    except ValidationError as error:
        wrong = [f"{_setting_name(each['loc'])}: {each['msg']}" for each in error.errors(include_url=False)]
        exit_with_error("; ".join(wrong), EXIT_USAGE)
    return settings.model_copy(update={name: value for name, value in changes.items() if value is not None})


def _setting_name(loc: Sequence[int | str]) -> str:
    name = str(loc[0]) if loc else "settings"
    return name.upper() if name.upper().startswith("OPENAI_") else f"GRAPHMEM_{name.upper()}"


def exit_with_error(sentence: str, code: int = EXIT_FAILED) -> NoReturn:
    """End the command with one line on standard error."""
    line = " ".join(sentence.split())
    typer.echo(f"graphmem: {line}".encode(errors="backslashreplace"), err=True)
    raise typer.Exit(code)


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Register an async function `handler(output, …options)` as a command that also takes `--json` and `--debug`."""

    def register(handler: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(handler)
        def run(context: typer.Context, json: bool, debug: bool, **options: Any) -> None:
            given = context.obj if isinstance(context.obj, Flags) else Flags()
            _run_command(handler, Output(given | Flags(json, debug)), options)

        signature = inspect.signature(handler, eval_str=True)
        options = [each for each in signature.parameters.values() if each.name != "output"]
        run.__signature__ = signature.replace(parameters=_with_common_parameters(options))  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in run.__signature__.parameters.values()}  # type: ignore[attr-defined]
        app.command(name)(run)
        return run

    return register


def _with_common_parameters(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    def keyword(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    return [
        keyword("context", typer.Context),
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options),
        keyword("json", JsonFlag, False),
        keyword("debug", DebugFlag, False),
    ]


def _run_command(handler: Callable[..., Awaitable[None]], output: Output, options: dict[str, Any]) -> None:
    """Run a command to its end; whatever goes wrong becomes one line and an exit code, unless `--debug`."""
    import logging

    from pydantic import ValidationError

    from graphmem.eventloop import run
    from graphmem.logs import configure_logs
    from graphmem.tracing import export_spans

    async def once() -> None:
        with export_spans():
            await handler(output, **options)

    configure_logs(logging.INFO if output.flags.debug else logging.ERROR)
    if not (output.flags.debug or sys.warnoptions):
        warnings.simplefilter("ignore")
    try:
        run(once())
    except GraphmemError as error:
        if output.flags.debug:
            raise
        exit_with_error(_describe_error(error), EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED)
    except ValidationError as error:
        if output.flags.debug:
            raise
        exit_with_error(describe_validation_error(error), EXIT_USAGE)
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise
    except UnicodeDecodeError as error:
        exit_with_error(f"The input is not UTF-8 text ({error.reason} at byte {error.start}).", EXIT_USAGE)
    except Exception as error:
        if output.flags.debug:
            raise
        exit_with_error(
            f"Unexpected {type(error).__name__}: run the command again with --debug and report what it says."
        )


def describe_validation_error(error: ValidationError) -> str:
    """Return what is wrong with given data as one sentence; the data itself is not quoted."""
    told = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, each["loc"])) or "input"
        told.append(f"{place}: {each['msg'].removeprefix('Value error, ')}")
    return "; ".join(told)


def _describe_error(error: GraphmemError) -> str:
    """Return the error's sentence with the list of what is wrong, where there is one."""
    details = [
        f"{'.'.join(map(str, _location_parts(each.get('loc'))))}: {each.get('msg')}" for each in error.errors[:5]
    ]
    return f"{error.detail} ({'; '.join(details)})" if details else error.detail


def _location_parts(loc: object) -> Sequence[object]:
    return loc if isinstance(loc, list | tuple) else [loc]
