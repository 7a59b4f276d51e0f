"""Common parts of all commands: flags, event loop, output, arguments, files, and errors."""

from __future__ import annotations

import errno
import functools
import inspect
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer
from typer.core import TyperGroup

from graphmem.runtime.errors import GraphmemError, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from graphmem.cli.startup import Target
    from graphmem.cli.tables import Renderable
    from graphmem.memories.memory import SaveResult
    from graphmem.runtime.settings import Settings


_UsageProblem: Any = typer.BadParameter.__mro__[2]
"""The base class of errors in options and arguments, which typer does not export."""

EXIT_FAILED = 1
EXIT_USAGE = 2


@dataclass
class CommandFailed(Exception):
    """The failure of a command: its reason as one sentence, and the exit code."""

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
        from graphmem.runtime.validation import problem_type

        document = {
            "type": problem_type(self.title),
            "title": self.title,
            "status": self.status,
            "detail": " ".join(self.detail.split()),
        }
        return {**document, "errors": [*self.errors]} if self.errors else document

    def _to_sentence(self) -> str:
        from graphmem.runtime.validation import describe_field_errors

        detail = " ".join(self.detail.split())
        described = describe_field_errors(self.errors)
        return detail if described in detail else f"{detail} ({described})"


def failure_of(error: Exception) -> CommandFailed:
    """Return an error as the failure of a command."""
    if isinstance(error, CommandFailed):
        return error
    if isinstance(error, GraphmemError):
        code = EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED
        return CommandFailed(error.detail, code, error.title, error.status, error.errors)
    if isinstance(error, UnicodeDecodeError):
        sentence = f"The input is not UTF-8 text ({error.reason} at byte {error.start})."
        return CommandFailed(sentence, EXIT_USAGE, InvalidInput.title, InvalidInput.status)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CommandFailed(
            f"The disk is full{_place_of(error)}: free disk space, or set GRAPHMEM_DATA_DIR to another folder.",
            title=GraphmemError.title,
        )
    if isinstance(error, OSError) and error.filename and error.strerror:
        return CommandFailed(f"A file cannot be used{_place_of(error)}: {error.strerror}.", title=GraphmemError.title)
    return CommandFailed(
        f"Unexpected {type(error).__name__}: run the command again with --debug and report its output.",
        title=GraphmemError.title,
    )


def _place_of(error: OSError) -> str:
    return f" ({error.filename})" if error.filename else ""


_PARAMETERS = {"types": "type", "tags": "tag", "content": "text", "query": "text", "q": "text", "session_id": "session"}
"""Names of commands' parameters that differ from the fields of operations, by field."""


@contextmanager
def named_as_options(shown: Mapping[str, str]) -> Iterator[None]:
    """Rename the fields in an InvalidInput to the command's parameters; `shown` has their names in the help."""
    try:
        yield
    except InvalidInput as error:
        from graphmem.runtime.validation import describe_field_errors

        described = describe_field_errors(error.errors)
        error.errors = [{**problem, "loc": _option_path(problem["loc"], shown)} for problem in error.errors]
        if described and described in error.detail:
            error.detail = error.detail.replace(described, describe_field_errors(error.errors))
        error.detail = _SNAKE_CASE.sub(lambda word: shown.get(word[0], word[0]), error.detail)
        raise


_SNAKE_CASE = re.compile(r"(?<![\w-])[a-z]+(?:_[a-z]+)+(?!\w)")
"""Field names in sentences, such as `valid_at`."""


def _option_path(loc: Any, shown: Mapping[str, str]) -> list[str | int]:
    """Return the option for the location of a field: `types.0` is `--type`, `memories.0.object.name` is `--object`.

    Locations without an option stay unchanged, as does the place in a document that an option names.
    """
    path = [*loc]
    while path and (path[0] in ("body", "memories") or (len(path) > 1 and isinstance(path[0], int))):
        path = path[1:]
    name = _PARAMETERS.get(path[0], path[0]) if path and isinstance(path[0], str) else None
    if name is None or name not in shown:
        return [] if path == [0] and "text" in shown else [*loc]  # the statement given as TEXT
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


_PIPED_WIDTH = 160
"""Columns of tables in a pipe of unknown width, so that ids need no line break."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the JSON of the HTTP API.")]
NoServerFlag = Annotated[bool, typer.Option("--no-server", help="Do not use the server that runs on the data folder.")]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show stack traces and the log.")]
User = Annotated[str, typer.Option("--user", "-u", help="The user's id.", show_default=False)]
AnyUser = Annotated[str | None, typer.Option("--user", "-u", help="One user; defaults to all users of the tenant.")]
VALID_AS_OF_OPTION = ("--valid-as-of", "--as-of")
ValidAsOf = Annotated[
    str | None, typer.Option(*VALID_AS_OF_OPTION, help="What was true at this time, such as 2025-06-01T12:00:00Z.")
]
KnownAsOf = Annotated[str | None, typer.Option(help="What graphmem knew at this time.")]
MinTrust = Annotated[str | None, typer.Option(help="Only sources that are trusted at least as much as this one.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant to work in.")]
Space = Annotated[str | None, typer.Option("--space", help="A space of the user; defaults to the user's own memory.")]
Spaces = Annotated[
    list[str] | None,
    typer.Option(help="A space to read in addition to the user's own memory (repeatable), or none. Defaults to all."),
]
Cursor = Annotated[str | None, typer.Option(help="`next_cursor` of the previous page.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable.")]
PageSize = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open it in the web browser.")]


@dataclass(frozen=True)
class Flags:
    """The flags that may be given before or after a command."""

    json: bool = False
    debug: bool = False
    no_server: bool = False

    def __or__(self, other: Flags) -> Flags:
        return Flags(self.json or other.json, self.debug or other.debug, self.no_server or other.no_server)


class Verbatim(str):
    """A text to copy: its lines are not wrapped."""


class Output:
    """Writes results as JSON or tables to standard output, everything else to standard error."""

    def __init__(self, flags: Flags, parameters: Mapping[str, str] | None = None) -> None:
        """`parameters` are the names of the command's options and arguments in its help, such as `--valid-at`.

        `target` is the target of a command with a client.
        """
        self.flags = flags
        self.parameters = parameters or {}
        self.target: Target | None = None

    @functools.cached_property
    def stdout(self) -> Console:
        """The console on standard output."""
        from rich.console import Console

        has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
        return Console(highlight=False, width=None if has_width else _PIPED_WIDTH)

    @functools.cached_property
    def stderr(self) -> Console:
        """The console on standard error."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def show(self, value: object, *renderables: Renderable) -> None:
        """Print a result: `value` as JSON with `--json`, else its tables and texts without markup."""
        if self.flags.json:
            sys.stdout.write(as_json(value) + "\n")
            return
        from rich.text import Text

        for given in renderables:
            renderable = Text(given) if isinstance(given, str) else given  # otherwise rich reads brackets as markup
            self.stdout.print(renderable, crop=False, soft_wrap=isinstance(given, Verbatim))

    def note(self, text: str) -> None:
        """Print a remark to standard error, without markup."""
        self.stderr.print(text, markup=False, soft_wrap=True)


def as_json(value: object) -> str:
    """Return models, dataclasses, times and collections of them as JSON text."""
    from pydantic_core import to_json

    return to_json(value, indent=2, inf_nan_mode="null").decode()


def read_settings(**changes: object) -> Settings:
    """Return the settings with the `changes` that are not None; exit if a setting is invalid."""
    from pydantic import ValidationError

    from graphmem.runtime.settings import Settings

    try:
        settings = Settings()
    except ValidationError as error:
        from graphmem.runtime.validation import describe_field_errors, field_errors

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


def fail_unless_saved(results: Sequence[SaveResult]) -> None:
    """Exit with an error if a save stored nothing."""
    if not any(result.memory for result in results):
        exit_with_error(f"Nothing was saved: {'; '.join(result.reason or 'no reason is known' for result in results)}.")


@dataclass(frozen=True)
class Filters:
    """The filters on memories given to a command; it has an option for every field of `QueryStringFilters`."""

    given: Mapping[str, Any]

    def as_query(self) -> dict[str, Any]:
        """Return the filters as fields of `QueryStringFilters`; raise InvalidInput for metadata without `=`."""
        metadata = self.given.get("metadata", ())
        return {**self.given, "metadata": parse_pairs(metadata, example="--metadata file=plan.md")}

    def as_fields(self) -> dict[str, Any]:
        """Return the filters as fields of `MemoryFilters`; raise InvalidInput for metadata without `=`."""
        fields = self.as_query()
        types, every, none = (fields.pop(name, []) for name in ("type", "tag", "not_tag"))
        return {**fields, "types": types or None, "tags": {"all": every, "none": none}}


View: TypeAlias = Callable[[Any], "Sequence[Renderable]"]
"""Presents the result of a command as tables and texts, such as the `Columns` of a model."""

Handler: TypeAlias = Callable[..., Awaitable[object]]


def command(
    app: typer.Typer, name: str, view: View | None = None, *, worker: bool = False
) -> Callable[[Handler], Callable[..., None]]:
    """Register an async function as a command; its parameters are the command's options and arguments.

    The command also has the flags common to all commands. A parameter `output` receives the command's `Output`. A
    parameter `client` receives the operations of a tenant and adds the option `--tenant`; with `worker`, this process
    also runs jobs, unless a server is called. The return value, unless None, is printed as JSON or by the view.
    """

    def register(handler: Handler) -> Callable[..., None]:
        run = _Command(handler, view, worker)
        app.command(name)(run)
        return run

    return register


class _Command:
    """A command as typer calls it; its options are made when it is built, so that models are not imported earlier."""

    def __init__(self, handler: Handler, view: View | None, worker: bool) -> None:
        functools.update_wrapper(self, handler)
        self._handler = handler
        self._view = view
        self._worker = worker
        self.__annotations__ = {}

    @functools.cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the handler."""
        # The client is only imported when used, and any class will do for its annotation here.
        return inspect.signature(self._handler, eval_str=True, locals={"AsyncClient": object}).parameters

    @property
    def __signature__(self) -> inspect.Signature:
        options: list[inspect.Parameter] = []
        for parameter in self._parameters.values():
            if parameter.annotation is Filters:
                options += _filter_options()
            elif parameter.name not in ("client", "output"):
                options.append(parameter)
        if "client" in self._parameters and "tenant" not in self._parameters:
            options.append(inspect.Parameter("tenant", _KEYWORD_ONLY, default="default", annotation=Tenant))
        return inspect.Signature(_with_common_parameters(options))

    def __call__(self, context: typer.Context, json: bool, debug: bool, no_server: bool, **options: Any) -> None:
        """Run the command."""
        flags = context.obj if isinstance(context.obj, Flags) else Flags()
        output = Output(flags | Flags(json, debug, no_server), _name_parameters(context))
        for name, parameter in self._parameters.items():
            if parameter.annotation is Filters:
                values = {option.name: options.pop(option.name) for option in _filter_options()}
                options[name] = Filters({key: value for key, value in values.items() if _is_given(value)})
        _run_command(self._run, output, options)

    async def _run(self, output: Output, options: dict[str, Any]) -> None:
        if "output" in self._parameters:
            options["output"] = output
        if "client" not in self._parameters:
            await self._handler(**options)
            return
        from graphmem.cli.startup import open_operations

        tenant = options["tenant"] if "tenant" in self._parameters else options.pop("tenant")
        async with open_operations(output, tenant, worker=self._worker) as client:
            result = await self._handler(client=client, **options)
        if result is not None:
            shown = {"items": result} if isinstance(result, list) else result
            output.show(shown, *(self._view(result) if self._view else ()))


_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY


@functools.cache
def _filter_options() -> Sequence[inspect.Parameter]:
    """Return an option for each filter, with the description of its field."""
    from graphmem.memories.filters import QueryStringFilters

    fields = QueryStringFilters.model_json_schema()["properties"]
    return [_filter_option(name, schema) for name, schema in fields.items()]


_OPTION_TYPES: Mapping[str, Any] = {
    "number": float | None,
    "boolean": bool,
    "array": list[str] | None,
    "object": list[str] | None,
}
"""Option types by the JSON type of a field; all other fields are text."""


_OPTION_NAMES = {"session_id": ("--session",), "valid_as_of": VALID_AS_OF_OPTION}
"""Options that are not named after their field."""


def _filter_option(name: str, schema: Mapping[str, Any]) -> inspect.Parameter:
    json_types = [form.get("type") for form in schema.get("anyOf", [schema])]
    type = next((_OPTION_TYPES[given] for given in json_types if given in _OPTION_TYPES), str | None)
    flags = _OPTION_NAMES.get(name, (f"--{name.replace('_', '-')}",))
    option = typer.Option(*flags, help=schema["description"])
    default = False if type is bool else None
    return inspect.Parameter(name, _KEYWORD_ONLY, default=default, annotation=Annotated[type, option])


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []


def _name_parameters(context: typer.Context) -> dict[str, str]:
    """Return the name of each parameter in the command's help: `--limit`, `--as-of/--valid-as-of` or `TEXT`."""
    return {
        parameter.name: "/".join(sorted((name for name in parameter.opts if name.startswith("--")), key=len))
        if parameter.param_type_name == "option"
        else (parameter.metavar or parameter.name).upper()
        for parameter in context.command.params
        if parameter.name
    }


def _with_common_parameters(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    def keyword(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, _KEYWORD_ONLY, default=default, annotation=annotation)

    return [
        keyword("context", typer.Context),
        *(option.replace(kind=_KEYWORD_ONLY) for option in options),
        keyword("json", JsonFlag, False),
        keyword("debug", DebugFlag, False),
        keyword("no_server", NoServerFlag, False),
    ]


class LazyLogHandler(logging.Handler):
    """Configures logging at the first record: most commands log nothing, and so start faster."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as graphmem's processes do; omit the driver's, whose errors the command itself reports."""
        if record.name.startswith("neo4j.") and logging.getLogger().level > logging.INFO:
            return
        from graphmem.runtime.logs import configure_logs

        root = logging.getLogger()
        configure_logs(root.level)
        root.handle(record)


def _run_command(
    handler: Callable[[Output, dict[str, Any]], Awaitable[None]], output: Output, options: dict[str, Any]
) -> None:
    """Run a command; unless `--debug`, every error becomes one line and an exit code."""
    from graphmem.runtime.process import run
    from graphmem.runtime.tracing import export_spans

    async def once() -> None:
        with export_spans():
            await handler(output, options)

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


def given_spaces(spaces: Sequence[str] | None) -> dict[str, Any]:
    """Return the `spaces` option of a read as a field; empty if not given."""
    if not spaces:
        return {}
    return {"spaces": spaces[0] if list(spaces) in (["all"], ["none"]) else list(spaces)}


def parse_pairs(pairs: Sequence[str], *, example: str) -> dict[str, str]:
    """Return `KEY=VALUE` pairs as a dict; raise InvalidInput, with an example, for a pair without `=`."""
    for pair in pairs:
        if "=" not in pair:
            raise InvalidInput(f"{pair!r} is not KEY=VALUE: write {example}.")
    return dict(pair.split("=", 1) for pair in pairs)


STANDARD_STREAM = "-"
"""The file name for standard input or output."""


def read_bytes(file: str) -> bytes:
    """Return the bytes of a file or of standard input; raise InvalidInput when it cannot be read."""
    try:
        return sys.stdin.buffer.read() if file == STANDARD_STREAM else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error


def read_input(file: str) -> str:
    """Return the text of a file or of standard input; raise InvalidInput when it cannot be read."""
    return read_bytes(file).decode("utf-8-sig")


def read_json(file: str) -> Any:
    """Return the value of a JSON file or of standard input; raise InvalidInput if it has none."""
    try:
        return json.loads(read_input(file))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{file} is not JSON.") from error


async def write_atomically(path: Path, chunks: AsyncIterator[bytes]) -> int:
    """Write a file that only its owner can read, and move it into place once complete; return its size in bytes.

    Raises InvalidInput if it cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk)
            size = file.tell()
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return size
