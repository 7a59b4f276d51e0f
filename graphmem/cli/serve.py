"""Processes that stay: the HTTP API, the MCP server and workers."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command, read_settings
from graphmem.cli.opening import opened
from graphmem.errors import SetupError

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
    from api.app import create_app
    from api.server import make_server
    from graphmem.mcp.http import mount

    settings = read_settings(host=host, port=port)
    listener = _listen(settings.host, settings.port)
    with listener:
        _log_to_standard_error()
        async with opened(output, worker=worker, settings=settings) as memory:
            address, taken = listener.getsockname()[:2]
            shown = f"[{address}]" if ":" in address else address
            listener.listen()
            # The server raises again what ended it once it has shut down; what is open here is still to be closed.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: None)
            output.note(f"graphmem serves http://{shown}:{taken} (documentation at /docs)")
            if settings.api_key is None:
                output.note("Make a key with `graphmem keys create NAME --role admin`, or set GRAPHMEM_API_KEY.")
            served = create_app(memory, settings)
            async with mount(served, memory, settings):
                await make_server(served, settings.host, taken).serve([listener])


@command(app, "mcp")
async def mcp(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Serve one user's memory as MCP tools over standard input and output."""
    from graphmem.mcp.stdio import run_stdio

    await run_stdio(read_settings(), user, tenant)


@command(app, "worker")
async def work(output: Output) -> None:
    """Run jobs until interrupted."""
    _log_to_standard_error()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with opened(output, worker=True):
        output.note("graphmem runs jobs; end it with Ctrl-C.")
        await ended.wait()


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything is started; raise SetupError when that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SetupError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}): free it, or give another with "
            "--port or GRAPHMEM_PORT (0: any free one)."
        ) from error
    return listener


def _log_to_standard_error() -> None:
    import logging

    from graphmem.logs import configure_logs

    configure_logs(logging.INFO)
