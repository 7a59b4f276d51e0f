"""The checks of `graphmem doctor`; apart from `check_data`, they start nothing, write nothing and show no secret."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from graphmem.app.components import open_graph
from graphmem.cli.serve import bind_port
from graphmem.models.language_model import DEFAULT_MODEL
from graphmem.neo4j.embedded.home import ServerInfo
from graphmem.neo4j.embedded.server import READY_TIMEOUT_SECONDS, find_server, find_server_process
from graphmem.neo4j.migrations import MAX_VIOLATIONS, InvariantCheck, check_invariants
from graphmem.runtime.artifacts import Jar
from graphmem.runtime.errors import ConfigurationError, GraphmemError
from graphmem.runtime.files import RECOMMENDED_FREE, free_bytes
from graphmem.runtime.settings import (
    MODULES_BY_EXTRA,
    OPENAI_COMPATIBLE,
    ModelProvider,
    Settings,
    is_installed,
    lacks_credentials,
    missing_modules,
    required_extras,
    split_model_name,
)

_MODEL_TIMEOUT_SECONDS = 10


class CheckStatus(StrEnum):
    """The verdict of a check; a `note` is worth knowing but prevents nothing."""

    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True)
class Check:
    """The result of checking one part of the installation, and how to fix it."""

    part: str
    verdict: CheckStatus
    detail: str
    fix: str = ""


async def run_checks(settings: Settings) -> AsyncIterator[Check]:
    """Check every part of the installation."""
    yield check_python()
    for check in check_extras(settings):
        yield check
    downloads = settings.neo4j_uri is None or settings.embedder == "local"
    for folder in (settings.data_dir, *([settings.cache_dir] if downloads else [])):
        yield check_disk(folder)
    yield check_memory(settings)
    server = None
    if settings.neo4j_uri is None:
        yield check_java()
        yield await check_jars(settings)
        server = await find_server(settings.data_dir)
    silent = None if server or settings.neo4j_uri else find_server_process(settings.data_dir)
    for check in check_ports(settings, is_neo4j_running=bool(server or silent)):
        yield check
    yield await check_embedder(settings)
    if silent:
        yield check_silent_server(silent)
    else:
        async for check in check_database(settings, server):
            yield check
    async for check in check_placements(settings):
        yield check
    yield await check_job_store(settings)
    for check in await check_language_model(settings):
        yield check


def check_python() -> Check:
    """Return the Python version; graphmem cannot be installed with one that is too old."""
    return Check("Python", CheckStatus.OK, f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")


def check_extras(settings: Settings) -> list[Check]:
    """Check the optional dependencies; the settings decide which are required."""
    required = required_extras(settings)
    return [_check_extra(extra, is_required=extra in required) for extra in MODULES_BY_EXTRA]


def _check_extra(name: str, *, is_required: bool) -> Check:
    missing = missing_modules(name)
    if not missing:
        return Check(f"extra {name}", CheckStatus.OK, "installed")
    if not is_required:
        return Check(f"extra {name}", CheckStatus.NOTE, "not installed, and not required")
    fix = f"pip install 'graphmem[{name}]'"
    return Check(f"extra {name}", CheckStatus.BROKEN, f"{', '.join(missing)} not installed", fix)


def check_disk(folder: Path) -> Check:
    """Check that a folder, or its nearest existing parent, is writable and has free space."""
    existing = folder.expanduser().absolute()
    while not existing.exists():
        existing = existing.parent
    part = f"disk {folder}"
    if not os.access(existing, os.W_OK | os.X_OK):
        fix = "Set GRAPHMEM_DATA_DIR and GRAPHMEM_CACHE_DIR."
        return Check(part, CheckStatus.BROKEN, f"{existing} is not writable", fix)
    free = free_bytes(existing)
    detail = f"{free / 1024**3:.1f} GB free"
    if free < RECOMMENDED_FREE:
        fix = "Free disk space, or set GRAPHMEM_DATA_DIR and GRAPHMEM_CACHE_DIR."
        return Check(part, CheckStatus.BROKEN, detail, fix)
    return Check(part, CheckStatus.OK, detail)


def check_memory(settings: Settings) -> Check:
    """Check that the machine has enough memory to keep active users in a process."""
    part, size = "memory for active users", settings.resident_mb
    if not size:
        return Check(part, CheckStatus.NOTE, "none: every search asks the database", "Set GRAPHMEM_RESIDENT_MB.")
    free = psutil.virtual_memory().available / 1_000_000
    detail = f"{size} MB in each process, {free:,.0f} MB free"
    if size > free:
        return Check(part, CheckStatus.BROKEN, detail, "Lower GRAPHMEM_RESIDENT_MB.")
    return Check(part, CheckStatus.OK, detail)


def check_java() -> Check:
    """Check that there is a Java for the embedded Neo4j."""
    from graphmem.neo4j.embedded.distribution import find_java

    try:
        java = find_java()
    except ConfigurationError as error:
        return broken_check("Java", error)
    return Check("Java", CheckStatus.OK, f"{java.version} at {java.executable}")


async def check_jars(settings: Settings) -> Check:
    """Check that the embedded Neo4j's jars are in the cache and match the lock file."""
    from graphmem.neo4j.embedded.distribution import neo4j_jars

    missing = await asyncio.to_thread(neo4j_jars().find_missing, settings.cache_dir)
    if not missing:
        return Check("Neo4j's jars", CheckStatus.OK, f"in {settings.cache_dir}")
    detail = f"{len(missing)} ({_total_size(missing)}) are downloaded when Neo4j is first started"
    return Check("Neo4j's jars", CheckStatus.NOTE, detail)


def _total_size(jars: Sequence[Jar]) -> str:
    return f"{sum(jar.size for jar in jars) / 1024**2:.0f} MB"


def check_ports(settings: Settings, *, is_neo4j_running: bool) -> list[Check]:
    """Check that the ports to listen on are free."""
    ports = [("port of the API", settings.host, settings.port, "GRAPHMEM_PORT")]
    if settings.neo4j_uri is None and not is_neo4j_running:
        ports.append(("Bolt port", "127.0.0.1", settings.bolt_port, "GRAPHMEM_BOLT_PORT"))
        ports.append(("Browser port", "127.0.0.1", settings.http_port, "GRAPHMEM_HTTP_PORT"))
    return [_check_port(part, host, port, setting) for part, host, port, setting in ports]


def _check_port(part: str, host: str, port: int, setting: str) -> Check:
    if port == 0:
        return Check(part, CheckStatus.OK, "any free port")
    try:
        bind_port(host, port, f"free it, or set {setting} to another (0: any free port).").close()
    except ConfigurationError as error:
        check = broken_check(part, error)
        if setting != "GRAPHMEM_PORT":
            return check
        return Check(part, CheckStatus.NOTE, f"{check.detail} (a running `graphmem serve`?)", check.fix)
    return Check(part, CheckStatus.OK, f"{host}:{port} is free")


async def check_embedder(settings: Settings) -> Check:
    """Check that the embedder works; a model missing from the cache is not downloaded."""
    from graphmem.models.embedder import create_embedder
    from graphmem.models.onnx_embedder import OnnxEmbedder

    try:
        embedder = create_embedder(settings)
        try:
            if isinstance(embedder, OnnxEmbedder) and (missing := await embedder.find_missing_jars()):
                detail = f"{embedder.model} ({_total_size(missing)}) is downloaded at its first use"
                return Check("embedder", CheckStatus.NOTE, detail)
            await embedder.open()
            await embedder.embed(["a sentence"])
        finally:
            await embedder.aclose()
    except GraphmemError as error:
        return broken_check("embedder", error)
    return Check("embedder", CheckStatus.OK, f"{embedder.model}, {embedder.dimension} dimensions")


def check_silent_server(server: ServerInfo) -> Check:
    """Return whether a running embedded Neo4j that does not answer is still starting, by the age of its process."""
    seconds = time.time() - server.started
    process = f"embedded, process {server.pid}"
    if seconds < READY_TIMEOUT_SECONDS:
        detail = f"{process}, has been starting for {seconds:.0f} seconds and does not answer yet"
        fix = f"Wait: every command waits up to {READY_TIMEOUT_SECONDS} seconds for it."
        return Check("Neo4j", CheckStatus.NOTE, detail, fix)
    detail = f"{process}, runs and does not answer; its log is {server.log}"
    return Check("Neo4j", CheckStatus.BROKEN, detail, "Make the machine less busy, or restart it: graphmem db stop")


async def check_database(settings: Settings, server: ServerInfo | None) -> AsyncIterator[Check]:
    """Check that Neo4j answers and that its schema is of this version."""
    from graphmem.neo4j.driver import Graph
    from graphmem.neo4j.migrations import read_schema_status

    if settings.neo4j_uri:
        password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
        connection = (settings.neo4j_uri, settings.neo4j_user, password, settings.neo4j_database)
    elif server:
        connection = (server.uri, server.user, server.password, "neo4j")
    else:
        yield Check("Neo4j", CheckStatus.OK, "embedded, not running; it is started at first use")
        return
    try:
        graph = Graph(*connection)
        try:
            await graph.verify_connectivity()
            yield Check("Neo4j", CheckStatus.OK, f"answers at {connection[0]}")
            schema = await read_schema_status(graph)
            models = await graph.fetch("schema.get_embedding_model")
        finally:
            await graph.close()
    except GraphmemError as error:
        yield broken_check("Neo4j", error)
        return
    vectors = f", vectors of {models[0]['model']} ({models[0]['dimension']} dimensions)" if models else ""
    if schema.pending:
        count = len(schema.pending)
        detail = f"{count} migration{' is' if count == 1 else 's are'} pending{vectors}"
        advice = "Stop all processes of the earlier version, then: " if schema.must_stop_others else ""
        yield Check("schema", CheckStatus.NOTE, detail, f"{advice}graphmem db migrate")
    elif schema.version > schema.known_version:
        detail = f"of a later version ({schema.version}) with which this one ({schema.known_version}) works{vectors}"
        yield Check("schema", CheckStatus.OK, detail)
    else:
        yield Check("schema", CheckStatus.OK, f"up to date{vectors}")


async def check_placements(settings: Settings) -> AsyncIterator[Check]:
    """Check that the graphs other than the home graph answer."""
    from graphmem.neo4j.driver import Graph

    for name, address in settings.placements.items():
        part = f"graph {name}"
        try:
            graph = Graph(address.uri, address.user, address.read_password(name), address.database)
            try:
                await graph.verify_connectivity()
            finally:
                await graph.close()
        except GraphmemError as error:
            yield broken_check(part, error)
        else:
            yield Check(part, CheckStatus.OK, f"answers at {address.uri}")


async def check_job_store(settings: Settings) -> Check:
    """Check that the job store answers; a missing SQLite file is created at first use."""
    if settings.jobs_url is None and not settings.data_dir.expanduser().exists():
        return Check("job store", CheckStatus.OK, "SQLite in the data folder, created at first use")
    from graphmem.jobs.runner import JobRunner

    try:
        async with await JobRunner.open(settings) as runner:
            await runner.list(limit=1)
    except GraphmemError as error:
        return broken_check("job store", error)
    detail = "SQLite in the data folder" if settings.jobs_url is None else "Postgres answers"
    return Check("job store", CheckStatus.OK, detail)


async def check_language_model(settings: Settings) -> list[Check]:
    """Check each language model: its provider is usable, or its server answers and accepts the key."""
    part = "language model"
    if not settings.has_model:
        detail = "none configured: messages are stored and searched, but no memories are extracted from them"
        fix = "Set OPENAI_API_KEY, OPENAI_BASE_URL for any compatible server, or GRAPHMEM_LLM_MODEL=provider:model."
        return [Check(part, CheckStatus.NOTE, detail, fix)]
    main = settings.llm_model or DEFAULT_MODEL
    names = dict.fromkeys((main, settings.llm_gate_model or main))
    return [await _check_model(settings, part, name) for name in names]


async def _check_model(settings: Settings, part: str, name: str) -> Check:
    provider, model = split_model_name(name)
    if provider is not OPENAI_COMPATIBLE:
        return _check_provider(part, provider, model)
    from openai import APIStatusError, OpenAIError

    from graphmem.models.openai_api import DEFAULT_BASE_URL, api_key_of, create_client

    base_url = settings.openai_base_url or DEFAULT_BASE_URL
    try:
        async with create_client(base_url, api_key_of(settings), _MODEL_TIMEOUT_SECONDS) as client:
            await client.models.retrieve(model)
    except APIStatusError as error:
        if error.status_code in (401, 403):
            return Check(part, CheckStatus.BROKEN, f"{base_url} rejects the key", "Set OPENAI_API_KEY.")
        if error.status_code >= 500:
            return Check(part, CheckStatus.BROKEN, f"{base_url} answers {error.status_code}", "Try again later.")
        detail = f"{base_url} answers, but does not list {model}"
        return Check(part, CheckStatus.NOTE, detail, "If extraction fails, set GRAPHMEM_LLM_MODEL.")
    except OpenAIError as error:
        reason = f"{base_url} cannot be reached ({type(error).__name__})"
        return Check(part, CheckStatus.BROKEN, reason, "Check that it runs, or set OPENAI_BASE_URL.")
    return Check(part, CheckStatus.OK, f"{model} at {base_url}")


def _check_provider(part: str, provider: ModelProvider, model: str) -> Check:
    """Check that a provider's package and credentials are there, without calling its server."""
    if not is_installed(provider):
        detail = f"models of {provider.name} need a package that is not installed"
        return Check(part, CheckStatus.BROKEN, detail, f"pip install 'graphmem[{provider.extra}]'")
    if lacks_credentials(provider):
        needed = " or ".join(provider.credentials)
        return Check(part, CheckStatus.BROKEN, f"{needed} is not set", f"Set {needed}.")
    return Check(part, CheckStatus.OK, f"{model} of {provider.name}")


def broken_check(part: str, error: GraphmemError) -> Check:
    """Return the check of a part that failed; the error's detail says what is wrong and, after a colon, the fix."""
    detail, _, fix = error.detail.partition(": ")
    return Check(part, CheckStatus.BROKEN, detail, fix)


async def check_data(settings: Settings, tenant: str | None = None) -> AsyncIterator[Check]:
    """Check the indexes and every invariant of the stored data, starting the embedded Neo4j if necessary.

    With `tenant`, violations in other tenants' data are left out.
    """
    try:
        async with open_graph(settings) as graph:
            unusable = await graph.fetch("schema.list_unusable_indexes")
            yield _describe_indexes({row["name"]: row["state"] for row in unusable})
            async for result in check_invariants(graph, tenant):
                yield _describe_result(result)
    except GraphmemError as error:
        yield broken_check("stored data", error)


def _describe_indexes(unusable: dict[str, str]) -> Check:
    if not unusable:
        return Check("indexes", CheckStatus.OK, "all work")
    detail = ", ".join(f"{name} is {state.lower()}" for name, state in unusable.items())
    fix = "Wait until they are populated; drop one that failed and run its migration's statement again."
    return Check("indexes", CheckStatus.BROKEN, detail, fix)


def _describe_result(result: InvariantCheck) -> Check:
    part = f"data: {result.name.partition('.')[2].replace('_', ' ')}"
    if not result.count:
        return Check(part, CheckStatus.OK, "none")
    number = f"{result.count} or more" if result.count >= MAX_VIOLATIONS else str(result.count)
    named = ", ".join(f"{key} of {group_id}" for group_id, key in result.ids)
    more = ", …" if result.count > len(result.ids) else ""
    return Check(part, CheckStatus.BROKEN, f"{result.violation} {number}: {named}{more}", result.fix)
