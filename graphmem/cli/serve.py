"""Long-running processes: the HTTP API, the MCP server and workers."""

from __future__ import annotations

import asyncio
import errno
import html
import os
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from graphmem.cli.command import Open, Output, Tenant, User, command, read_settings
from graphmem.cli.startup import find_local_server, find_target, new_secret, open_services, record_server
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.process import freeze_startup_objects, prepare_server

if TYPE_CHECKING:
    from fastapi import FastAPI

    from graphmem.app.bootstrap import Services
    from graphmem.client.async_client import AsyncClient
    from graphmem.runtime.settings import Settings
    from graphmem.tenants.owners import Owner


def bind_port(host: str, port: int, advice: str) -> socket.socket:
    """Return a socket bound to a port; raise ConfigurationError, ending with `advice`, on failure."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        is_used = error.errno == errno.EADDRINUSE
        reason = "Port already in use" if is_used else f"Cannot listen ({error.strerror or error})"
        raise ConfigurationError(f"{reason} at {host}:{port}: {advice}") from error
    return bound


app = typer.Typer()

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a process."""


@command(app, "serve")
async def serve(
    output: Output,
    host: Annotated[str | None, typer.Option(help="Address to listen on; defaults to GRAPHMEM_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; defaults to GRAPHMEM_PORT; 0 selects a free one.")
    ] = None,
    worker: Annotated[bool, typer.Option(help="Also run jobs in this process.")] = True,
) -> None:
    """Serve the HTTP API, and MCP over HTTP at `/mcp`, until interrupted."""
    prepare_server()
    from graphmem_api.app import create_app

    from graphmem.graph_memory import GraphMemory
    from graphmem.mcp.http import mount

    settings = read_settings(host=host, port=port)
    secret = new_secret()
    with (
        _listen_socket(settings.host, settings.port, "--port or GRAPHMEM_PORT") as listener,
        record_server(settings, _reachable_url(listener), secret),
    ):
        _log_to_standard_error()
        async with open_services(output, worker=worker, settings=settings) as services:
            await services.keys.check_first_key()
            listener.listen()
            output.note(f"graphmem serves {_base_url(listener)} (explorer at /ui, documentation at /docs)")
            for advice in _advise(settings):
                output.note(advice)
            served = create_app(services, settings, secret)
            async with (
                mount(served, services, settings, partial(GraphMemory.of_key, services)),
                _in_background(_warm_up(services, output)),
            ):
                await _serve(served, listener)


def _advise(settings: Settings) -> Iterator[str]:
    """Yield advice about the settings for the operator who starts a server."""
    if settings.admin_key is None:
        yield "Create a key with `graphmem keys create NAME`, or set GRAPHMEM_ADMIN_KEY."
    if not settings.has_model:
        yield (
            "No language model is configured: messages are stored and searched as they are, but no memories are "
            "extracted from them, and questions are not answered. Set OPENAI_API_KEY, OPENAI_BASE_URL for a compatible "
            "server, or GRAPHMEM_LLM_MODEL=provider:model."
        )


@command(app, "open")
async def open_explorer(output: Output, tenant: Tenant = "default", open: Open = True) -> None:
    """Open the explorer of the server that commands use, or of the one at GRAPHMEM_HOST and GRAPHMEM_PORT.

    The browser is signed in with the key that commands use, where there is one.
    """
    import httpx

    from graphmem.tenants.access import make_local_token

    settings = read_settings()
    server = None if settings.url else find_local_server(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = settings.url or (server.url if server else f"http://{host}:{settings.port}")
    url = url.rstrip("/")
    try:
        async with httpx.AsyncClient(trust_env=bool(settings.url), timeout=5) as client:
            (await client.get(f"{url}/healthz")).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigurationError(f"No graphmem answers at {url}: start it with `graphmem serve`.") from error
    if open and not output.flags.json:
        key = make_local_token(server.secret, tenant) if server else None
        if settings.api_key:
            key = settings.api_key.get_secret_value()
        typer.launch(str(await asyncio.to_thread(_write_sign_in, settings, f"{url}/ui", key)) if key else f"{url}/ui")
    output.show({"url": f"{url}/ui"}, f"The explorer is at {url}/ui.")


def _write_sign_in(settings: Settings, url: str, key: str) -> Path:
    """Write a page that opens the explorer with a key, and return its path.

    Only its owner can read the file, whereas every user can read the arguments of the browser's process.
    """
    address = html.escape(f"{url}#key={quote(key, safe='')}")
    path = settings.data_dir / "explorer.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>graphmem explorer</title>'
            f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open the explorer</a>'
        )
    return path


@command(app, "mcp")
async def mcp(
    output: Output,
    user: User,
    source_kind: Annotated[
        str, typer.Option("--as", help="Source of what the model saves, such as assistant or tool.")
    ] = "user",
    tenant: Tenant = "default",
) -> None:
    """Serve one user's memory as MCP tools over standard input and output.

    The tools use the server that other commands use; without one, this process opens the memory at the first call.
    """
    from graphmem.cli.lazy_memory import LazyMemory
    from graphmem.mcp.server import run_stdio
    from graphmem.tenants.owners import make_owner

    settings = read_settings()
    memory = _find_memory_of_tools(output, settings, make_owner(tenant, user), source_kind)
    async with memory:
        await run_stdio(memory, user, can_ask=not isinstance(memory, LazyMemory) or settings.has_model)


def _find_memory_of_tools(output: Output, settings: Settings, owner: Owner, source_kind: str) -> AsyncClient:
    """Return the client for a user's tools, whose statements are saved with a source kind."""
    from graphmem.cli.lazy_memory import LazyMemory
    from graphmem.client.async_client import AsyncClient
    from graphmem.runtime.validation import validate_input
    from graphmem.tenants.access import ApiKeyIn, KeyRole, make_local_agent_key

    target = find_target(output.flags, settings, owner.tenant)
    if target.server is not None and source_kind == "user":
        return AsyncClient(target.key, target.server, attempts=2, trust_env=bool(settings.url))
    if target.is_remote:
        raise InvalidInput(
            "The key in GRAPHMEM_API_KEY decides the source: leave out --as, and use a key "
            f"created with `graphmem keys create NAME --as {source_kind}`."
        )
    given = validate_input(ApiKeyIn, {"name": "mcp", "role": KeyRole.AGENT, "source_kind": source_kind})
    key = make_local_agent_key("graphmem", owner, given.source_kind)
    return LazyMemory(output, owner.tenant, settings, key=key)


@command(app, "worker")
async def run_worker(
    output: Output,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also serve /healthz, /readyz and /metrics on this port of GRAPHMEM_HOST."),
    ] = None,
) -> None:
    """Run jobs until interrupted."""
    prepare_server()
    settings = read_settings()
    with nullcontext() if port is None else _listen_socket(settings.host, port, "--port") as listener:
        _log_to_standard_error()
        async with open_services(output, worker=True, settings=settings) as services:
            output.note("graphmem runs jobs; end it with Ctrl-C.")
            if listener is None:
                await _wait_for_interrupt()
            else:
                listener.listen()
                from graphmem_api.server import create_worker_app

                output.note(f"graphmem serves {_base_url(listener)}/readyz")
                await _serve(create_worker_app(services, settings), listener)


async def _warm_up(services: Services, output: Output) -> None:
    """Build the first contexts, then free memory that only loading the embedding model needed."""
    from graphmem.app.health import attempt

    output.note("Warming up: the first requests take longer.")
    with services.readiness.warming_up():
        await attempt(services.warm_up.run)
    freeze_startup_objects()
    output.note("Warmed up.")


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine in the background while the context lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _reachable_url(listener: socket.socket) -> str:
    """Return the server's URL as seen from this machine."""
    host, port = listener.getsockname()[:2]
    address = ip_address(host)
    if not address.is_unspecified:
        return _base_url(listener)
    return f"http://[::1]:{port}" if address.version == 6 else f"http://127.0.0.1:{port}"


def _listen_socket(host: str, port: int, options: str) -> socket.socket:
    """Return a bound socket, before anything is started; `options` are those that choose another port."""
    return bind_port(host, port, f"free it, or choose another with {options} (0: any free port).")


async def _wait_for_interrupt() -> None:
    freeze_startup_objects()
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, interrupted.set)
    await interrupted.wait()


async def _serve(served: FastAPI, listener: socket.socket) -> None:
    """Serve an application until interrupted."""
    from graphmem_api.server import make_uvicorn_server

    host, port = listener.getsockname()[:2]
    server = make_uvicorn_server(served, host, port)

    def end(*_: object) -> None:
        server.should_exit = True

    # Handle signals that arrive before uvicorn's handlers are set. uvicorn raises a signal again after its shutdown;
    # handling it keeps the process alive until the services are closed, too.
    for number in _SIGNALS:
        signal.signal(number, end)
    freeze_startup_objects()
    await server.serve([listener])


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_to_standard_error() -> None:
    import logging

    from graphmem.runtime.logs import configure_logs

    configure_logs(logging.INFO)
