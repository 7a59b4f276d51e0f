"""The output of commands: the columns of each model, and results beyond a table."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from graphmem.cli.command import Verbatim
from graphmem.cli.tables import (
    Columns,
    Renderable,
    add_row,
    format_time,
    format_value,
    make_table,
    name_value_pairs,
)
from graphmem.runtime.short_ids import shorten_id

if TYPE_CHECKING:
    from rich.table import Table

    from graphmem.ask.models import AskResponse, Citation
    from graphmem.changes.models import MemoryChange, Webhook
    from graphmem.cli.doctor_checks import Check
    from graphmem.consolidation.models import (
        ConsolidationRun,
        ReviewedProposal,
        RollbackConflict,
        RollbackElement,
        RollbackPreview,
        RollbackResult,
    )
    from graphmem.context.models import ContextResponse, LearnedIntent
    from graphmem.conversations.session import Message, Session
    from graphmem.ingestion.quarantined_statement import QuarantinedStatement
    from graphmem.jobs.job import Job
    from graphmem.memories.declared_types import DeclaredTypes
    from graphmem.memories.entity import Entity, EntityRef
    from graphmem.memories.memory import Memory, MemoryVersion, SaveResult
    from graphmem.memories.snapshot import ElementChange, ElementImage
    from graphmem.placement.models import PlacementList
    from graphmem.search.models import LookupResponse, MessageHit, Persona, SearchHit, SearchResponse, UserProfile
    from graphmem.tenants.access import ApiKey
    from graphmem.tenants.owners import Instructions
    from graphmem.tenants.spaces import Space, SpaceMember
    from graphmem.tenants.trust import Trust
    from graphmem.user_data.models import FolderImport, ImportResult


# Memories


def format_validity(memory: Memory, zone: tzinfo | None = None) -> str:
    """Return the valid time of a memory; empty if both ends are open."""
    if memory.valid_at is None and memory.invalid_at is None:
        return ""
    return f"{format_time(memory.valid_at, zone)} → {format_time(memory.invalid_at, zone)}"


def _validity(found: SaveResult | SearchHit | MemoryChange) -> str:
    return format_validity(found.memory) if found.memory else ""


def _known(memory: Memory) -> str:
    return f"{format_time(memory.created_at)} → {format_time(memory.expired_at)}"


def _score(hit: SearchHit | MessageHit) -> str:
    return f"{hit.score:.4f}"


def _ranks(hit: SearchHit) -> str:
    if hit.explain is None:
        return ""
    channels = {"meaning": hit.explain.semantic, "keywords": hit.explain.keyword, "graph": hit.explain.graph}
    ranks = [f"{name} #{channel.rank}" for name, channel in channels.items() if channel]
    return ", ".join([*ranks, f"decay {hit.explain.decay:.2f}"])


def _version_status(version: MemoryVersion) -> str:
    """Return a version's status and replaced memories, or for a past version why it ended."""
    status = version.status if version.expired_at is None else version.ended_reason or version.status
    if version.ended_by:
        return f"{status} (by {shorten_id(version.ended_by)})"
    replaced = ", ".join(map(shorten_id, version.supersedes))
    return f"{status} (replaces {replaced})" if replaced else str(status)


SAVES = Columns(
    "Nothing was saved.",
    action="action",
    memory="memory.id",
    statement="memory.content",
    valid=_validity,
    reason="reason",
)

HITS = Columns(
    "No matching memory.",
    optional=(
        "space",
        "ranks",
    ),
    score=_score,
    memory="memory.id",
    statement="memory.content",
    type="memory.type",
    valid=_validity,
    space="memory.space",
    ranks=_ranks,
)

MEMORIES = Columns(
    "There are no such memories.",
    optional=("space",),
    memory="id",
    statement="content",
    type="type",
    valid=format_validity,
    status="status",
    space="space",
)

VERSIONS = Columns(
    "The memory has no history.",
    version="version",
    statement="content",
    valid=format_validity,
    known=_known,
    status=_version_status,
)

CHANGES = Columns(
    "Nothing changed.",
    when="at",
    change="kind",
    memory="memory_id",
    statement="memory.content",
    valid=_validity,
    why="reason",
    who=lambda change: shorten_id(change.actor or ""),
)

ENTITIES = Columns(
    "There are no such entities.",
    name="name",
    type="type",
    memories="memory_count",
    aliases="aliases",
    summary="summary",
)


def related_hints(user: str, results: Iterable[SaveResult]) -> list[Renderable]:
    """Return the commands that show the memories a saved statement may contradict."""
    ids = [related for result in results for related in result.related]
    commands = [f"graphmem history {shorten_id(related)} --user {shlex.quote(user)}" for related in ids]
    return [Verbatim(f"It may contradict: {command}") for command in commands]


def undo_hints(user: str, results: Iterable[SaveResult]) -> list[Renderable]:
    """Return the commands that undo the replacements of a save."""
    ids = [replaced for result in results for replaced in result.superseded]
    commands = [f"graphmem revert {shorten_id(replaced)} --user {shlex.quote(user)}" for replaced in ids]
    return [Verbatim(f"To undo the replacement: {command}") for command in commands]


def memory_details(memory: Memory) -> list[Renderable]:
    """Return the fields of one memory that have a value."""
    domain = f", {memory.domain}" if memory.domain else ""
    fields = {
        "id": memory.id,
        "version": memory.version,
        "statement": memory.content,
        "type": memory.subtype or memory.type,
        "status": memory.status,
        "contests": ", ".join(map(shorten_id, memory.contests)) if memory.status == "contested" else "",
        "said by": f"{memory.source.kind} ({memory.source.speaker})" if memory.source.speaker else memory.source.kind,
        "subject": _format_reference(memory.subject),
        "predicate": f"{memory.predicate}, one at a time" if memory.single_valued else memory.predicate,
        "object": _format_reference(memory.object),
        "valid": format_validity(memory),
        "known": _known(memory),
        "expires": memory.expires_at,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "tags": ", ".join(memory.tags),
        "scope": f"{memory.scope}{domain}",
        "replaced by": shorten_id(memory.superseded_by or ""),
        "replaces": ", ".join(map(shorten_id, memory.supersedes)),
        "source": ", ".join(filter(None, (memory.source.kind, memory.source.session_id, *memory.source.message_ids))),
        "quote": memory.source.quote,
        "metadata": memory.metadata or None,
        "immutable": "yes" if memory.immutable else "",
    }
    table = make_table("field", "details", has_header=False)
    for name, value in fields.items():
        if text := format_value(value):
            add_row(table, name, text)
    return [table]


def _format_reference(entity: EntityRef | None) -> str:
    return f"{entity.name} ({entity.type})" if entity else ""


def lookup_response(response: LookupResponse) -> list[Renderable]:
    """Return each entity found: its profile, and a table of its memories."""
    if not response.entities:
        return [
            "No matching entity: no memory is about a person, place or thing of this name. `graphmem search` finds "
            "statements that mention it, and messages; `graphmem add --subject NAME` says whom a statement is about."
        ]
    shown: list[Renderable] = []
    for match in response.entities:
        profile = [match.profile.content] if match.profile else []
        shown += [*profile, _ENTITY_MEMORIES.table(match.memories, title=format_entity(match.entity))]
    return shown


_ENTITY_MEMORIES = Columns(memory="id", statement="content", type="type", valid=format_validity)


def format_entity(entity: Entity) -> str:
    """Return an entity's name with its type and aliases."""
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}{aliases})"


# Conversations and contexts


def _sender(message: Message) -> str:
    return message.said_by if message.is_of_others else message.speaker


def _duration(session: Session) -> str:
    until = f" → {format_time(session.ended_at)}" if session.ended_at else ""
    return format_time(session.created_at) + until


MESSAGES = Columns("There are no messages in this session.", when="timestamp", who=_sender, message="content")

MESSAGE_HITS = Columns(
    "No matching message.",
    score=_score,
    when="message.timestamp",
    who=lambda hit: _sender(hit.message),
    message="message.content",
)


def search_response(response: SearchResponse, limit: int) -> list[Renderable]:
    """Return the results of a search: memories, and messages under their own heading."""
    shown: list[Renderable] = [*HITS(response.results)] if response.results or not response.messages else []
    if response.messages:
        from graphmem.context.relevance import statements_first

        found = "Messages, as they were said:" if response.results else "No memory was found, but these messages:"
        shown += [found, *MESSAGE_HITS(statements_first(response.messages)[:limit])]
    return shown


def only_messages(session_id: str, messages: Sequence[Message]) -> list[Renderable]:
    """Return the messages of a user without memories, and how to see the rest."""
    return [
        f"There are no memories yet, only messages. Those of the latest session, {session_id}:",
        *MESSAGES(messages),
        "`graphmem sessions` lists the others. A language model extracts memories from them: `graphmem doctor` says "
        "whether one is configured.",
    ]


SESSIONS = Columns(
    "There are no sessions.",
    session="session_id",
    messages="message_count",
    when=_duration,
    about=lambda session: "\n".join(filter(None, (session.title, session.summary))),
)

ARCHIVES = Columns(
    "No messages of this session are archived.",
    since="started_at",
    until="ended_at",
    messages="message_count",
    summary="summary",
)

CONTEXT_ITEMS = Columns(
    "There are no context items.",
    id="id",
    type="context_type",
    key="context_key",
    value="context_value",
    relevance="relevance_score",
    session=lambda item: item.session_id or "all",
    expires="expires_at",
)

PREFERENCES = Columns(
    "No learned preferences.",
    type="preference_type",
    key="preference_key",
    value="preference_value",
    confidence="confidence_score",
    seen="frequency",
    last_seen="last_observed",
)

PATTERNS = Columns(
    "No behavioural patterns.",
    type="pattern_type",
    pattern="pattern_description",
    confidence="confidence_score",
    messages="occurrence_count",
    since="first_detected",
    last="last_detected",
)

CONTRADICTIONS = Columns(
    "No contradictions were reported.",
    memories="memory_ids",
    reason="reason",
    run=lambda contradiction: contradiction.run_id or "contested",
    reported="reported_at",
)


def _queries(intent: LearnedIntent) -> str:
    return "\n".join(intent.successful_queries)


INTENTS = Columns(
    "No learned intents.",
    intent="intent",
    confidence="confidence_score",
    liked="positive",
    disliked="negative",
    queries=_queries,
)


def _cited_kind(citation: Citation) -> str:
    return "memory" if citation.memory_id else "message"


def _cited_id(citation: Citation) -> str | None:
    return citation.memory_id or citation.message_id


_CITATIONS = Columns(
    optional=("space",), source=_cited_kind, id=_cited_id, since="valid_at", space="space", words="quote"
)


def answer(response: AskResponse) -> list[Renderable]:
    """Return an answer from memory and its citations."""
    if response.answer is None:
        return ["Memory has no answer to this."]
    return [response.answer, _CITATIONS.table(response.citations)]


def context(response: ContextResponse) -> list[Renderable]:
    """Return the context for a prompt, its size, and the non-empty hints for the reply."""
    hints = response.personalization_hints
    rows = [
        ("greeting", hints.greeting),
        *(("goal", goal) for goal in hints.goals),
        *(("open", loop) for loop in hints.open_loops),
        *((fix.outcome.value, fix.content) for fix in hints.past_solutions),
        *(("as said", phrase) for phrase in hints.continuity),
        *(("see also", pointer) for pointer in hints.knowledge.pointers),
        *(("query", query) for query in hints.successful_queries),
    ]
    table = make_table("hint", "text")
    for kind, text in rows:
        if text:
            add_row(table, kind, text)
    shown = response.preamble or "Nothing is remembered that belongs in this context."
    return [shown, f"({response.token_count} tokens)", *([table] if table.row_count else [])]


def profile(found: UserProfile) -> list[Renderable]:
    """Return one table per memory type of a profile; core memories are marked."""
    core = {memory.id for memory in found.core}
    columns = Columns(
        core=lambda memory: "✓" if memory.id in core else "", id="id", statement="content", importance="importance"
    )
    tables = [columns.table(memories, title=kind.value) for kind, memories in found.memories.items()]
    return [*tables] or ["The profile is empty."]


def persona(shown: Persona) -> list[Renderable]:
    """Return the weights of a user's searches, one per line."""
    lines = [f"{name}: {weight:g}" for name, weight in shown.weights.items()]
    return ["\n".join(lines) or "There is no persona: all types and tags count alike."]


# Tenants


def _named(names: Sequence[str] | None) -> str:
    return "all" if names is None else ", ".join(names)


def _of(statement: QuarantinedStatement) -> str:
    return statement.user_id or f"space {statement.space}"


def _last_error(webhook: Webhook) -> str | None:
    return webhook.disabled_reason or webhook.last_error


def _members(space: Space) -> int:
    return len(space.members)


def _member_kind(member: SpaceMember) -> str:
    return "user" if member.user else "key"


def _key_spaces(key: ApiKey) -> str:
    return "theirs" if key.spaces is None else ", ".join(key.spaces)


USERS = Columns(
    "There are no such users.",
    user="user_id",
    memories="memory_count",
    sessions="session_count",
    since="created_at",
    last_write="last_write_at",
)

KEYS = Columns(
    "There are no keys.",
    id="id",
    name="name",
    role="role",
    users=lambda key: _named(key.users),
    spaces=_key_spaces,
    created="created_at",
)

WEBHOOKS = Columns(
    "There are no webhooks.",
    id="id",
    address="url",
    users=lambda webhook: _named(webhook.users),
    kinds=lambda webhook: _named(webhook.kinds),
    status="status",
    last_delivery="last_delivered_at",
    last_error=_last_error,
)

SPACES = Columns("There are no spaces.", id="id", title="title", about="about", members=_members, created="created_at")

QUARANTINE = Columns(
    "Nothing is in quarantine.",
    id="id",
    of=_of,
    would_say="memory.content",
    reason="reason",
    seen="times_seen",
    last="last_seen_at",
)

_MEMBERS = Columns(member="id", role="role")


def space(shown: Space) -> list[Renderable]:
    """Return a space and its members."""
    about = f": {shown.about}" if shown.about else ""
    return [f"{shown.title} ({shown.id}){about}", _MEMBERS.table(shown.members)]


def declared_types(types: DeclaredTypes) -> list[Renderable]:
    """Return declared types, one per line."""
    lines = [
        f"memory type {declared.name} ({declared.base}): {declared.description}" for declared in types.memory_types
    ]
    lines += [f"entity type {declared.name}: {declared.description}" for declared in types.entity_types]
    return ["\n".join(lines) or "There are no declared types."]


def instructions(shown: Instructions) -> list[Renderable]:
    """Return the instructions of a tenant."""
    return [shown.text or "There are no custom instructions."]


def trust(shown: Trust) -> list[Renderable]:
    """Return the order of trust on one line."""
    return [" > ".join(", ".join(group) for group in shown.order)]


def placements(listed: PlacementList) -> list[Renderable]:
    """Return the graphs and the locations of tenants."""
    graphs = make_table("graph", "status", "reason")
    for graph in listed.graphs:
        add_row(graphs, graph.name, graph.status, graph.reason)
    tenants = make_table("tenant", "graph", "state", "moves to", "job")
    for tenant in listed.tenants:
        job = shorten_id(tenant.job_id) if tenant.job_id else None
        add_row(tenants, tenant.tenant, tenant.graph, tenant.state, tenant.target, job)
    return [graphs, tenants]


def checks(results: Sequence[Check]) -> list[Renderable]:
    """Return the results of checks."""
    from rich.text import Text

    table = make_table("check", "", "result", "to fix it")
    colours = {"ok": "green", "note": "yellow", "broken": "red"}
    for check in results:
        add_row(table, check.part, Text(check.verdict, style=colours[check.verdict]), check.detail, check.fix)
    return [table]


# Jobs, imports and consolidation runs


def _actions(job: Job) -> str:
    counts = Counter(str(action.get("action", "")) for action in job.actions)
    return ", ".join(f"{count} {action}" for action, count in counts.items())


def _job_reason(job: Job) -> str | None:
    return job.error or job.reason


JOBS = Columns(
    "There are no jobs.",
    job="id",
    kind="kind",
    of=lambda job: job.user_id or (f"space {job.space}" if job.space else ""),
    session="session_id",
    status="status",
    when="created_at",
    reason=_job_reason,
)

INGESTED = Columns(
    "All messages were known already: nothing was stored or extracted.",
    session="session_id",
    job="id",
    status="status",
    actions=_actions,
    model_calls="receipt.llm_calls",
    reason=_job_reason,
)


def import_result(result: ImportResult) -> list[Renderable]:
    """Return the results of an import."""
    counts = _count_imported(result)
    if result.format != "graphmem":
        return [name_value_pairs({**counts, "not imported": len(result.refused)})]
    vectors = "recomputed" if result.vectors_remade else "imported"
    refused = {"not imported": len(result.refused)} if result.refused else {}
    return [name_value_pairs({**counts, **refused, "ids changed": len(result.ids), "vectors": vectors})]


def folder_import(result: FolderImport) -> list[Renderable]:
    """Return the results of a folder's import, and the files that failed."""
    shown: list[Renderable] = [name_value_pairs({"users": result.users, **_count_imported(result)})]
    if result.failed:
        failed = make_table("file", "not imported, because")
        for file in result.failed:
            add_row(failed, file.file, file.reason)
        shown.append(failed)
    return shown


def _count_imported(result: ImportResult | FolderImport) -> dict[str, int]:
    return {**result.imported, **{f"{kind}, known already": count for kind, count in result.unchanged.items()}}


def _run_status(run: ConsolidationRun) -> str:
    return f"{run.trigger}, {run.status}{', dry run' if run.dry_run else ''}".replace("_", " ")


def _run_counts(run: ConsolidationRun) -> str:
    done = f"{run.executed} executed, {run.refused} refused, {run.change_count} changes"
    return done + (f", {run.profiles} profiles" if run.profiles else "")


RUNS = Columns(
    "There are no consolidation runs.",
    run="id",
    when="created_at",
    user=lambda run: run.user_id or "all",
    status=_run_status,
    done=_run_counts,
    reason="reason",
)


def _proposal_subject(reviewed: ReviewedProposal) -> str:
    fields = reviewed.proposal.model_dump(exclude={"action", "reason"}, exclude_defaults=True)
    return "; ".join(f"{name.replace('_', ' ')} {_join_values(name, value)}" for name, value in fields.items())


def _join_values(name: str, value: object) -> str:
    values = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return ", ".join(map(shorten_id, values) if name.endswith(("_id", "_ids")) else values)


_PROPOSALS = Columns(
    proposal="proposal.action",
    of=_proposal_subject,
    verdict="verdict",
    reason=lambda reviewed: reviewed.reason or reviewed.proposal.reason,
)

_REPORTED = Columns(memories="memory_ids", reason="reason")

_CONFLICTS = Columns(
    kind="kind", id=lambda conflict: conflict.memory_id or conflict.id, fields="fields", detail="detail"
)


def consolidation_run(run: ConsolidationRun) -> list[Renderable]:
    """Return a run with its proposals and their verdicts, the contradictions it reports, and its changes."""
    shown: list[Renderable] = [RUNS.table([run])]
    if run.proposals:
        shown.append(_PROPOSALS.table(run.proposals))
    if run.contradictions:
        title = "Contradictions to be decided by a person"
        shown.append(_REPORTED.table(run.contradictions, title=title))
    return [*shown, *run_changes(run.changes)]


def rollback(result: RollbackResult) -> list[Renderable]:
    """Return the changes that a rollback undid, and the later writes that it overwrote."""
    changes = "1 change" if result.restored == 1 else f"{result.restored} changes"
    status = result.status.replace("_", " ")
    sentence = f"Run {result.run_id} is {status}: {changes} undone."
    if not result.conflicts:
        return [sentence]
    return [sentence, _CONFLICTS.table(result.conflicts, title="Later writes that were overwritten")]


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
"""The memory fields that are shown, with their names in the table; other fields follow from these."""


ENTITY_FIELDS = {"type": "type", "aliases": "aliases", "summary": "summary", "attributes": "attributes"}
"""The entity fields that are shown, with their names in the table."""


Properties = Mapping[str, Any]


def run_changes(changes: Sequence[ElementChange]) -> list[Renderable]:
    """Return the changes of a run or a dry run as a table; an empty list if there are none."""
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
    return [table, f"and {link_count} links to messages"] if link_count else [table]


def _memory_states(changes: Sequence[ElementChange]) -> dict[str, tuple[Properties | None, Properties | None]]:
    """Return the current version of each memory before and after the changes."""
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
        add_row(table, kind, which, name, _name_value(old, names), _name_value(new, names))


def _changed_fields(fields: Mapping[str, str], before: Properties, after: Properties) -> Iterator[tuple[str, Any, Any]]:
    for field, name in fields.items():
        if before.get(field) != after.get(field):
            yield name, before.get(field), after.get(field)


def _name_value(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_name_value(item, names) for item in value)
    return "" if value is None else names.get(str(value), str(value))


_NOUNS = {"fact": "memory", "entity": "entity"}
"""Nouns for elements in sentences; links to messages are counted instead."""


def describe_rollback(preview: RollbackPreview) -> list[str]:
    """Return one sentence for each element that goes back, comes back, stays or conflicts."""
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
