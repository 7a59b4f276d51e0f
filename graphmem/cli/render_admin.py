"""Keys, webhooks, checks, jobs and consolidation runs as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from graphmem.cli.render import Renderable, format_time
from graphmem.cli.tables import add_row, make_table
from graphmem.runtime.short_ids import shorten_id

if TYPE_CHECKING:
    from rich.table import Table

    from graphmem.changes.models import Webhook
    from graphmem.cli.doctor_checks import Check
    from graphmem.consolidation.models import ConsolidationRun, RollbackResult
    from graphmem.ingestion.quarantined_statement import QuarantinedStatement
    from graphmem.jobs.job import Job
    from graphmem.placement.models import PlacementList
    from graphmem.tenants.access import ApiKey
    from graphmem.tenants.spaces import Space
    from graphmem.user_data.models import ErasureResult, FolderImport, ImportResult
    from graphmem.user_data.offline_import import OfflineImport


def name_value_pairs(values: Mapping[str, object]) -> Table:
    """Return names and their values."""
    table = make_table("name", "details", has_header=False)
    for name, value in values.items():
        add_row(table, name.replace("_", " "), value)
    return table


def keys(api_keys: Sequence[ApiKey]) -> Renderable:
    """Return API keys without their secrets."""
    if not api_keys:
        return Text("There are no keys.")
    table = make_table("id", "name", "role", "users", "spaces", "created")
    for key in api_keys:
        users = "all" if key.users is None else ", ".join(key.users)
        spaces = "theirs" if key.spaces is None else ", ".join(key.spaces)
        add_row(table, shorten_id(key.id), key.name, key.role, users, spaces, format_time(key.created_at))
    return table


def placements(listed: PlacementList) -> list[Renderable]:
    """Return the graphs, and where tenants live."""
    graphs = make_table("graph", "status", "reason")
    for graph in listed.graphs:
        add_row(graphs, graph.name, graph.status, graph.reason)
    tenants = make_table("tenant", "graph", "state", "moves to", "job")
    for tenant in listed.tenants:
        job = shorten_id(tenant.job_id) if tenant.job_id else None
        add_row(tenants, tenant.tenant, tenant.graph, tenant.state, tenant.target, job)
    return [graphs, tenants]


def spaces(listed: Sequence[Space]) -> Renderable:
    """Return spaces with the numbers of their members."""
    if not listed:
        return Text("There are no spaces.")
    table = make_table("id", "title", "about", "members", "created")
    for one in listed:
        add_row(table, one.id, one.title, one.about, str(len(one.members)), format_time(one.created_at))
    return table


def space(one: Space) -> list[Renderable]:
    """Return a space and its members."""
    table = make_table("member", "", "role")
    for member in one.members:
        add_row(table, member.id, "user" if member.user else "key", member.role.value)
    return [Text(f"{one.title} ({one.id})" + (f": {one.about}" if one.about else "")), table]


def quarantine(listed: Sequence[QuarantinedStatement]) -> Renderable:
    """Return statements in quarantine with their reasons."""
    if not listed:
        return Text("Nothing is in quarantine.")
    table = make_table("id", "of", "would say", "reason", "seen", "last")
    for statement in listed:
        of = statement.user_id or f"space {statement.space}"
        add_row(
            table,
            shorten_id(statement.id),
            of,
            statement.memory.content,
            statement.reason,
            statement.times_seen,
            format_time(statement.last_seen_at),
        )
    return table


def webhooks(listed: Sequence[Webhook]) -> Renderable:
    """Return webhooks and how their deliveries go."""
    if not listed:
        return Text("There are no webhooks.")
    table = make_table("id", "address", "users", "kinds", "status", "last delivery", "last error")
    for webhook in listed:
        users = "all" if webhook.users is None else ", ".join(webhook.users)
        kinds = "all" if webhook.kinds is None else ", ".join(webhook.kinds)
        error = webhook.disabled_reason or webhook.last_error or ""
        delivered = format_time(webhook.last_delivered_at)
        add_row(table, shorten_id(webhook.id), webhook.url, users, kinds, webhook.status, delivered, error)
    return table


def checks(results: Sequence[Check]) -> Table:
    """Return the results of checks."""
    table = make_table("check", "", "result", "to fix it")
    colours = {"ok": "green", "note": "yellow", "broken": "red"}
    for check in results:
        add_row(table, check.part, Text(check.verdict, style=colours[check.verdict]), check.detail, check.fix)
    return table


def jobs(finished: Sequence[Job]) -> Renderable:
    """Return the extraction jobs of an ingestion."""
    if not finished:
        return Text("All messages were known already: nothing was stored or extracted.")
    table = make_table("session", "job", "status", "actions", "model calls", "reason")
    for job in finished:
        counts = Counter(str(action.get("action", "")) for action in job.actions)
        actions = ", ".join(f"{count} {action}" for action, count in counts.items())
        add_row(
            table,
            job.session_id,
            shorten_id(job.id),
            job.status,
            actions,
            job.receipt.llm_calls,
            job.error or job.reason,
        )
    return table


def runs(listed: Sequence[ConsolidationRun]) -> Renderable:
    """Return consolidation runs, the latest first."""
    if not listed:
        return Text("There are no consolidation runs.")
    table = make_table("run", "when", "user", "status", "done", "reason")
    for run in listed:
        status = f"{run.trigger}, {run.status}{', dry run' if run.dry_run else ''}".replace("_", " ")
        done = f"{run.executed} executed, {run.refused} refused, {run.change_count} changes"
        done += f", {run.profiles} profiles" if run.profiles else ""
        user = run.user_id or "all"
        add_row(table, shorten_id(run.id), format_time(run.created_at), user, status, done, run.reason)
    return table


def run(shown: ConsolidationRun) -> list[Renderable]:
    """Return one run with its proposals and their verdicts, and the contradictions that it reports."""
    shown_parts: list[Renderable] = [runs([shown])]
    if shown.proposals:
        shown_parts.append(_proposals(shown))
    if shown.contradictions:
        table = make_table("memories", "reason", title="Contradictions to be decided by a person")
        for reported in shown.contradictions:
            add_row(table, ", ".join(map(shorten_id, reported.memory_ids)), reported.reason)
        shown_parts.append(table)
    return shown_parts


def _proposals(shown: ConsolidationRun) -> Table:
    table = make_table("proposal", "of", "verdict", "reason")
    for reviewed in shown.proposals:
        proposal = reviewed.proposal
        fields = proposal.model_dump(exclude={"action", "reason"}, exclude_defaults=True)
        of = "; ".join(f"{name.replace('_', ' ')} {_join_values(name, value)}" for name, value in fields.items())
        add_row(table, proposal.action, of, reviewed.verdict, reviewed.reason or proposal.reason)
    return table


def _join_values(name: str, value: object) -> str:
    values = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return ", ".join(map(shorten_id, values) if name.endswith(("_id", "_ids")) else values)


def rollback(result: RollbackResult) -> list[Renderable]:
    """Return what a rollback undid, and which later writes it overwrote."""
    changes = "1 change" if result.restored == 1 else f"{result.restored} changes"
    status = result.status.replace("_", " ")
    sentence = Text(f"Run {result.run_id} is {status}: {changes} undone.")
    if not result.conflicts:
        return [sentence]
    table = make_table("kind", "id", "fields", "detail", title="Later writes that were overwritten")
    for conflict in result.conflicts:
        add_row(
            table,
            conflict.kind,
            shorten_id(conflict.memory_id or conflict.id),
            ", ".join(conflict.fields),
            conflict.detail,
        )
    return [sentence, table]


def import_result(result: ImportResult) -> Table:
    """Return what an import stored."""
    counts = {**result.imported, **{f"{kind}, known already": count for kind, count in result.unchanged.items()}}
    if result.format != "graphmem":
        return name_value_pairs({**counts, "not imported": len(result.refused)})
    vectors = "recomputed" if result.vectors_remade else "imported"
    return name_value_pairs({**counts, "ids changed": len(result.ids), "vectors": vectors})


def folder_import(result: FolderImport) -> list[Renderable]:
    """Return what an import of a folder stored, and the files that failed."""
    counts = {**result.imported, **{f"{kind}, known already": count for kind, count in result.unchanged.items()}}
    shown: list[Renderable] = [name_value_pairs({"users": result.users, **counts})]
    if result.failed:
        failed = make_table("file", "not imported, because")
        for file in result.failed:
            add_row(failed, file.file, file.reason)
        shown.append(failed)
    return shown


def offline_import(result: OfflineImport) -> Table:
    """Return what an offline import stored, and how long each phase took."""
    seconds = {f"{phase}, seconds": value for phase, value in result.seconds.items()}
    return name_value_pairs(
        {"users": result.users, **result.imported, **seconds, "facts a second": result.facts_per_second}
    )


def erasure_result(result: ErasureResult) -> Table:
    """Return what was erased of a user."""
    return name_value_pairs({**result.erased, "residue": result.residue})
