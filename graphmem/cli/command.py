"""What all commands share: flags, event loop, output and exit codes."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from graphmem.cli.failures import EXIT_FAILED, EXIT_USAGE, CommandFailed, failure_of
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from graphmem.runtime.settings import Settings

_PIPED_WIDTH = 160
"""Columns of tables in a pipe of unknown width; ids fit without a line break."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the JSON of the HTTP API.")]
NoServerFlag = Annotated[bool, typer.Option("--no-server", help="Do not use the server that runs on the data folder.")]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show stack traces and the log.")]
User = Annotated[str, typer.Option("--user", "-u", help="The user's id.", show_default=False)]
AnyUser = Annotated[str | None, typer.Option("--user", "-u", help="One user; absent: all users of the tenant.")]
ValidAsOf = Annotated[str | None, typer.Option(help="What was true at this time, such as 2025-06-01T12:00:00Z.")]
KnownAsOf = Annotated[str | None, typer.Option(help="What graphmem knew at this time.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant of the user.")]
Cursor = Annotated[str | None, typer.Option(help="`next_cursor` of the page before.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeat for several.")]
OnlyTypes = Annotated[list[str] | None, typer.Option("--type", help="Only this type; repeat for several.")]
OnlySubtype = Annotated[
    str | None, typer.Option("--subtype", help="Only those whose writer gave this type, such as persona.")
]
OnlyDomain = Annotated[str | None, typer.Option("--domain", help="Only this domain.")]
OnlyScope = Annotated[str | None, typer.Option("--scope", help="Only this scope: profile, domain, episodic, global.")]
AboutEntity = Annotated[str | None, typer.Option("--entity", help="Only about this entity: a name, an alias or an id.")]
MinConfidence = Annotated[float | None, typer.Option("--min-confidence", help="0 to 1.")]
MinImportance = Annotated[float | None, typer.Option("--min-importance", help="0 to 1.")]
IncludeSuperseded = Annotated[bool, typer.Option("--include-superseded", help="Also memories that are no longer true.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", help="KEY=VALUE that a memory's metadata must contain; repeat for several."),
]


@dataclass(frozen=True)
class Flags:
    """The flags that may be given before or after a command."""

    json: bool = False
    debug: bool = False
    no_server: bool = False

    def __or__(self, other: Flags) -> Flags:
        return Flags(self.json or other.json, self.debug or other.debug, self.no_server or other.no_server)


class Output:
    """Writes results as JSON or tables to standard output, everything else to standard error."""

    def __init__(self, flags: Flags, parameters: Mapping[str, str] | None = None) -> None:
        """`parameters` are the command's options and arguments as its help names them, such as `--valid-at`."""
        self.flags = flags
        self.parameters = parameters or {}

    @functools.cached_property
    def stdout(self) -> Console:
        """Standard output for people."""
        from rich.console import Console

        has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
        return Console(highlight=False, width=None if has_width else _PIPED_WIDTH)

    @functools.cached_property
    def stderr(self) -> Console:
        """Standard error for people."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def show(self, value: object, *renderables: RenderableType) -> None:
        """Print a result: `value` as JSON with `--json`, else the tables and texts that present it, without markup."""
        from rich.text import Text

        if self.flags.json:
            sys.stdout.write(as_json(value) + "\n")
        else:
            for given in renderables:
                renderable = Text(given) if isinstance(given, str) else given  # rich would read brackets as markup
                is_verbatim = bool(getattr(renderable, "no_wrap", False))  # a text to copy: its lines are not broken
                self.stdout.print(renderable, crop=False, soft_wrap=is_verbatim)

    def note(self, text: str) -> None:
        """Print a remark to standard error, without markup."""
        self.stderr.print(text, markup=False, soft_wrap=True)


def as_json(value: object) -> str:
    """Return models, dataclasses, times and collections of them as JSON text."""
    from pydantic_core import to_json

    return to_json(value, indent=2, inf_nan_mode="null").decode()


def read_settings(**changes: object) -> Settings:
    """Return the settings with `changes` that are not None; exit when a setting is invalid."""
    from pydantic import ValidationError

    from graphmem.runtime.settings import Settings

    try:
        settings = Settings()
    except ValidationError as error:
        from graphmem.runtime.validation_domain import describe_field_errors, field_errors

        named = [{**field_error, "loc": [_setting_name(field_error["loc"])]} for field_error in field_errors(error)]
        raise CommandFailed(describe_field_errors(named), EXIT_USAGE, InvalidInput.title, InvalidInput.status) from None
    return settings.model_copy(update={name: value for name, value in changes.items() if value is not None})


def _setting_name(loc: list[int | str]) -> str:
    """Return the environment variable of a setting."""
    name = str(loc[0]).upper() if loc else "SETTINGS"
    return name if name.startswith("OPENAI_") else f"GRAPHMEM_{name}"


def exit_with_error(sentence: str, code: int = EXIT_FAILED) -> NoReturn:
    """End the command with one sentence on standard error."""
    raise CommandFailed(sentence, code)


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Register an async function `handler(output, …options)` as a command that also takes the flags that all share."""

    def register(handler: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(handler)
        def run(context: typer.Context, json: bool, debug: bool, no_server: bool, **options: Any) -> None:
            flags = context.obj if isinstance(context.obj, Flags) else Flags()
            output = Output(flags | Flags(json, debug, no_server), _name_parameters(context))
            _run_command(handler, output, options)

        signature = inspect.signature(handler, eval_str=True)
        options = [parameter for parameter in signature.parameters.values() if parameter.name != "output"]
        run.__signature__ = signature.replace(parameters=_with_common_parameters(options))  # type: ignore[attr-defined]
        run.__annotations__ = {name: option.annotation for name, option in run.__signature__.parameters.items()}  # type: ignore[attr-defined]
        app.command(name)(run)
        return run

    return register


def _name_parameters(context: typer.Context) -> dict[str, str]:
    """Return what the help of a command calls each of its parameters: `--valid-at`, `TEXT`."""
    return {
        parameter.name: max(parameter.opts, key=len)
        if parameter.param_type_name == "option"
        else (parameter.metavar or parameter.name).upper()
        for parameter in context.command.params
        if parameter.name
    }


def _with_common_parameters(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    def keyword(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    return [
        keyword("context", typer.Context),
        *(option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options),
        keyword("json", JsonFlag, False),
        keyword("debug", DebugFlag, False),
        keyword("no_server", NoServerFlag, False),
    ]


class LazyLogHandler(logging.Handler):
    """Configures the log when there is something to log: most commands end without, and start sooner."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as the processes of graphmem do."""
        from graphmem.runtime.logs import configure_logs

        root = logging.getLogger()
        configure_logs(root.level)
        root.handle(record)


def _run_command(handler: Callable[..., Awaitable[None]], output: Output, options: dict[str, Any]) -> None:
    """Run a command; unless `--debug`, every error becomes one line and an exit code."""
    from graphmem.runtime.process import run
    from graphmem.runtime.tracing import export_spans

    async def once() -> None:
        with export_spans():
            await handler(output, **options)

    logging.basicConfig(level=logging.INFO if output.flags.debug else logging.ERROR, handlers=[LazyLogHandler()])
    if not (output.flags.debug or sys.warnoptions):
        warnings.simplefilter("ignore")
    try:
        run(once())
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if output.flags.debug:
            raise
        failure_of(error).exit(as_json=output.flags.json)
