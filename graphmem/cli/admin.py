"""Administration: consolidation, rollback, maintenance, re-embedding."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

from graphmem.cli.command import EXIT_FAILED, AnyUser, Cursor, Output, Tenant, command, read_json
from graphmem.cli.jobs import wait_for_run
from graphmem.cli.progress import progress_bar
from graphmem.cli.render import Renderable
from graphmem.cli.startup import complete_run_id, open_operations, open_services
from graphmem.cli.tables import add_row, make_table
from graphmem.consolidation.models import MaintenanceTask, RollbackConflict, RollbackElement, RollbackPreview
from graphmem.memories.listing import shorten_id
from graphmem.memories.snapshot import ElementChange, ElementImage, ElementKind
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from graphmem.consolidation.models import RollbackPreview, RollbackResult


app = typer.Typer()


@command(app, "consolidate")
async def consolidate(
    output: Output,
    user: AnyUser = None,
    tenant: Tenant = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    proposals: Annotated[
        str | None, typer.Option(help="A JSON file of curated proposals for one user; - reads standard input.")
    ] = None,
) -> None:
    """Merge and link memories and tidy entities, so that it can be undone.

    A proposal is `{"action": "MERGE", "memory_ids": ["…", "…"], "content": "…", "reason": "…"}`, in a list.
    """
    from graphmem.cli import render_admin
    from graphmem.consolidation.models import RunStatus, parse_proposals

    curated = parse_proposals(_read_proposal_list(proposals)) if proposals else None
    async with open_operations(output, tenant, worker=True) as operations:
        run_id = str(await operations.consolidate(user, dry_run=dry_run, proposals=curated))
        with progress_bar(output, "Analysing", "batches") as on_progress:
            run = await wait_for_run(operations, run_id, on_progress)
    output.show(run, *render_admin.run(run), *render_changes(run.changes))
    if run.status in (RunStatus.FAILED, RunStatus.ABORTED):
        raise typer.Exit(EXIT_FAILED)


def _read_proposal_list(file: str) -> list[Any]:
    document = read_json(file)
    proposals = document.get("proposals") if isinstance(document, dict) else document
    if not isinstance(proposals, list):
        raise InvalidInput(f"{file} holds no list of proposals.")
    return proposals


@command(app, "runs")
async def runs(
    output: Output,
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run, with its changes.")] = None,
    user: AnyUser = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
    cursor: Cursor = None,
) -> None:
    """List consolidation runs, the latest first, or show one."""
    from graphmem.cli import render_admin
    from graphmem.cli.render import next_page

    async with open_operations(output, tenant) as operations:
        if run_id is not None:
            run = await operations.run(run_id)
            output.show(run, *render_admin.run(run), *render_changes(run.changes))
            return
        page = await operations.runs(user_id=user, limit=limit, cursor=cursor)
    output.show(page, render_admin.runs(page.items), *next_page(page))


@command(app, "rollback")
async def rollback(
    output: Output,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    tenant: Tenant = "default",
    force: Annotated[bool, typer.Option("--force", help="Overwrite later writes to the same memories.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation at a terminal.")] = False,
) -> None:
    """Undo a consolidation run: restore exactly what it changed."""
    from rich.text import Text

    from graphmem.cli import render_admin

    asks = sys.stdin.isatty() and not yes  # a script has decided, and a rollback can be rolled back
    async with open_operations(output, tenant) as operations:
        run_id = await complete_run_id(operations, run_id)
        if dry_run or asks:
            preview = cast("RollbackPreview", await operations.rollback(run_id, dry_run=True))
            if dry_run:
                output.show(preview, *map(Text, describe_rollback(preview)))
                return
            for sentence in describe_rollback(preview):
                output.note(sentence)
            typer.confirm(f"Roll back run {run_id}?", abort=True, err=True)
        result = cast("RollbackResult", await operations.rollback(run_id, force=force))
    output.show(result, *render_admin.rollback(result))


@command(app, "maintain")
async def maintain(
    output: Output,
    tasks: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(MaintenanceTask)}; absent: all.")
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Run maintenance now: decay, compress, prune, expire."""
    from graphmem.cli import render_admin
    from graphmem.consolidation.models import MaintenanceOut

    unknown = [task for task in tasks or () if task not in [*MaintenanceTask]]
    if unknown:
        raise InvalidInput(f"There is no task {unknown[0]!r}: choose from {', '.join(MaintenanceTask)}.")
    chosen = [MaintenanceTask(task) for task in tasks or MaintenanceTask]
    async with open_operations(output, tenant, worker=True) as operations:
        results = await operations.maintain(*chosen)
    shown = {task.value: _format_counts(counts) for task, counts in results.items()}
    output.show(MaintenanceOut(tasks=results), render_admin.name_value_pairs(shown))


def _format_counts(counts: dict[str, int | str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing to do"


_POLL_SECONDS = 0.5
"""Seconds between two looks at the progress."""


@command(app, "reembed")
async def reembed(
    output: Output,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A model of the configured embedder; absent: the configured one."),
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Replace all vectors by those of another embedding model, while searches go on; run again, it resumes."""
    from graphmem.runtime.errors import GraphmemError

    async with open_services(output, worker=True) as services:
        job = await services.reembedding.start(tenant, model)
        with progress_bar(output, "Embedding", "texts") as on_progress:
            while not job.is_at_rest:
                status = await services.reembedding.status()
                if status.job_id == job.id:
                    on_progress(status.done or 0, status.total or 0)
                job = await services.jobs.wait(job.id, _POLL_SECONDS)
        status = await services.reembedding.status()
    if job.status != "succeeded":
        raise GraphmemError(f"The re-embedding has not ended: {job.error or job.reason}. Run the command again.")
    output.show(job, f"All vectors are of {status.model} ({status.dimension} dimensions).")


MEMORY_FIELDS = {
    "status": "status",
    "superseded_by": "replaced by",
    "from": "subject",
    "to": "object",
    "entity_ids": "mentions",
    "associations": "associated with",
    "confidence": "confidence",
    "importance": "importance",
    "tags": "tags",
    "valid_at": "valid from",
    "invalid_at": "valid until",
}
"""The fields of a memory that are shown, and their names in the table; all others follow from these."""

ENTITY_FIELDS = {"type": "type", "aliases": "aliases", "summary": "summary", "attributes": "attributes"}
"""The fields of an entity that are shown, and their names in the table."""

Properties = Mapping[str, Any]


def render_changes(changes: Sequence[ElementChange]) -> list[Renderable]:
    """Return the changes of a run, or of a dry run, as a table; an empty list when there are none."""
    if not changes:
        return []
    names = _display_names(changes)
    table = make_table("", "which", "field", "before", "after")
    for memory_id, (before, after) in _memory_states(changes).items():
        _add_rows(table, "memory", names.get(memory_id, memory_id), MEMORY_FIELDS, before, after, names)
    for change in changes:
        if change.kind == "entity":
            before, after = _properties_of(change.before), _properties_of(change.after)
            _add_rows(table, "entity", names[change.id], ENTITY_FIELDS, before, after, names)
    link_count = sum(change.kind in ("episode", "mention") for change in changes)
    return [table, Text(f"and {link_count} links to messages")] if link_count else [table]


def _memory_states(changes: Sequence[ElementChange]) -> dict[str, tuple[Properties | None, Properties | None]]:
    """Return the current version of each memory before and after."""
    states: dict[str, tuple[Properties | None, Properties | None]] = {}
    for change in changes:
        if change.kind == "fact" and change.memory_id:
            before, after = states.get(change.memory_id, (None, None))
            states[change.memory_id] = (
                _if_known(_properties_of(change.before)) or before,
                _if_known(_properties_of(change.after)) or after,
            )
    return states


def _properties_of(image: ElementImage | None) -> Properties | None:
    return image.to_dict() if image else None


def _if_known(version: Properties | None) -> Properties | None:
    """Return a version unless its known time has ended."""
    return version if version and not version.get("expired_at") else None


def _display_names(changes: Sequence[ElementChange]) -> dict[str, str]:
    names: dict[str, str] = {}
    for change in changes:
        properties = _properties_of(change.after or change.before) or {}
        if change.kind == "fact" and change.memory_id:
            names[change.memory_id] = str(properties.get("fact"))
        elif change.kind == "entity":
            names[change.id] = str(properties.get("name"))
    return names


def _add_rows(
    table: Table,
    kind: str,
    which: str,
    fields: Mapping[str, str],
    before: Properties | None,
    after: Properties | None,
    names: Mapping[str, str],
) -> None:
    if before is None or after is None:
        add_row(table, kind, which, "new" if before is None else "removed")
        return
    for name, old, new in _changed_fields(fields, before, after):
        add_row(table, kind, which, name, _format_value(old, names), _format_value(new, names))


def _changed_fields(fields: Mapping[str, str], before: Properties, after: Properties) -> Iterator[tuple[str, Any, Any]]:
    for field, name in fields.items():
        if before.get(field) != after.get(field):
            yield name, before.get(field), after.get(field)


def _format_value(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(item, names) for item in value)
    return "" if value is None else names.get(str(value), str(value))


_NOUNS = {ElementKind.FACT: "memory", ElementKind.ENTITY: "entity"}
"""What a sentence calls an element; links to messages are counted instead."""


def describe_rollback(preview: RollbackPreview) -> list[str]:
    """Return what goes back, comes back, stays and conflicts, one sentence each."""
    return [
        *_describe("Goes back", preview.goes_back, "is removed"),
        *_describe("Comes back", preview.comes_back, "as it was before the run"),
        *_describe("Stays", preview.stays, "as it is now"),
        *map(_describe_conflict, preview.conflicts),
        _summarise(len(preview.conflicts)),
    ]


def _describe(verb: str, elements: Iterable[RollbackElement], end: str) -> Iterator[str]:
    links = 0
    for element in elements:
        if noun := _NOUNS.get(element.kind):
            name = repr(element.text) if element.text else shorten_id(element.memory_id or element.id)
            yield f"{verb}: the {noun} {name} {end}."
        else:
            links += 1
    if links:
        noun, ending = ("link", end) if links == 1 else ("links", end.replace("is removed", "are removed"))
        yield f"{verb}: {links} {noun} to messages {ending}."


def _describe_conflict(conflict: RollbackConflict) -> str:
    noun = _NOUNS.get(conflict.kind, "link to a message")
    name = shorten_id(conflict.memory_id or conflict.id)
    fields = f" ({', '.join(conflict.fields)})" if conflict.fields else ""
    return f"Conflict: the {noun} {name}{fields}: {conflict.detail.rstrip('.')}."


def _summarise(conflicts: int) -> str:
    if not conflicts:
        return "Nothing conflicts."
    noun = "1 later write" if conflicts == 1 else f"{conflicts} later writes"
    return f"{noun} would be overwritten: give --force to do so, or change them first."
