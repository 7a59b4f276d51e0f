"""Processes that stay: the HTTP API, the MCP server and workers."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command, read_settings
from graphmem.cli.startup import open_memory
from graphmem.errors import ConfigurationError

if TYPE_CHECKING:
    from fastapi import FastAPI

app = typer.Typer()


@command(app, "serve")
async def serve(
    output: Output,
    host: Annotated[str | None, typer.Option(help="Address to listen on; absent: GRAPHMEM_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; absent: GRAPHMEM_PORT; 0: a free one.")
    ] = None,
    worker: Annotated[bool, typer.Option(help="Also run jobs in this process.")] = True,
) -> None:
    """Serve the HTTP API, and MCP over HTTP at `/mcp`, until interrupted."""
    from graphmem_api.app import create_app

    from graphmem.mcp.http import mount

    settings = read_settings(host=host, port=port)
    with _bind_listener(settings.host, settings.port, "--port or GRAPHMEM_PORT") as listener:
        _log_to_standard_error()
        async with open_memory(output, worker=worker, settings=settings) as memory:
            listener.listen()
            output.note(f"graphmem serves {_base_url(listener)} (documentation at /docs)")
            if settings.api_key is None:
                output.note("Make a key with `graphmem keys create NAME --role admin`, or set GRAPHMEM_API_KEY.")
            served = create_app(memory, settings)
            async with mount(served, memory, settings):
                await _serve(served, listener)


@command(app, "mcp")
async def mcp(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Serve one user's memory as MCP tools over standard input and output."""
    from graphmem.mcp.stdio import run_stdio

    await run_stdio(read_settings(), user, tenant)


@command(app, "worker")
async def run_worker(
    output: Output,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also serve /healthz, /readyz and /metrics here, at GRAPHMEM_HOST."),
    ] = None,
) -> None:
    """Run jobs until interrupted."""
    from graphmem_api.app import create_worker_app

    settings = read_settings()
    with nullcontext() if port is None else _bind_listener(settings.host, port, "--port") as listener:
        _log_to_standard_error()
        async with open_memory(output, worker=True, settings=settings) as memory:
            output.note("graphmem runs jobs; end it with Ctrl-C.")
            if listener is None:
                await _wait_for_interrupt()
            else:
                listener.listen()
                output.note(f"graphmem serves {_base_url(listener)}/readyz")
                await _serve(create_worker_app(memory, settings), listener)


async def _wait_for_interrupt() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


async def _serve(served: FastAPI, listener: socket.socket) -> None:
    """Serve an application until interrupted."""
    from graphmem_api.server import make_uvicorn_server

    # The server raises again what ended it once it has shut down; what is open here is still to be closed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    host, port = listener.getsockname()[:2]
    await make_uvicorn_server(served, host, port).serve([listener])


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind_listener(host: str, port: int, options: str) -> socket.socket:
    """Take the port before anything is started; raise ConfigurationError when that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}): free it, or give another with "
            f"{options} (0: any free one)."
        ) from error
    return listener


def _log_to_standard_error() -> None:
    import logging

    from graphmem.logs import configure_logs

    configure_logs(logging.INFO)
